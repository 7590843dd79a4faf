"""How a loaded model's messages become token ids and ids text, for programs that are compared with the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.model.loaded import LoadedModel
from engine.settings import Message


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Of one model, as long as it is loaded."""

    loaded: LoadedModel

    def chat_ids(self, messages: Sequence[Message]) -> list[int]:
        """Messages as the prompt that the engine would read. Raises BadSetting without a tokenizer."""
        return self.loaded.chat_ids(messages)

    def text_of(self, ids: Sequence[int]) -> str:
        """What ids say."""
        return self.loaded.tokenizer.decode(ids) if self.loaded.tokenizer is not None else ""

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end a reply."""
        return self.loaded.end_ids(chats=True)
