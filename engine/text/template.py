"""Chat templates: messages to the prompt a model was trained on, safely and without losing a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine.errors import TemplateError
from engine.settings import Message
from engine.text.fallbacks import FORMATS, PLAIN, ChatFormat, fallback_format
from engine.text.guard import MessageGuard
from engine.text.meter import TemplateRefused
from engine.text.sandbox import TemplateSandbox
from engine.text.tokenizer import Tokenizer

OWN = "the model's own"
CUSTOM = "custom"

_PROBE = Message("user", "probe")
_PROBE_SYSTEM = Message("system", "probe of system text")

_NO_SYSTEM = (
    "This model's chat template takes no system message: the system prompt is put in front of the first user message."
)
_ALTERNATES = "This model's chat template wants alternating turns: neighbouring messages of one side are joined."


class ChatTemplate:
    """Renders messages to a prompt that ends where the assistant's reply begins.

    name: "the model's own", "custom", or the fallback's: "Vicuna", "ChatML", "plain".
    note: a sentence for the user where the model's template is missing, unsafe, or was worked around.
    stop_strings: end a reply in this format, besides the end tokens.
    end_ids: end tokens of this format that the model's files need not name.

    Where a template refuses a system message or drops it, its text goes in front of the first user message; where
    it wants strictly alternating turns, neighbours of one side are joined. Nothing is left out silently.
    """

    def __init__(self, chat_format: ChatFormat, tokenizer: Tokenizer, *, note: str | None = None) -> None:
        """Raises TemplateError when the template is unsafe, broken, or cannot render one user message."""
        self.name = chat_format.name
        self.stop_strings = chat_format.stop_strings
        marked = (tokenizer.token_id(text) for text in chat_format.end_markers)
        self.end_ids = frozenset(i for i in marked if i is not None)
        self._fallback = chat_format.name in FORMATS
        self._sandbox = TemplateSandbox(chat_format.source)
        self._variables = {"bos_token": tokenizer.bos_text or "", "eos_token": tokenizer.eos_text or ""}
        self._render_once([_PROBE])
        self._takes_system = self._takes([_PROBE_SYSTEM, _PROBE])
        notes = [
            note,
            None if self._takes_system else _NO_SYSTEM,
            None if self._takes([_PROBE, _PROBE]) else _ALTERNATES,
        ]
        self.note = " ".join(sentence for sentence in notes if sentence) or None

    @classmethod
    def for_folder(cls, folder: Path, tokenizer: Tokenizer, name: str | None = None) -> ChatTemplate:
        """The template in the model's files, or a fallback with a note that says why. Never fails.

        name: what notes call the model; the folder's own name where it is None.
        """
        name = name or folder.name
        source = tokenizer.text_files.template
        fallback = fallback_format(tokenizer)
        described = "a plain User/Assistant text" if fallback is PLAIN else f"the {fallback.name} format"
        if source is None:
            return cls(fallback, tokenizer, note=f"{name} has no chat template, so {described} is used.")
        try:
            return cls(ChatFormat(OWN, source), tokenizer)
        except TemplateError as error:
            return cls(fallback, tokenizer, note=f"{error} For {name}, {described} is used instead.")

    @classmethod
    def from_string(cls, source: str, tokenizer: Tokenizer) -> ChatTemplate:
        """A template the user typed. Raises TemplateError when it is unsafe or broken."""
        return cls(ChatFormat(CUSTOM, source), tokenizer)

    @classmethod
    def named(cls, name: str, tokenizer: Tokenizer) -> ChatTemplate:
        """One of the built-in formats (`FORMATS`). Raises TemplateError for another name."""
        if name not in FORMATS:
            raise TemplateError(f"There is no chat format {name!r}; there are {', '.join(FORMATS)}.")
        return cls(FORMATS[name], tokenizer)

    def render_text(self, messages: Sequence[Message], tokenizer: Tokenizer | None = None) -> str:
        """The prompt as text, without the begin token that the tokenizer adds. Raises TemplateError."""
        if tokenizer is None:
            return self._render(messages)
        guard = MessageGuard(messages, tokenizer)
        return guard.restored(self._render(guard.messages))

    def render_ids(self, messages: Sequence[Message], tokenizer: Tokenizer) -> list[int]:
        """The prompt's ids, with one begin token where the template or, in fallback formats, the model wants it.

        They are the tokenizer's ids of the rendered text, but control-token texts inside messages are ordinary
        text. Raises TemplateError.
        """
        guard = MessageGuard(messages, tokenizer)
        ids = tokenizer.encode_parts(guard.parts(self._render(guard.messages)))
        return tokenizer.with_bos(ids) if self._fallback else ids

    def _render(self, messages: Sequence[Message]) -> str:
        """Render as given; if the template refuses that or drops the system text, render the folded messages."""
        folded = folded_messages(messages)
        has_system = any(message.role == "system" for message in messages)
        if has_system and not self._takes_system:
            return self._render_once(folded)
        try:
            rendered = self._render_once(messages)
            if not has_system or self._shows_system(rendered, messages):
                return rendered
        except TemplateRefused:
            raise
        except TemplateError as error:
            if folded == list(messages):
                raise
            try:
                return self._render_once(folded)
            except TemplateError:
                raise error from None
        return self._render_once(folded)

    def _shows_system(self, rendered: str, messages: Sequence[Message]) -> bool:
        """Whether the system text is in the prompt, as it is or (a template may quote or indent it) rewritten."""
        if all(m.content.strip() in rendered for m in messages if m.role == "system"):
            return True
        word = "SpecularSystemWord"
        marked = [replace(m, content=word) if m.role == "system" else m for m in messages]
        return word in self._render_once(marked)

    def _render_once(self, messages: Sequence[Message]) -> str:
        turns = [{"role": message.role, "content": message.content} for message in messages]
        values = {"messages": turns, "add_generation_prompt": True, "tools": None, "documents": None}
        return self._sandbox.render_bounded(values | self._variables)

    def _takes(self, messages: Sequence[Message]) -> bool:
        try:
            rendered = self._render_once(messages)
        except TemplateRefused:
            raise
        except TemplateError:
            return False
        return all(message.content in rendered for message in messages)


def folded_messages(messages: Sequence[Message]) -> list[Message]:
    """The same words in strictly alternating turns that start with the user: system text leads the first user turn.

    Neighbouring turns of one role are joined by an empty line. Where the first turn is the assistant's, a user turn
    with the system text (or nothing) comes before it.
    """
    system = "\n\n".join(m.content for m in messages if m.role == "system" and m.content)
    turns: list[Message] = []
    for message in messages:
        if message.role == "system":
            continue
        if turns and turns[-1].role == message.role:
            turns[-1] = replace(turns[-1], content=f"{turns[-1].content}\n\n{message.content}")
        else:
            turns.append(message)
    if not turns or turns[0].role != "user":
        return [Message("user", system), *turns]
    first = f"{system}\n\n{turns[0].content}" if system else turns[0].content
    return [replace(turns[0], content=first), *turns[1:]]
