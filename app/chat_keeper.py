"""Between the chats of the window and the history: what is said is written, what was stored becomes a chat again."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

from PySide6.QtCore import QCoreApplication, QObject

from app.chat_settings import fitting
from app.chat_tree import Node
from app.conversation import Chat, Reply, Said, Turn
from app.history import packing
from app.history.copying import CopyChat
from app.history.operations import (
    AddChat,
    AddMessage,
    AppendEvents,
    BeginReply,
    ChangeChat,
    EndReply,
    RemoveChat,
    ResumeReply,
    SetComparison,
    SetValue,
    TakeBack,
)
from app.history.reader import Reader
from app.history.rows import INTERRUPTED, USER, WRITING, ChatRow, StoredChat, StoredReply, one_line, storable
from app.history.writer import Ticket
from app.history_service import History
from engine.records import CycleEvent, Event, Finished, StopReason

FROM_HISTORY = 1 << 30  # ids of replies out of the history: above those of the engine host
DRAFT = "draft"
OPEN = "open"
TITLE_SHOWN = 120


def row_of(chat: Chat, fallback: str = "") -> ChatRow:
    """The chat as the list shows it."""
    title = one_line(chat.title, TITLE_SHOWN) or fallback
    return ChatRow(chat.chat_id, title, chat.pinned, chat.created, chat.updated)


class ChatKeeper(QObject):
    """Writes what happens in chats, in order; nothing of it waits."""

    def __init__(self, history: History, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._history = history
        self._made_here = count(FROM_HISTORY)
        self._said = Said()
        self._open = 0
        self._made_elsewhere = count(-FROM_HISTORY, -1)

    # Writing

    def keep(self, chat: Chat) -> None:
        """Begin to keep a chat. What came into it out of replay files is kept with it."""
        if chat.kept:
            return
        if chat.draft:
            self.keep_draft(chat, "")
        chat.kept = True
        self._history.put(AddChat(row_of(chat), dict(chat.own)))
        for turn in chat.turns:
            if turn.reply is not None and turn.reply.finished is not None:
                parent = next((node.parent for node in chat.tree if node.id == turn.user_id), None)
                self._history.put(AddMessage(turn.user_id, chat.chat_id, parent, USER, turn.user, chat.created))
                self._begin(chat, turn, turn.reply, tuple(turn.reply.events))
                self._history.put(EndReply(turn.reply.message_id))

    def asked(self, chat: Chat, turn: Turn) -> Ticket:
        """A question was put to a chat; the ticket tells when it is on the disk."""
        parent = chat.tree.node(turn.user_id).parent
        self.keep_draft(chat, "")
        return self._history.put(AddMessage(turn.user_id, chat.chat_id, parent, USER, turn.user, chat.updated))

    def begun(self, chat: Chat, turn: Turn, reply: Reply) -> None:
        """A reply is about to be written."""
        self._begin(chat, turn, reply, ())

    def _begin(self, chat: Chat, turn: Turn, reply: Reply, events: tuple[Event, ...]) -> None:
        stored = StoredReply(
            request=packing.plain_request(reply.request),
            model=reply.info,
            comparison=reply.comparison,
            recorded=reply.reply_id < 0,
            times=reply.times,
            events=events,
        )
        self._history.put(BeginReply(reply.message_id, chat.chat_id, turn.user_id, time.time(), stored))

    def resumed(self, reply: Reply) -> None:
        """A reply that was over is written on."""
        self._history.put(ResumeReply(reply.message_id, tuple(reply.events)))

    def came(self, reply: Reply, events: list[Event]) -> None:
        """Events of a reply came, its end perhaps among them."""
        self._history.put(AppendEvents(reply.message_id, tuple(events)))
        if isinstance(events[-1], Finished):
            self._history.put(EndReply(reply.message_id))

    def broken_off(self, reply: Reply) -> None:
        """The window closes while a reply is written: what came of it counts as stopped."""
        cycles = [event.record for event in reply.events if isinstance(event, CycleEvent)]
        tokens = sum(len(record.emitted_ids) for record in cycles)
        seconds = sum(record.seconds for record in cycles)
        self.came(reply, [Finished(StopReason.STOPPED, "", 0, 0, tokens, 0.0, seconds, 0)])

    def taken_back(self, chat: Chat, message: int) -> None:
        """A message and what follows it count as never said; a chat without any as never begun."""
        if not len(chat.tree):
            chat.kept = False
            self._history.put(RemoveChat(chat.chat_id))
        else:
            self._history.put(TakeBack(message, chat.chat_id, chat.leaf))

    def shown(self, chat: Chat) -> None:
        """Another part of a chat's tree is shown."""
        if chat.kept:
            self._history.put(ChangeChat(chat.chat_id, leaf=chat.leaf))

    def opened(self, chat: Chat) -> None:
        """A chat is the one that is open; after a run that does not end well it is brought back."""
        number = chat.chat_id if chat.kept else 0
        if number != self._open:
            self._open = number
            self._history.put(SetValue(OPEN, str(number)))

    def closed(self) -> None:
        """The run ends well: the next one begins with a new chat."""
        if self._history.is_open:
            self._history.put(SetValue(OPEN, "0"))

    def compared(self, reply: Reply) -> None:
        """A comparison of a reply was made."""
        if reply.message_id:
            self._history.put(SetComparison(reply.message_id, reply.comparison))

    def keep_draft(self, chat: Chat, text: str) -> None:
        """What is written in the composer and not sent; nothing to do where it is what was kept before."""
        if text == chat.draft:
            return
        chat.draft = text
        self._history.put(ChangeChat(chat.chat_id, draft=text) if chat.kept else SetValue(DRAFT, text))

    def keep_settings(self, chat: Chat) -> None:
        """The chat's own values of settings changed."""
        if chat.kept:
            self._history.put(ChangeChat(chat.chat_id, settings=dict(chat.own)))

    def copy(self, source: int, row: ChatRow, leaf: int | None, then: Callable[[], None]) -> None:
        """Copy a chat, or only what leads to one of its messages."""
        self._history.put(CopyChat(source, row, self._history.ids, leaf), then)

    # Reading

    def read(self, chat_id: int) -> Chat | None:
        """A chat out of the history; the replies in it have their texts only."""
        stored = self._history.read(lambda reader: reader.chat(chat_id))
        return None if stored is None else self._chat_of(stored)

    def open_before(self) -> int:
        """The chat that the run before had open at its end; 0 for a new one."""
        value = self._history.read(lambda reader: reader.value(OPEN)) or ""
        return int(value) if value.isdecimal() else 0

    def fresh_draft(self) -> str:
        """What was written last in a chat that had not begun."""
        return self._history.read(lambda reader: reader.value(DRAFT)) or ""

    def _chat_of(self, stored: StoredChat) -> Chat:
        row = stored.row
        chat = Chat(
            row.id,
            given_title=row.title,
            pinned=row.pinned,
            created=row.created,
            updated=row.updated,
            own=fitting(stored.settings),
            draft=stored.draft,
            kept=True,
        )
        for message in stored.messages:
            by_user = message.role == USER
            parent = message.parent if message.parent in chat.tree else None
            content: str | Reply = message.text
            if not by_user:
                broken = message.state in (INTERRUPTED, WRITING)
                content = Reply.unread(next(self._made_here), message.id, message.text, broken)
            chat.tree.add(Node(message.id, parent, by_user, content))
        leaf = stored.leaf if stored.leaf in chat.tree else chat.tree.newest_leaf()
        chat.show(leaf)
        return chat

    def fill(self, chat: Chat, turn: Turn) -> None:
        """Read all that is kept of a turn's reply, unless it has been."""
        reply = turn.reply
        if reply is None or reply.read:
            return
        stored = self._history.read(lambda reader: reader.reply(reply.message_id)) or StoredReply()
        text = reply.text
        if stored.recorded:
            reply.reply_id = next(self._made_elsewhere)
        reply.info, reply.times, reply.comparison = stored.model, stored.times, stored.comparison
        reply.request = packing.request_of(stored.request, self._prompt(chat, turn, stored.request), chat.chat_id)
        events = stored.events if _spell(stored.events, text) else ()
        for event in events:
            reply.append(event)
        if reply.finished is None:
            reply.append(self._end(reply, "" if events else text))

    def _prompt(self, chat: Chat, turn: Turn, request: dict[str, Any]) -> tuple[Any, ...]:
        system = request.get("system")
        place, said = self._place_of(chat, turn), self._said
        goes_on = 0 < said.count <= place and chat.turns[said.count - 1] is said.last
        if not goes_on:
            said = self._said = Said()
        for earlier in chat.turns[said.count : place]:
            said.add(earlier)
        return said.before(turn.user, system if isinstance(system, str) else "")

    def _place_of(self, chat: Chat, turn: Turn) -> int:
        return len(chat.turns) - 1 - chat.turns[::-1].index(turn)

    def _end(self, reply: Reply, tail: str) -> Finished:
        """The end of a reply that has none of its own."""
        words, reason = None, StopReason.STOPPED
        if reply.interrupted:
            reason = StopReason.FAILED
            words = QCoreApplication.translate(
                "History", "Interrupted: Specular ended while this was being written. What had come was kept."
            )
        elif tail:
            reason = StopReason.END_TOKEN  # its records cannot be read; that its text is whole is known
        statistics = reply.statistics
        return Finished(reason, tail, 0, 0, statistics.emitted, 0.0, statistics.seconds, 0, words)


def _spell(events: tuple[Event, ...], text: str) -> bool:
    """Whether these events are all of a reply; where some are lost its text is shown without them."""
    return bool(events) and storable(packing.text_of(events)) == text


def reading_chats(after: ChatRow | None, most: int) -> Callable[[Reader], list[ChatRow]]:
    """The question for the next chats of the list."""
    return lambda reader: reader.chats(after, most)
