"""Whole chats at once: copies within the history, and chats out of files."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from app.history import index
from app.history.operations import AddChat, add_reply
from app.history.rows import WRITING, ChatRow, Ids, StoredChat, StoredReply, storable


@dataclass(frozen=True, slots=True)
class AddWholeChat:
    """A chat with all its messages, whose numbers are new. replies: by message."""

    chat: StoredChat
    replies: Mapping[int, StoredReply] = field(default_factory=dict)
    urgent: ClassVar[bool] = True

    def apply(self, db: sqlite3.Connection) -> None:
        chat = self.chat
        AddChat(chat.row, chat.settings).apply(db)
        db.execute("UPDATE chats SET draft = ?, leaf = ? WHERE id = ?", (storable(chat.draft), chat.leaf, chat.row.id))
        for message in chat.messages:
            text = storable(message.text)
            values = (message.id, chat.row.id, message.parent, message.role, message.state, message.created, text)
            db.execute("INSERT INTO messages VALUES(?, ?, ?, ?, ?, ?, ?)", values)
            if message.state != WRITING:
                index.add(db, message.id, text)
        for number, reply in self.replies.items():
            add_reply(db, number, reply)


@dataclass(frozen=True, slots=True)
class CopyChat:
    """A copy of a stored chat under another number: all of it, or only what leads to the message `leaf`."""

    source: int
    row: ChatRow
    ids: Ids
    leaf: int | None = None
    urgent: ClassVar[bool] = True

    def apply(self, db: sqlite3.Connection) -> None:
        found = db.execute("SELECT settings, leaf FROM chats WHERE id = ?", (self.source,)).fetchone()
        if found is None:
            return
        AddChat(self.row, json.loads(found[0])).apply(db)
        numbers = self._numbers(db)
        for old, new in numbers.items():
            self._copy(db, old, new, numbers)
        leaf = numbers.get(self.leaf if self.leaf is not None else found[1])
        db.execute("UPDATE chats SET leaf = ? WHERE id = ?", (leaf, self.row.id))

    def _numbers(self, db: sqlite3.Connection) -> dict[int, int]:
        """The new number of each message that is copied, in the order of the old ones."""
        rows = db.execute("SELECT id, parent FROM messages WHERE chat = ? ORDER BY id", (self.source,)).fetchall()
        parents = dict(rows)
        wanted = set(parents)
        if self.leaf is not None:
            wanted, step = set(), self.leaf
            while step in parents and step not in wanted:
                wanted.add(step)
                step = parents[step]
        return {old: self.ids.next() for old in parents if old in wanted}

    def _copy(self, db: sqlite3.Connection, old: int, new: int, numbers: dict[int, int]) -> None:
        message = "SELECT parent, role, state, created, text FROM messages WHERE id = ?"
        parent, role, state, created, text = db.execute(message, (old,)).fetchone()
        # A reply that is being written is copied as far as it is: nobody will go on writing the copy.
        state = "interrupted" if state == WRITING else state
        values = (new, self.row.id, numbers.get(parent), role, state, created, text)
        db.execute("INSERT INTO messages VALUES(?, ?, ?, ?, ?, ?, ?)", values)
        index.add(db, new, text)
        db.execute(
            "INSERT INTO replies(message, request, model, recorded, times, comparison) "
            "SELECT ?, request, model, recorded, times, comparison FROM replies WHERE message = ?",
            (new, old),
        )
        db.execute(
            "INSERT INTO records(message, part, data) SELECT ?, part, data FROM records WHERE message = ?", (new, old)
        )
