"""Bytes and characters: the byte alphabet of byte-level vocabularies, and runs of byte tokens in other vocabularies."""

from __future__ import annotations

import codecs
from functools import cache


@cache
def byte_alphabet() -> dict[str, int]:
    """The 256 printable characters by which byte-level BPE vocabularies spell bytes, mapped to those bytes.

    Printable Latin-1 characters stand for themselves; the others are numbered from U+0100 on (GPT-2's scheme).
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in set(printable))
    alphabet.update({chr(0x100 + i): byte for i, byte in enumerate(others)})
    return alphabet


def spelled_bytes(token: str) -> bytes:
    """The bytes a byte-level token stands for; a token outside the alphabet (an added word) stands for its UTF-8."""
    alphabet = byte_alphabet()
    try:
        return bytes(alphabet[character] for character in token)
    except KeyError:
        return token.encode("utf-8", "replace")


def fallback_byte(token: str) -> int | None:
    """The byte of a byte-fallback token such as `<0xE6>`; None for any other token."""
    if len(token) != 6 or not token.startswith("<0x") or not token.endswith(">"):
        return None
    try:
        return int(token[3:5], 16)
    except ValueError:
        return None


class ByteRuns:
    """Sorts the byte-fallback tokens of a stream into whole characters and invalid bytes.

    The library's ByteFallback decoder turns a whole run of byte tokens into replacement marks when one byte of it
    is invalid, so a character already shown could still change. Here each character stands for itself: an empty
    token is put between it and an invalid neighbour, which ends the library's run. Wholly valid and wholly invalid
    runs decode as they always did. Holds back at most 3 tokens.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        self._after_byte = False
        self._after_invalid = False

    def fork(self) -> ByteRuns:
        """An independent copy."""
        copy = ByteRuns()
        copy._held = list(self._held)
        copy._after_byte, copy._after_invalid = self._after_byte, self._after_invalid
        return copy

    def push(self, token: str) -> list[str]:
        """The tokens that are settled by this one, in order; empty while a character is incomplete."""
        if fallback_byte(token) is None:
            settled = self.flush()
            self._after_byte = False
            return [*settled, token]
        self._held.append(token)
        return self._settle(at_end=False)

    def flush(self) -> list[str]:
        """The tokens still held: bytes of a character that never became whole."""
        return self._settle(at_end=True)

    def _settle(self, *, at_end: bool) -> list[str]:
        settled: list[str] = []
        while self._held:
            length = _character_length(bytes(fallback_byte(token) or 0 for token in self._held))
            if length == 0 and not at_end:
                break
            valid = length > 0
            taken = max(length, 1)
            if self._after_byte and (self._after_invalid or not valid):
                settled.append("")
            settled += self._held[:taken]
            del self._held[:taken]
            self._after_byte, self._after_invalid = True, not valid
        return settled


def _character_length(run: bytes) -> int:
    """Bytes of the first character of a run; 0 if more bytes may complete it; -1 if its first byte is invalid."""
    for length in range(1, min(len(run), 4) + 1):
        try:
            text, used = codecs.utf_8_decode(run[:length], "strict", False)
        except UnicodeDecodeError:
            return -1
        if text:
            return used
    return 0
