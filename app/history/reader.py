"""Reading the history. Each reader has a connection of its own and is used by one thread at a time."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

from app.history import packing
from app.history.operations import PARTS
from app.history.rows import ChatRow, StoredChat, StoredMessage, StoredReply
from engine.plain_data import Misfit

ROW = "id, title, pinned, created, updated"


class Unreadable(Exception):
    """The file, or this part of it, cannot be read now. `damaged`: nor later."""

    def __init__(self, error: sqlite3.Error) -> None:
        super().__init__(str(error))
        self.damaged = is_damage(error)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is broken, not merely locked, full or away."""
    name = getattr(error, "sqlite_errorname", "")  # Python 3.11
    if name:
        return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
    return "malformed" in str(error) or "not a database" in str(error)


def row_of(values: tuple[Any, ...]) -> ChatRow:
    """A chat of the list from the columns `ROW`."""
    number, title, pinned, created, updated = values
    return ChatRow(number, str(title), bool(pinned), float(created), float(updated))


class Reader:
    """connect: opens a connection; called again after `close`. shared: it is the writer's, and stays open.

    Every method raises Unreadable.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], *, shared: bool = False) -> None:
        self._connect = connect
        self._shared = shared
        self._db: sqlite3.Connection | None = None
        self._lock = threading.RLock()

    def close(self) -> None:
        """Let go of the file, from any thread; the next reading opens it again."""
        with self._lock:
            if self._db is not None and not self._shared:
                self._db.close()
            self._db = None

    def all(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._lock:
            try:
                if self._db is None:
                    self._db = self._connect()
                return self._db.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise Unreadable(error) from error

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> list[ChatRow]:
        """Chats: the rows of a query for the columns `ROW`."""
        return [row_of(found) for found in self.all(query, values)]

    def chats(self, after: ChatRow | None, most: int) -> list[ChatRow]:
        """The next chats of the list after one of them, or its first ones: pinned ones, then those used last."""
        place, values = "", tuple[Any, ...]()
        if after is not None:
            place, values = "AND (pinned, updated, id) < (?, ?, ?)", after.order
        order = "ORDER BY pinned DESC, updated DESC, id DESC LIMIT ?"
        return self.rows(f"SELECT {ROW} FROM chats WHERE deleted IS NULL {place} {order}", (*values, most))

    def row(self, chat: int) -> ChatRow | None:
        """One chat of the list."""
        found = self.rows(f"SELECT {ROW} FROM chats WHERE id = ?", (chat,))
        return found[0] if found else None

    def chat(self, chat: int) -> StoredChat | None:
        """A chat with the texts of all its messages."""
        row = self.row(chat)
        if row is None:
            return None
        settings, draft, leaf = self.all("SELECT settings, draft, leaf FROM chats WHERE id = ?", (chat,))[0]
        said = self.all(
            "SELECT id, parent, role, state, created, text FROM messages WHERE chat = ? ORDER BY id", (chat,)
        )
        messages = tuple(StoredMessage(*values) for values in said)
        return StoredChat(row, _object(settings), str(draft), leaf, messages)

    def reply(self, message: int) -> StoredReply | None:
        """What is kept of a reply with its events, none where they make no sense; None where nothing is kept."""
        columns = "SELECT request, model, recorded, times, comparison FROM replies WHERE message = ?"
        found = self.all(columns, (message,))
        if not found:
            return None
        request, model, recorded, times, comparison = found[0]
        try:
            events = packing.unpack(row[0] for row in self.all(PARTS, (message,)))
        except Misfit:
            events = ()
        return StoredReply(
            request=_object(request),
            model=packing.model_of(_parsed(model)),
            comparison=packing.comparison_of(_parsed(comparison)),
            recorded=bool(recorded),
            times=packing.times_of(_parsed(times), len(events)),
            events=events,
        )

    def value(self, name: str) -> str:
        """A single value, "" where there is none."""
        found = self.all("SELECT value FROM single_values WHERE name = ?", (name,))
        return str(found[0][0]) if found else ""

    def highest_id(self) -> int:
        """The highest number of a chat or message."""
        found = self.all("SELECT max((SELECT max(id) FROM chats), (SELECT max(id) FROM messages))")
        return int(found[0][0] or 0)


def _parsed(text: Any) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def _object(text: Any) -> dict[str, Any]:
    value = _parsed(text)
    return value if isinstance(value, dict) else {}
