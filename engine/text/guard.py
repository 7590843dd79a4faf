"""Keeps control-token texts in messages apart from those of the template while a prompt is rendered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from engine.errors import TemplateError
from engine.settings import Message
from engine.text.tokenizer import Tokenizer

_PRIVATE = range(0xF0000, 0xFFFFE)  # a plane of characters with no meaning of their own


class MessageGuard:
    """Swaps each control-token text inside message contents for one private character, and back after rendering.

    messages: the messages with placeholders, to be rendered. The characters are ones that occur in no message, so
    nothing a user writes can be taken for a placeholder. Markers that are not special tokens (`<think>`) stay in
    assistant turns: those are the model's own words, and templates look for them there.
    """

    def __init__(self, messages: Sequence[Message], tokenizer: Tokenizer) -> None:
        taken = {character for message in messages for character in message.content}
        self._free = (chr(code) for code in _PRIVATE if chr(code) not in taken)
        self._hidden: dict[str, str] = {}
        self._by_text: dict[str, str] = {}
        self.messages = tuple(self._guarded(message, tokenizer) for message in messages)

    def parts(self, rendered: str) -> list[tuple[str, bool]]:
        """The rendered prompt as (text, may hold control tokens) parts."""
        if not self._hidden:
            return [(rendered, True)]
        pieces = re.split("([" + "".join(self._hidden) + "])", rendered)
        return [(self._hidden[p], False) if p in self._hidden else (p, True) for p in pieces if p]

    def restored(self, rendered: str) -> str:
        """The rendered prompt with the users' own texts back in place."""
        return "".join(text for text, _ in self.parts(rendered))

    def _guarded(self, message: Message, tokenizer: Tokenizer) -> Message:
        text, done, pieces = message.content, 0, []
        for start, end in tokenizer.control_spans(text):
            if message.role == "assistant" and not tokenizer.is_special(text[start:end]):
                continue
            pieces += [text[done:start], self._placeholder(text[start:end])]
            done = end
        return replace(message, content="".join([*pieces, text[done:]])) if pieces else message

    def _placeholder(self, text: str) -> str:
        if text not in self._by_text:
            character = next(self._free, None)
            if character is None:
                raise TemplateError("The messages use too many private characters to be put into a chat template.")
            self._by_text[text] = character
            self._hidden[character] = text
        return self._by_text[text]
