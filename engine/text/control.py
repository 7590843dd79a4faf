"""Encoding text of which some parts may hold control tokens and others never may."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Sequence

import tokenizers

_HALVES = re.compile("[\ud800-\udfff]")
_MARKER = re.compile(r"<[^\s<>]+>|\[[A-Z_/]{2,}\]")


def looks_like_marker(text: str) -> bool:
    """Whether an added token not flagged special is a marker all the same (`<think>`, `<|fim_prefix|>`, `[INST]`)."""
    return _MARKER.fullmatch(text) is not None


def whole(text: str) -> str:
    """The text with U+FFFD for each half of a character: none has bytes, so that tokenizers refuse them. As long."""
    return _HALVES.sub("\ufffd", text)


class ControlEncoder:
    """Encodes (text, allow_control) parts as one string, so that words and spaces meet across parts as usual.

    The library can only allow control tokens for a whole string or for none. So control tokens in allowed parts
    are replaced by private aliases, added tokens whose text holds a fresh random number, and the string is encoded
    with all real control tokens off; alias ids are then mapped back.

    control: the control tokens, by id. Adds the aliases to `raw`, above its vocabulary.
    """

    def __init__(self, raw: tokenizers.Tokenizer, control: dict[int, tokenizers.AddedToken]) -> None:
        self._raw = raw
        self._tokens = control
        self._ids = {token.content: i for i, token in control.items()}
        self._aliases: dict[str, str] = {}
        self._meaning: dict[int, int | None] = {}
        self._nonce = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._normalizes = raw.normalizer is not None and any(t.normalized for t in control.values())
        # The library hides only tokens it counts as special; this makes it count the others too.
        raw.add_special_tokens(list(control.values()))
        longest_first = sorted(control.values(), key=lambda token: -len(token.content))
        self._pattern = re.compile("|".join(map(_token_pattern, longest_first)) or r"(?!)")

    def occurrences(self, text: str) -> list[tuple[int, int]]:
        """Spans of `text` that an encoder which allows control tokens would take for one; sorted, disjoint."""
        spans = [match.span() for match in self._pattern.finditer(text)]
        if self._normalizes:
            with self._lock:
                self._raw.encode_special_tokens = False
                encoding = self._raw.encode(whole(text), add_special_tokens=False)
            spans += [span for i, span in zip(encoding.ids, encoding.offsets, strict=True) if i in self._tokens]
        return _disjoint(spans)

    def encode(self, parts: Sequence[tuple[str, bool]]) -> list[int]:
        """Ids of the joined parts; control tokens come only from parts marked True."""
        if all(allowed for _, allowed in parts):
            with self._lock:
                self._raw.encode_special_tokens = False
                return list(self._raw.encode(whole("".join(t for t, _ in parts)), add_special_tokens=False).ids)
        with self._lock:
            ids = self._encode_aliased(parts, broken=False)
            if any(i in self._tokens for i in ids):
                # A vocabulary may hold a control token's text as a common piece too: break that text in two. (Where
                # the tokenizer starts every section with a space, the broken text gains one.)
                ids = self._encode_aliased(parts, broken=True)
        return [real for i in ids if (real := self._meaning.get(i, i)) is not None]

    def _encode_aliased(self, parts: Sequence[tuple[str, bool]], *, broken: bool) -> list[int]:
        pieces: list[str] = []
        for text, allowed in parts:
            if self._nonce in text:  # nobody can guess it, but nothing may depend on that
                text = text.replace(self._nonce, self._nonce[:8] + self._alias(None) + self._nonce[8:])
            if allowed:
                pieces.append(self._pattern.sub(lambda match: self._alias(match.group()), text))
            else:
                pieces.append(self._pattern.sub(self._break, text) if broken else text)
        self._raw.encode_special_tokens = True
        return list(self._raw.encode(whole("".join(pieces)), add_special_tokens=False).ids)

    def _break(self, match: re.Match[str]) -> str:
        text = match.group()
        return text[:1] + self._alias(None) + text[1:]

    def _alias(self, text: str | None) -> str:
        """The alias of a control token's text, or (None) of nothing at all."""
        key = text or ""
        if key not in self._aliases:
            alias = f"\U00100000{self._nonce}.{len(self._aliases)}\U00100001"
            flags = self._tokens[self._ids[text]] if text else None
            token = tokenizers.AddedToken(
                alias,
                lstrip=flags.lstrip if flags else False,
                rstrip=flags.rstrip if flags else False,
                normalized=False,
                special=False,
            )
            self._raw.add_tokens([token])
            alias_id = self._raw.token_to_id(alias)
            assert alias_id is not None
            self._meaning[alias_id] = self._ids[text] if text else None
            self._aliases[key] = alias
        return self._aliases[key]


def _token_pattern(token: tokenizers.AddedToken) -> str:
    text = re.escape(token.content)
    return rf"(?<!\w){text}(?!\w)" if token.single_word else text


def _disjoint(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged
