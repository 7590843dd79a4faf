"""Text from ids as they arrive, never half a character and never a space too many or too few."""

from __future__ import annotations

import codecs
from typing import Protocol

from engine.text.tokenizer import Tokenizer
from engine.text.utf8 import ByteRuns

_LONGEST_HOLD = 8  # tokens; a character has at most 4 bytes, so a longer wait for its end is in vain


class _Pieces(Protocol):
    def push(self, token_id: int) -> str: ...
    def flush(self) -> str: ...
    def fork(self) -> _Pieces: ...


class StreamingDecoder:
    """Decodes a reply token by token.

    The pieces joined, with `flush()`, equal `tokenizer.decode` of all ids. Bytes of an incomplete character are
    held back (at most 3); bytes that can no longer become a character come out as U+FFFD at once. Each push costs
    the same however long the reply is, and the state does not grow.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._pieces: _Pieces = _BytePieces(tokenizer) if tokenizer.byte_level else _StringPieces(tokenizer)

    def push(self, token_id: int) -> str:
        """The text completed by this token; "" for special tokens and incomplete characters."""
        return self._pieces.push(token_id) if self._tokenizer.is_text(token_id) else ""

    def flush(self) -> str:
        """The rest, at the reply's end: U+FFFD for the bytes of a character that was never completed."""
        return self._pieces.flush()

    def ghosts(self, token_ids: tuple[int, ...]) -> tuple[str, ...]:
        """The piece each of `token_ids` would complete if it came next. This decoder does not change."""
        pieces = self._pieces.fork()
        return tuple(pieces.push(i) if self._tokenizer.is_text(i) else "" for i in token_ids)

    def ghost_text(self, token_ids: tuple[int, ...]) -> str:
        """The text of rejected tokens as they would have followed the reply so far; half characters left out."""
        return "".join(self.ghosts(token_ids))


class _BytePieces:
    """Byte-level vocabularies: tokens are bytes, so an incremental UTF-8 decoder is all it takes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        return self._utf8.decode(self._tokenizer.token_bytes(token_id))

    def flush(self) -> str:
        return self._utf8.decode(b"", final=True)

    def fork(self) -> _BytePieces:
        copy = _BytePieces(self._tokenizer)
        copy._utf8.setstate(self._utf8.getstate())
        return copy


class _StringPieces:
    """Other vocabularies: what a token adds is the decoded window with it, less the window without it.

    The window's start is the tokens of the last piece: as they hold at least one character, whatever a decoder
    strips or joins at the start of a text falls on them and not on the new token.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._runs = ByteRuns()
        self._before: list[str] = []
        self._before_text = ""
        self._new: list[str] = []

    def push(self, token_id: int) -> str:
        token = self._tokenizer.token_text(token_id)
        return self._add(self._runs.push(token) if self._tokenizer.byte_fallback else [token])

    def flush(self) -> str:
        return self._add(self._runs.flush(), at_end=True)

    def fork(self) -> _StringPieces:
        copy = _StringPieces(self._tokenizer)
        copy._runs = self._runs.fork()
        copy._before, copy._before_text, copy._new = list(self._before), self._before_text, list(self._new)
        return copy

    def _add(self, settled: list[str], *, at_end: bool = False) -> str:
        self._new += settled
        if not self._new:
            return ""
        text = self._tokenizer.join(self._before + self._new)[len(self._before_text) :]
        # Decoders that build characters from bytes by themselves mark an incomplete one; wait for its end.
        incomplete = text.endswith("\ufffd") and not self._tokenizer.byte_fallback
        if not text or (incomplete and not at_end and len(self._new) < _LONGEST_HOLD):
            return ""
        self._before, self._new = self._new, []
        self._before_text = self._tokenizer.join(self._before)
        return text
