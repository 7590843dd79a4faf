"""Chats as plain data: turns, replies made of engine events, and the request that continues a chat. No Qt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.settings import AppSettings
from engine.comparison import Comparison
from engine.records import CycleEvent, Event, Finished, ModelInfo, Opening
from engine.settings import GenerateRequest, Message
from engine.statistics import ReplyStatistics

TITLE_LENGTH = 40


@dataclass(slots=True, eq=False)
class Reply:
    """One reply as it came: its events in order, its text, its counters.

    `reply_id` is the engine host's, or below 0 for a reply out of a replay file. request, info: what was asked of
    which model. times: those of the replay file.
    """

    reply_id: int
    request: GenerateRequest | None = None
    info: ModelInfo | None = None
    times: tuple[float, ...] | None = None
    events: list[Event] = field(default_factory=list)
    statistics: ReplyStatistics = field(default_factory=ReplyStatistics)
    finished: Finished | None = None
    _pieces: list[str] = field(default_factory=list)

    def append(self, event: Event) -> None:
        """Take one more event."""
        self.events.append(event)
        if isinstance(event, Opening):
            self._pieces.extend(event.pieces)
        elif isinstance(event, CycleEvent):
            self._pieces.extend(event.pieces)
            self.statistics = self.statistics.with_cycle(event.record)
        elif isinstance(event, Finished):
            self._pieces.append(event.tail)
            self.finished = event

    def made_by(self, info: ModelInfo | None) -> bool:
        """Whether this model wrote it, as it is loaded now."""
        if self.reply_id < 0 or self.info is None or info is None:
            return False
        return (self.info.path, self.info.device) == (info.path, info.device)

    @property
    def text(self) -> str:
        """What the reply says so far."""
        return "".join(self._pieces)

    @property
    def context_tokens(self) -> int | None:
        """Tokens in the KV cache after the last cycle; None before the first."""
        for event in reversed(self.events):
            if isinstance(event, CycleEvent):
                return event.record.kv_length
        return None


@dataclass(slots=True, eq=False)
class Turn:
    """What the user wrote and what came of it (None while nothing has been asked of the engine).

    comparison: of the same prompt by plain decoding and with speculation, once that was made.
    """

    user: str
    reply: Reply | None = None
    comparison: Comparison | None = None


@dataclass(slots=True, eq=False)
class Chat:
    """One chat of this run."""

    chat_id: int
    turns: list[Turn] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The first line of the first question, cut at a word; empty for an empty chat."""
        lines = self.turns[0].user.strip().splitlines() if self.turns else []
        line = lines[0].strip() if lines else ""
        if len(line) <= TITLE_LENGTH:
            return line
        cut = line[:TITLE_LENGTH]
        return (cut[: cut.rfind(" ")] if " " in cut[TITLE_LENGTH // 2 :] else cut).rstrip(" ,.;:") + "…"

    @property
    def replay(self) -> bool:
        """Whether all it holds came out of a replay file: it is called a replay wherever it is named."""
        return bool(self.turns) and all(turn.reply is not None and turn.reply.reply_id < 0 for turn in self.turns)

    def turn(self, reply_id: int) -> Turn | None:
        """The turn whose reply has this id, if it is of this chat."""
        for turn in reversed(self.turns):
            if turn.reply is not None and turn.reply.reply_id == reply_id:
                return turn
        return None

    def reply(self, reply_id: int) -> Reply | None:
        """The reply with this id, if it is of this chat."""
        turn = self.turn(reply_id)
        return turn.reply if turn is not None else None

    def take_back(self) -> str:
        """Remove the last turn and give back what the user wrote."""
        return self.turns.pop().user

    def request(self, settings: AppSettings, info: ModelInfo | None) -> GenerateRequest:
        """The request for a reply to the last turn. Raises BadSetting as `GenerateRequest` does."""
        return GenerateRequest(
            messages=tuple(self.messages(settings.system_prompt)),
            sampling=settings.sampling(),
            speculation=settings.speculating(info),
            max_new_tokens=settings.max_new_tokens,
            conversation=self.chat_id,
        )

    def messages(self, system_prompt: str) -> Iterable[Message]:
        """The chat as alternating messages.

        A half reply counts as the assistant's turn. A question whose reply was stopped before its first word is put
        before the next question, so that nothing the user said is lost and the roles still alternate.
        """
        if system_prompt.strip():
            yield Message("system", system_prompt)
        unanswered: list[str] = []
        for turn in self.turns[:-1]:
            unanswered.append(turn.user)
            if turn.reply is not None and turn.reply.text:
                yield Message("user", "\n\n".join(unanswered))
                yield Message("assistant", turn.reply.text)
                unanswered.clear()
        if self.turns:
            yield Message("user", "\n\n".join([*unanswered, self.turns[-1].user]))


@dataclass(slots=True, eq=False)
class Chats:
    """The chats of this run, newest first, and the one that is open."""

    chats: list[Chat] = field(default_factory=list)
    current: Chat = field(default_factory=lambda: Chat(0))
    _last_id: int = 0

    def new(self) -> Chat:
        """Open an empty chat; an empty one that is open already is used again."""
        if self.current.turns:
            self._last_id += 1
            self.current = Chat(self._last_id)
        return self.current

    def open(self, chat_id: int) -> Chat:
        """Open the chat with this id. Raises KeyError when there is none."""
        for chat in self.chats:
            if chat.chat_id == chat_id:
                self.current = chat
                return chat
        raise KeyError(chat_id)

    def ask(self, text: str) -> Turn:
        """Put a question to the open chat, which is listed from its first question on."""
        turn = Turn(text)
        self.current.turns.append(turn)
        if self.current not in self.chats:
            self.chats.insert(0, self.current)
        return turn

    def add_replay(self, turn: Turn) -> Chat:
        """Open a chat of its own for a turn out of a replay file."""
        chat = self.new()
        chat.turns.append(turn)
        self.chats.insert(0, chat)
        return chat

    def drop_if_empty(self, chat: Chat) -> None:
        """Forget a chat whose only question was taken back."""
        if not chat.turns and chat in self.chats:
            self.chats.remove(chat)

    def owner(self, reply_id: int) -> Chat | None:
        """The chat that holds this reply."""
        return next((chat for chat in self.chats if chat.reply(reply_id) is not None), None)
