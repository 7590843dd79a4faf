"""What can still be read of a broken history file, row by row, into a new one."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.history import index
from app.history.rows import INTERRUPTED, OVER, WRITING, storable

TABLES = {
    "chats": ("id", "title", "pinned", "created", "updated", "settings", "leaf", "deleted", "draft"),
    "messages": ("id", "chat", "parent", "role", "state", "created", "text"),
    "replies": ("message", "request", "model", "recorded", "times", "comparison"),
    "records": ("id", "message", "part", "data"),
}
DEFAULTS: dict[str, Any] = {
    "title": "",
    "pinned": 0,
    "created": 0.0,
    "updated": 0.0,
    "settings": "{}",
    "draft": "",
    "request": "{}",
    "model": "null",
    "recorded": 0,
    "state": OVER,
}
TEXTS = ("title", "settings", "draft", "role", "state", "text", "request", "model", "times", "comparison")


def salvage(broken: Path, db: sqlite3.Connection) -> int:
    """Bring over every row that can be read; how many chats there are then. Raises sqlite3.Error for the new file."""
    try:
        source = sqlite3.connect(broken.absolute().as_uri() + "?mode=ro", uri=True)
        source.text_factory = lambda data: data.decode("utf-8", "replace")
    except sqlite3.Error:
        return 0
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute("BEGIN IMMEDIATE")
    try:
        for table, columns in TABLES.items():
            _bring_over(source, db, table, columns)
        _make_consistent(db)
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    finally:
        source.close()
        db.execute("PRAGMA foreign_keys = ON")
    return int(db.execute("SELECT count(*) FROM chats").fetchone()[0])


def _bring_over(source: sqlite3.Connection, db: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> None:
    try:
        known = {row[1] for row in source.execute(f"PRAGMA table_info({table})")}
    except sqlite3.Error:
        return
    wanted = [name for name in columns if name in known]
    if columns[0] not in wanted:
        return
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    for values in _rows(source, table, wanted):
        row = {name: _fit(name, value) for name, value in zip(wanted, values, strict=True)}
        full = [value if (value := row.get(name)) is not None else DEFAULTS.get(name) for name in columns]
        with contextlib.suppress(sqlite3.IntegrityError, sqlite3.InterfaceError, OverflowError):
            db.execute(f"INSERT OR IGNORE INTO {table}({names}) VALUES({marks})", full)


def _fit(name: str, value: Any) -> Any:
    if name in TEXTS:
        return storable(value) if isinstance(value, str) else None
    return value


def _rows(source: sqlite3.Connection, table: str, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of a table from its beginning up to the damage, then from its end down to it, then any between."""
    names, key = ", ".join(columns), columns[0]
    seen: set[int] = set()
    for direction in ("ASC", "DESC"):
        try:
            for row in source.execute(f"SELECT {names} FROM {table} ORDER BY {key} {direction}"):
                if row[0] in seen:
                    break
                seen.add(row[0])
                yield row
        except sqlite3.Error:
            continue
    for number in _numbers(source, table, key) - seen:
        try:
            row = source.execute(f"SELECT {names} FROM {table} WHERE {key} = ?", (number,)).fetchone()
        except sqlite3.Error:
            continue
        if row is not None:
            yield row


def _numbers(source: sqlite3.Connection, table: str, key: str) -> set[int]:
    """Numbers of rows as the indexes of the table have them."""
    found: set[int] = set()
    for name in ("messages_of_chat", "messages_of_parent", "chats_in_order"):
        if not name.startswith(table):
            continue
        condition = "WHERE deleted IS NULL" if table == "chats" else ""
        try:
            for (number,) in source.execute(f"SELECT {key} FROM {table} INDEXED BY {name} {condition}"):
                found.add(number)
        except sqlite3.Error:
            continue
    return found


def _make_consistent(db: sqlite3.Connection) -> None:
    """No row may point to one that is lost; chats of which only messages are left get a row again."""
    db.execute(
        "INSERT INTO chats(id, title, created, updated) "
        "SELECT chat, substr(text, 1, 60), min(created), max(created) FROM messages "
        "WHERE chat NOT IN (SELECT id FROM chats) GROUP BY chat"
    )
    db.execute("UPDATE messages SET parent = NULL WHERE parent NOT IN (SELECT id FROM messages) OR parent >= id")
    db.execute("UPDATE messages SET state = ? WHERE state NOT IN (?, ?, ?)", (OVER, OVER, WRITING, INTERRUPTED))
    db.execute("DELETE FROM messages WHERE role NOT IN ('user', 'assistant')")
    for table in ("replies", "records"):
        db.execute(f"DELETE FROM {table} WHERE message NOT IN (SELECT id FROM messages)")
    for message, text in db.execute("SELECT id, text FROM messages WHERE state <> ?", (WRITING,)).fetchall():
        index.add(db, message, text)
