"""The tokenizer of a model folder: text to ids, ids to text, and which ids begin, end and control a reply."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import tokenizers

from engine.errors import ModelFileError
from engine.files.disguise import missing
from engine.text.control import ControlEncoder, looks_like_marker
from engine.text.folder import TURN_ENDS, TextFiles, read_text_files
from engine.text.utf8 import ByteRuns, fallback_byte, spelled_bytes

_CONVERTIBLE = ("tokenizer.model", "spiece.model", "vocab.json", "tiktoken.model")


def load_tokenizer(folder: Path) -> Tokenizer | None:
    """The folder's tokenizer, or None where it has none (ids in, ids out). Raises ModelFileError when unreadable."""
    path = folder / "tokenizer.json"
    if path.is_symlink() and not path.exists():
        raise ModelFileError(f"{missing(path)}.")
    if not path.is_file() and not any((folder / name).is_file() for name in _CONVERTIBLE):
        return None
    return Tokenizer.from_folder(folder)


class Tokenizer:
    """Text to ids and back, on the `tokenizers` library.

    vocabulary: ids the tokenizer knows; a model may pad its vocabulary beyond, such ids decode to "".
    bos_id, bos_text, eos_text: begin and end token, None where there is none.
    add_bos: whether a prompt of plain text begins with the begin token.
    end_ids: every id that ends a reply.
    control_ids: special tokens and markers; text never becomes one of them unless control is allowed.
    text_files: what the folder's JSON files said.
    """

    def __init__(self, raw: tokenizers.Tokenizer, text_files: TextFiles) -> None:
        raw.no_truncation()
        raw.no_padding()
        self._raw = raw
        self.text_files = text_files
        self.bos_text, self.bos_id = self._named_token(text_files.bos, text_files.begin_id)
        lowest_end = min(text_files.end_ids, default=None)
        self.eos_text, eos_id = self._named_token(text_files.eos, lowest_end)
        added = raw.get_added_tokens_decoder()
        spelled = raw.get_vocab(with_added_tokens=True)
        self.vocabulary = max(spelled.values(), default=-1) + 1
        self._texts: list[str | None] = [None] * self.vocabulary
        for text, i in spelled.items():
            self._texts[i] = text
        self._read_decoder()
        self.add_bos = self._wants_bos()
        special = {i for i, token in added.items() if token.special and token.content.strip()}
        self.end_ids = text_files.end_ids | ({eos_id} if eos_id is not None else set()) | self._turn_ends(special)
        shown = {i for i in special if self.byte_fallback and fallback_byte(added[i].content) is not None}
        self._hidden = frozenset((special | self.end_ids) - shown)
        markers = {i for i, token in added.items() if looks_like_marker(token.content)}
        self._special = frozenset(special)
        self.control_ids = frozenset(special | markers)
        self._control = ControlEncoder(raw, {i: added[i] for i in sorted(self.control_ids)})
        self._bytes_of: dict[int, bytes] = {}

    @classmethod
    def from_folder(cls, folder: Path) -> Tokenizer:
        """Read `tokenizer.json`, or convert the folder's older files. Raises ModelFileError naming file and cause."""
        text_files = read_text_files(folder)
        path = folder / "tokenizer.json"
        raw = _read_tokenizer_json(path) if path.is_file() else _convert(folder)
        return cls(raw, text_files)

    # Text to ids

    def encode(self, text: str, *, allow_control: bool) -> list[int]:
        """Ids of `text`, with no begin token added. Control token texts become tokens only where allowed."""
        return self._control.encode([(text, allow_control)])

    def encode_parts(self, parts: Sequence[tuple[str, bool]]) -> list[int]:
        """Ids of the joined (text, allow_control) parts, encoded as one string; no begin token added."""
        return self._control.encode(parts)

    def encode_prompt(self, text: str) -> list[int]:
        """Ids of a raw prompt: ordinary text after the begin token, if the model wants one."""
        return self.with_bos(self.encode(text, allow_control=False))

    def with_bos(self, ids: list[int]) -> list[int]:
        """`ids` after one begin token, if the model wants one; never two."""
        if not self.add_bos or self.bos_id is None or ids[:1] == [self.bos_id]:
            return ids
        return [self.bos_id, *ids]

    def control_spans(self, text: str) -> list[tuple[int, int]]:
        """Where `text` spells control tokens: (start, end) in characters, sorted and disjoint."""
        return self._control.occurrences(text)

    def token_id(self, text: str) -> int | None:
        """The id of the token spelled exactly so, None if there is none."""
        i = self._raw.token_to_id(text)
        return i if i is not None and i < self.vocabulary else None

    def is_special(self, text: str) -> bool:
        """Whether `text` is a token that the vocabulary flags special; other markers are not, though they control."""
        return self.token_id(text) in self._special

    # Ids to text

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`; special tokens and unknown ids are left out, invalid bytes become U+FFFD."""
        kept = [i for i in ids if self.is_text(i)]
        if self.byte_level:
            return b"".join(map(self.token_bytes, kept)).decode("utf-8", "replace")
        tokens = [self.token_text(i) for i in kept]
        if not self.byte_fallback:
            return self.join(tokens)
        runs = ByteRuns()
        settled = [part for token in tokens for part in runs.push(token)]
        return self.join(settled + runs.flush())

    def piece(self, token_id: int) -> str:
        """One token for display: its text, its bytes as `<0xF0 0x9F>` where they are no character, or `<id>`."""
        if not 0 <= token_id < self.vocabulary:
            return f"<{token_id}>"
        text = self.token_text(token_id)
        if not self.is_text(token_id):
            return text or f"<{token_id}>"
        if not self.byte_level:
            return text.replace("\u2581", " ")
        spelled = self.token_bytes(token_id)
        try:
            return spelled.decode("utf-8")
        except UnicodeDecodeError:
            return "<" + " ".join(f"0x{byte:02X}" for byte in spelled) + ">"

    def is_text(self, token_id: int) -> bool:
        """Whether the token adds to the text: known and not special."""
        return 0 <= token_id < self.vocabulary and self._texts[token_id] is not None and token_id not in self._hidden

    def token_text(self, token_id: int) -> str:
        """The token as the vocabulary spells it, for an id below `vocabulary`; "" for a gap."""
        return self._texts[token_id] or ""

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token of a byte-level vocabulary."""
        spelled = self._bytes_of.get(token_id)
        if spelled is None:
            spelled = self._bytes_of[token_id] = spelled_bytes(self.token_text(token_id))
        return spelled

    def join(self, tokens: list[str]) -> str:
        """The library's decoder over spelled tokens (not for byte-level vocabularies)."""
        decoder = self._raw.decoder
        return str(decoder.decode(tokens)) if decoder is not None else " ".join(tokens)

    # Set-up

    def _named_token(self, text: str | None, fallback_id: int | None) -> tuple[str | None, int | None]:
        """(text, id) of a begin or end token named by text or, failing that, by id; made special if it is not."""
        if text is None and fallback_id is not None:
            text = self._raw.id_to_token(fallback_id)
        if text is None:
            return None, None
        i = self._raw.token_to_id(text)
        if i is not None:
            self._raw.add_special_tokens([tokenizers.AddedToken(text, special=True, normalized=False)])
        return text, i

    def _read_decoder(self) -> None:
        decoder = self._raw.decoder
        kinds: list[str] = []
        if decoder is not None:
            state = json.loads(decoder.__getstate__())
            kinds = [part["type"] for part in state.get("decoders", [state])]
        self.byte_level = "ByteLevel" in kinds and set(kinds) <= {"ByteLevel", "Fuse"}
        self.byte_fallback = "ByteFallback" in kinds

    def _wants_bos(self) -> bool:
        if self.bos_id is None:
            return False
        if self.text_files.add_bos is not None:
            return self.text_files.add_bos
        return self._raw.encode("a", add_special_tokens=True).ids[:1] == [self.bos_id]

    def _turn_ends(self, special: set[int]) -> set[int]:
        """Ids of the template's end-of-turn markers, for folders whose generation_config.json names no end."""
        if self.text_files.generation_names_end:
            return set()
        template = self.text_files.template
        named = [text for text in TURN_ENDS if template is None or text in template]
        ids = {self._raw.token_to_id(text) for text in named}
        return {i for i in ids if i is not None and i in special}


def _read_tokenizer_json(path: Path) -> tokenizers.Tokenizer:
    try:
        data = path.read_bytes()  # not by name: the library takes only names that are text
        if data.startswith(b"version https://git-lfs"):
            raise ModelFileError(f"{path} is a Git LFS pointer, not the tokenizer: the download is not complete.")
        return tokenizers.Tokenizer.from_buffer(data)
    except ModelFileError:
        raise
    except Exception as error:  # the library raises bare Exception for anything malformed
        raise ModelFileError(f"{path} is not a readable tokenizer: {error}.") from error


def _convert(folder: Path) -> tokenizers.Tokenizer:
    """A tokenizer from older files, converted by transformers (imported only here); no code of the folder runs."""
    try:
        from transformers import AutoTokenizer, logging

        logging.set_verbosity_error()  # its advice is for programmers; a failure is told in one sentence below
        converted = AutoTokenizer.from_pretrained(
            str(folder), use_fast=True, trust_remote_code=False, local_files_only=True
        )
        raw = converted.backend_tokenizer
    except Exception as error:
        raise ModelFileError(f"The tokenizer of {folder} cannot be converted: {error}.") from error
    if not isinstance(raw, tokenizers.Tokenizer):
        raise ModelFileError(f"The tokenizer of {folder} is of a kind that cannot be converted.")
    return raw
