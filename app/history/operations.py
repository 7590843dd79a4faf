"""Everything that changes the history, one small operation each. The writer's thread applies them, in order."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from app.history import index, packing
from app.history.rows import ASSISTANT, OVER, WRITING, ChatRow, StoredReply, storable
from engine.comparison import Comparison
from engine.plain_data import to_plain
from engine.records import Event


class Operation(Protocol):
    """urgent: written at once rather than with the next batch."""

    @property
    def urgent(self) -> bool: ...

    def apply(self, db: sqlite3.Connection) -> None:
        """Do it, inside a transaction. Raises sqlite3.Error."""


@dataclass(frozen=True, slots=True)
class AddChat:
    """A new chat, in which nothing has been said yet."""

    row: ChatRow
    settings: dict[str, Any] = field(default_factory=dict)
    urgent: ClassVar[bool] = False

    def apply(self, db: sqlite3.Connection) -> None:
        row, settings = self.row, json.dumps(self.settings)
        db.execute(
            "INSERT INTO chats(id, title, pinned, created, updated, settings) VALUES(?, ?, ?, ?, ?, ?)",
            (row.id, storable(row.title), row.pinned, row.created, row.updated, settings),
        )


@dataclass(frozen=True, slots=True)
class AddMessage:
    """A message that is whole. The chat shows it as its last, and is the one used last.

    Urgent: the user's words are on the disk before the engine sees them.
    """

    id: int
    chat: int
    parent: int | None
    role: str
    text: str
    created: float
    urgent: ClassVar[bool] = True

    def apply(self, db: sqlite3.Connection) -> None:
        text = storable(self.text)
        values = (self.id, self.chat, self.parent, self.role, OVER, self.created, text)
        db.execute("INSERT INTO messages VALUES(?, ?, ?, ?, ?, ?, ?)", values)
        index.add(db, self.id, text)
        db.execute(
            "UPDATE chats SET leaf = ?, updated = max(updated, ?) WHERE id = ?", (self.id, self.created, self.chat)
        )


@dataclass(frozen=True, slots=True)
class BeginReply:
    """A reply is about to be written. Events that are there already, of one out of a file, come with it."""

    id: int
    chat: int
    parent: int | None
    created: float
    reply: StoredReply
    urgent: ClassVar[bool] = False

    def apply(self, db: sqlite3.Connection) -> None:
        text = storable(packing.text_of(self.reply.events))
        values = (self.id, self.chat, self.parent, ASSISTANT, WRITING, self.created, text)
        db.execute("INSERT INTO messages VALUES(?, ?, ?, ?, ?, ?, ?)", values)
        add_reply(db, self.id, self.reply)
        db.execute("UPDATE chats SET leaf = ? WHERE id = ?", (self.id, self.chat))


def add_reply(db: sqlite3.Connection, message: int, reply: StoredReply) -> None:
    """Write all that belongs to a reply but is not its message."""
    db.execute(
        "INSERT INTO replies(message, request, model, recorded, times, comparison) VALUES(?, ?, ?, ?, ?, ?)",
        (
            message,
            json.dumps(reply.request),
            packing.model_text(reply.model),
            reply.recorded,
            None if reply.times is None else json.dumps(reply.times),
            _comparison_text(reply.comparison),
        ),
    )
    if reply.events:
        _add_part(db, message, packing.pack(reply.events))


def _comparison_text(comparison: Comparison | None) -> str | None:
    return None if comparison is None else json.dumps(to_plain(comparison))


def _add_part(db: sqlite3.Connection, message: int, data: bytes) -> None:
    db.execute(
        "INSERT INTO records(message, part, data) "
        "SELECT ?, coalesce(max(part) + 1, 0), ? FROM records WHERE message = ?",
        (message, data, message),
    )


@dataclass(frozen=True, slots=True)
class AppendEvents:
    """What the engine said since the last time."""

    message: int
    events: Sequence[Event]
    urgent: ClassVar[bool] = False

    def apply(self, db: sqlite3.Connection) -> None:
        text = storable(packing.text_of(self.events))
        db.execute("UPDATE messages SET text = text || ? WHERE id = ?", (text, self.message))
        _add_part(db, self.message, packing.pack(self.events))


@dataclass(frozen=True, slots=True)
class EndReply:
    """A reply is over: it can be found, and its parts become one."""

    message: int
    urgent: ClassVar[bool] = True

    def apply(self, db: sqlite3.Connection) -> None:
        found = db.execute("SELECT text FROM messages WHERE id = ? AND state = ?", (self.message, WRITING)).fetchone()
        if found is None:
            return
        db.execute("UPDATE messages SET state = ? WHERE id = ?", (OVER, self.message))
        index.add(db, self.message, found[0])
        parts = [row[0] for row in db.execute(PARTS, (self.message,))]
        if len(parts) > 1:
            db.execute("DELETE FROM records WHERE message = ?", (self.message,))
            _add_part(db, self.message, packing.repack(parts))


PARTS = "SELECT data FROM records WHERE message = ? ORDER BY part"


@dataclass(frozen=True, slots=True)
class ResumeReply:
    """A reply that was over is written on: from these events, which are the earlier ones without their end."""

    message: int
    events: Sequence[Event]
    urgent: ClassVar[bool] = False

    def apply(self, db: sqlite3.Connection) -> None:
        found = db.execute("SELECT text, state FROM messages WHERE id = ?", (self.message,)).fetchone()
        if found is None:
            return
        if found[1] != WRITING:
            index.remove(db, self.message, found[0])
        text = storable(packing.text_of(self.events))
        db.execute("UPDATE messages SET state = ?, text = ? WHERE id = ?", (WRITING, text, self.message))
        db.execute("DELETE FROM records WHERE message = ?", (self.message,))
        _add_part(db, self.message, packing.pack(self.events))


@dataclass(frozen=True, slots=True)
class SetComparison:
    """What comparing a reply with plain decoding found."""

    message: int
    comparison: Comparison | None
    urgent: ClassVar[bool] = False

    def apply(self, db: sqlite3.Connection) -> None:
        values = (_comparison_text(self.comparison), self.message)
        db.execute("UPDATE replies SET comparison = ? WHERE message = ?", values)


@dataclass(frozen=True, slots=True)
class TakeBack:
    """A message and all that follows it go, as if it had not been said; the chat shows `leaf` as its last."""

    message: int
    chat: int
    leaf: int | None
    urgent: ClassVar[bool] = False

    def apply(self, db: sqlite3.Connection) -> None:
        below = (
            "WITH RECURSIVE below(id) AS (VALUES(?) UNION "
            "SELECT messages.id FROM messages JOIN below ON parent = below.id) "
            "SELECT id, text, state FROM messages WHERE id IN below"
        )
        for message, text, state in db.execute(below, (self.message,)).fetchall():
            if state != WRITING:
                index.remove(db, message, text)
            db.execute("DELETE FROM messages WHERE id = ?", (message,))
        db.execute("UPDATE chats SET leaf = ? WHERE id = ?", (self.leaf, self.chat))


@dataclass(frozen=True, slots=True)
class ChangeChat:
    """Other values of one chat. What is None stays as it is."""

    chat: int
    title: str | None = None
    pinned: bool | None = None
    updated: float | None = None
    settings: dict[str, Any] | None = None
    draft: str | None = None
    leaf: int | None = None
    urgent: ClassVar[bool] = False

    def apply(self, db: sqlite3.Connection) -> None:
        values = {
            "title": None if self.title is None else storable(self.title),
            "pinned": self.pinned,
            "updated": self.updated,
            "settings": None if self.settings is None else json.dumps(self.settings),
            "draft": None if self.draft is None else storable(self.draft),
            "leaf": self.leaf,
        }
        changed = {name: value for name, value in values.items() if value is not None}
        if changed:
            columns = ", ".join(f"{name} = ?" for name in changed)
            db.execute(f"UPDATE chats SET {columns} WHERE id = ?", (*changed.values(), self.chat))


@dataclass(frozen=True, slots=True)
class DeleteChat:
    """A chat goes out of sight. `deleted` None brings it back; `RemoveChat` makes it final."""

    chat: int
    deleted: float | None
    urgent: ClassVar[bool] = True

    def apply(self, db: sqlite3.Connection) -> None:
        db.execute("UPDATE chats SET deleted = ? WHERE id = ?", (self.deleted, self.chat))


@dataclass(frozen=True, slots=True)
class RemoveChat:
    """A chat and all that was said in it go for good."""

    chat: int
    urgent: ClassVar[bool] = False

    def apply(self, db: sqlite3.Connection) -> None:
        said = "SELECT id, text FROM messages WHERE chat = ? AND state <> ?"
        for message, text in db.execute(said, (self.chat, WRITING)).fetchall():
            index.remove(db, message, text)
        db.execute("DELETE FROM chats WHERE id = ?", (self.chat,))


@dataclass(frozen=True, slots=True)
class Nothing:
    """What comes before it is written when it is."""

    urgent: ClassVar[bool] = True

    def apply(self, db: sqlite3.Connection) -> None:
        pass


@dataclass(frozen=True, slots=True)
class SetValue:
    """A single value, such as the draft of a chat that has not begun."""

    name: str
    value: str
    urgent: ClassVar[bool] = False

    def apply(self, db: sqlite3.Connection) -> None:
        db.execute("INSERT OR REPLACE INTO single_values VALUES(?, ?)", (self.name, storable(self.value)))


def recover(db: sqlite3.Connection) -> list[int]:
    """After a start: replies that were being written when the program ended count as interrupted, deleted chats go.

    Returns the chats that were interrupted, the last one first.
    """
    unfinished = "SELECT id, chat, text FROM messages WHERE state = 'writing' ORDER BY id DESC"
    chats: list[int] = []
    for message, chat, text in db.execute(unfinished).fetchall():
        db.execute("UPDATE messages SET state = 'interrupted' WHERE id = ?", (message,))
        index.add(db, message, text)
        if chat not in chats:
            chats.append(chat)
    for (chat,) in db.execute("SELECT id FROM chats WHERE deleted IS NOT NULL").fetchall():
        RemoveChat(chat).apply(db)
    return chats
