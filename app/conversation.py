"""Chats as plain data: turns, replies made of engine events, and the request that continues a chat. No Qt."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from app.chat_tree import Node, Tree
from app.settings import AppSettings
from engine.comparison import Comparison
from engine.records import CycleEvent, Event, Finished, ModelInfo, Opening
from engine.settings import GenerateRequest, Message
from engine.statistics import ReplyStatistics

TITLE_LENGTH = 40
LOST = "…"  # stands for a question that could not be read any more


@dataclass(slots=True, eq=False)
class Reply:
    """One reply as it came: its events in order, its text, its counters.

    `reply_id` is the engine host's, or below 0 for a reply that was made elsewhere and came in a file; of one out of
    the history it is above all of these. It is of this run. request, info: what was asked of which model. times: those
    of the file. message_id: its number in the chat's tree, 0 where it has none. read: False while no more than the text
    was read from the history. interrupted: the program ended while it was being written.
    """

    reply_id: int
    request: GenerateRequest | None = None
    info: ModelInfo | None = None
    times: tuple[float, ...] | None = None
    events: list[Event] = field(default_factory=list)
    statistics: ReplyStatistics = field(default_factory=ReplyStatistics)
    finished: Finished | None = None
    comparison: Comparison | None = None
    message_id: int = 0
    read: bool = True
    interrupted: bool = False
    _pieces: list[str] = field(default_factory=list)

    @classmethod
    def unread(cls, reply_id: int, message_id: int, text: str, interrupted: bool) -> Reply:
        """A reply out of the history of which only the text is known by now."""
        return cls(reply_id, message_id=message_id, read=False, interrupted=interrupted, _pieces=[text])

    def reopen(self) -> Finished | None:
        """Take the end away again, so that it can be written on; what was taken away."""
        end = self.finished
        if end is not None and self.events and self.events[-1] is end:
            self.events.pop()
            self._pieces.pop()
        self.finished = None
        return end

    def append(self, event: Event) -> None:
        """Take one more event."""
        if not self.read:
            self.read = True
            self._pieces.clear()
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


class Turn:
    """What the user wrote and what came of it (None while nothing has been asked of the engine).

    user_id: number of the user's message in the chat's tree, 0 where it has none.
    """

    __slots__ = ("reply", "user", "user_id")

    def __init__(
        self, user: str, reply: Reply | None = None, comparison: Comparison | None = None, user_id: int = 0
    ) -> None:
        self.user = user
        self.reply = reply
        self.user_id = user_id
        if comparison is not None:
            self.comparison = comparison

    @property
    def comparison(self) -> Comparison | None:
        """Of the same prompt by plain decoding and with speculation, once that was made. It belongs to the reply."""
        return self.reply.comparison if self.reply is not None else None

    @comparison.setter
    def comparison(self, comparison: Comparison | None) -> None:
        if self.reply is not None:
            self.reply.comparison = comparison


@dataclass(slots=True, eq=False)
class Chat:
    """One chat. turns: what is shown of its tree, from the beginning to the message said last.

    kept: whether it is in the history, which it is from the first question on. given_title: as the user named it.
    own: its values of settings (`app.chat_settings`). draft: text that was not sent.
    """

    chat_id: int
    turns: list[Turn] = field(default_factory=list)
    given_title: str = ""
    pinned: bool = False
    created: float = field(default_factory=time.time)
    updated: float = 0.0
    own: dict[str, Any] = field(default_factory=dict)
    draft: str = ""
    kept: bool = False
    tree: Tree[str | Reply] = field(default_factory=Tree)

    @property
    def title(self) -> str:
        """As the user named it, or the first line of the first question, cut at a word; empty for an empty chat."""
        if self.given_title:
            return self.given_title
        return short_title(self.turns[0].user if self.turns else "")

    @property
    def replay(self) -> bool:
        """Whether all it holds came out of a replay file: it is called a replay wherever it is named."""
        if self.kept:
            return False
        return bool(self.turns) and all(turn.reply is not None and turn.reply.reply_id < 0 for turn in self.turns)

    @property
    def leaf(self) -> int | None:
        """The number of the message said last, of those shown."""
        if not self.turns:
            return None
        last = self.turns[-1]
        return last.reply.message_id if last.reply is not None else last.user_id

    def show(self, leaf: int | None) -> None:
        """Show what leads to this message of the tree."""
        self.turns[:] = turns_of(self.tree.path(leaf))

    def turn(self, reply_id: int) -> Turn | None:
        """The turn whose reply has this id, if it is of this chat."""
        for turn in reversed(self.turns):
            if turn.reply is not None and turn.reply.reply_id == reply_id:
                return turn
        return None

    def reply(self, reply_id: int) -> Reply | None:
        """The reply with this id, if it is of this chat, shown or not."""
        turn = self.turn(reply_id)
        if turn is not None:
            return turn.reply
        hidden = (node.content for node in self.tree if not node.by_user)
        return next((reply for reply in hidden if isinstance(reply, Reply) and reply.reply_id == reply_id), None)

    def take_back(self) -> str:
        """Remove the last turn and give back what the user wrote."""
        turn = self.turns.pop()
        if turn.user_id:
            self.tree.remove(turn.user_id)
        return turn.user

    def request(self, settings: AppSettings, info: ModelInfo | None) -> GenerateRequest:
        """The request for a reply to the last turn. Raises BadSetting as `GenerateRequest` does."""
        return GenerateRequest(
            messages=self.messages(settings.system_prompt),
            sampling=settings.sampling(),
            speculation=settings.speculating(info),
            max_new_tokens=settings.max_new_tokens,
            conversation=self.chat_id,
        )

    def messages(self, system_prompt: str) -> tuple[Message, ...]:
        """The chat as alternating messages.

        A half reply counts as the assistant's turn. A question whose reply was stopped before its first word is put
        before the next question, so that nothing the user said is lost and the roles still alternate.
        """
        said = Said()
        for turn in self.turns[:-1]:
            said.add(turn)
        return said.before(self.turns[-1].user, system_prompt) if self.turns else ()


@dataclass(slots=True, eq=False)
class Said:
    """Turns as messages, one after another, so that the prompts of a long chat need not each begin at its beginning."""

    _messages: list[Message] = field(default_factory=list)
    _unanswered: list[str] = field(default_factory=list)
    last: Turn | None = None
    count: int = 0

    def add(self, turn: Turn) -> None:
        """The next turn."""
        self.last, self.count = turn, self.count + 1
        self._unanswered.append(turn.user or LOST)
        text = turn.reply.text if turn.reply is not None else ""
        if text:
            self._messages += (Message("user", "\n\n".join(self._unanswered)), Message("assistant", text))
            self._unanswered.clear()

    def before(self, question: str, system_prompt: str) -> tuple[Message, ...]:
        """What a reply to this question would be asked with."""
        system = (Message("system", system_prompt),) if system_prompt.strip() else ()
        asked = Message("user", "\n\n".join([*self._unanswered, question]))
        return (*system, *self._messages, asked)


def short_title(text: str) -> str:
    """The first line of a text, cut at a word."""
    lines = text[: 40 * TITLE_LENGTH].strip().splitlines()
    line = lines[0].strip() if lines else ""
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[:TITLE_LENGTH]
    return (cut[: cut.rfind(" ")] if " " in cut[TITLE_LENGTH // 2 :] else cut).rstrip(" ,.;:") + "…"


def turns_of(path: Iterable[Node[str | Reply]]) -> list[Turn]:
    """The turns of a path through a chat's tree."""
    turns: list[Turn] = []
    for node in path:
        if isinstance(node.content, str):
            turns.append(Turn(node.content, user_id=node.id))
        elif turns and turns[-1].reply is None:
            turns[-1].reply = node.content
        else:
            turns.append(Turn("", node.content))
    return turns


def _counter() -> Callable[[], int]:
    return count().__next__


@dataclass(slots=True, eq=False)
class Chats:
    """The chats that were open in this run, newest first, and the one that is.

    next_id: gives numbers for chats and messages. read: a chat out of the history, None where it has none.
    """

    next_id: Callable[[], int] = field(default_factory=_counter)
    read: Callable[[int], Chat | None] = lambda _: None
    chats: list[Chat] = field(default_factory=list)
    current: Chat = field(init=False)
    _empty: Chat = field(init=False)

    def __post_init__(self) -> None:
        self.current = self._empty = Chat(self.next_id())

    def new(self) -> Chat:
        """Open the empty chat: there is one at a time, and it keeps its draft."""
        if self._empty.turns or self._empty.kept:
            self._empty = Chat(self.next_id())
        self.current = self._empty
        return self.current

    def open(self, chat_id: int) -> Chat:
        """Open the chat with this id. Raises KeyError when there is none."""
        chat = self.known(chat_id)
        if chat is None:
            chat = self.read(chat_id)
            if chat is None:
                raise KeyError(chat_id)
            self.chats.append(chat)
        self.current = chat
        return chat

    def known(self, chat_id: int) -> Chat | None:
        """The chat, where it was opened in this run."""
        return next((chat for chat in self.chats if chat.chat_id == chat_id), None)

    def ask(self, text: str) -> Turn:
        """Put a question to the open chat, which is listed from its first question on."""
        chat = self.current
        turn = Turn(text, user_id=self.next_id())
        chat.tree.add(Node(turn.user_id, chat.leaf, True, text))
        chat.turns.append(turn)
        chat.updated = time.time()
        self._first(chat)
        return turn

    def begin_reply(self, turn: Turn, reply: Reply) -> None:
        """A reply to a turn of the open chat begins."""
        reply.message_id = reply.message_id or self.next_id()
        turn.reply = reply
        self.current.tree.add(Node(reply.message_id, turn.user_id, False, reply))

    def adopt(self, chat: Chat) -> None:
        """Give the turns of a chat that came in a file their places in its tree."""
        last: int | None = None
        for turn in chat.turns:
            if not turn.user_id:
                turn.user_id = self.next_id()
                chat.tree.add(Node(turn.user_id, last, True, turn.user))
            last = turn.user_id
            if turn.reply is not None:
                if not turn.reply.message_id:
                    turn.reply.message_id = self.next_id()
                    chat.tree.add(Node(turn.reply.message_id, last, False, turn.reply))
                last = turn.reply.message_id

    def add_replay(self, turn: Turn) -> Chat:
        """Open a chat of its own for a turn out of a replay file."""
        self.current = chat = Chat(self.next_id(), [turn], updated=time.time())
        self._first(chat)
        return chat

    def _first(self, chat: Chat) -> None:
        if chat in self.chats:
            self.chats.remove(chat)
        self.chats.insert(0, chat)

    def drop_if_empty(self, chat: Chat) -> None:
        """Forget a chat whose only question was taken back."""
        if not len(chat.tree):
            self.forget(chat)

    def forget(self, chat: Chat) -> None:
        """A chat is not there any more, or is read anew when it is next opened."""
        if chat in self.chats:
            self.chats.remove(chat)

    def owner(self, reply_id: int) -> Chat | None:
        """The chat that holds this reply."""
        return next((chat for chat in self.chats if chat.reply(reply_id) is not None), None)
