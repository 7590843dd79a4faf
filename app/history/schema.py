"""The tables of the history, and the steps from each earlier version of them to this one."""

from __future__ import annotations

import sqlite3

from app.history import index

STEPS: tuple[tuple[str, ...], ...] = (
    (  # 1: chats, their messages as a tree, what is kept of replies
        """CREATE TABLE chats(
            id INTEGER PRIMARY KEY,
            title TEXT NOT NULL DEFAULT '',
            pinned INTEGER NOT NULL DEFAULT 0,
            created REAL NOT NULL,
            updated REAL NOT NULL,
            settings TEXT NOT NULL DEFAULT '{}',
            leaf INTEGER,
            deleted REAL)""",
        "CREATE INDEX chats_in_order ON chats(pinned, updated, id) WHERE deleted IS NULL",
        """CREATE TABLE messages(
            id INTEGER PRIMARY KEY,
            chat INTEGER NOT NULL REFERENCES chats(id) ON DELETE CASCADE,
            parent INTEGER,
            role TEXT NOT NULL,
            state TEXT NOT NULL,
            created REAL NOT NULL,
            text TEXT NOT NULL)""",
        "CREATE INDEX messages_of_chat ON messages(chat, id)",
        "CREATE INDEX messages_of_parent ON messages(parent)",
        "CREATE INDEX messages_unfinished ON messages(state) WHERE state = 'writing'",
        """CREATE TABLE replies(
            message INTEGER PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
            request TEXT NOT NULL,
            model TEXT NOT NULL,
            recorded INTEGER NOT NULL DEFAULT 0,
            times TEXT)""",
        """CREATE TABLE records(
            id INTEGER PRIMARY KEY,
            message INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
            part INTEGER NOT NULL,
            data BLOB NOT NULL,
            UNIQUE(message, part))""",
    ),
    (  # 2: drafts, comparisons, and a place for single values
        "ALTER TABLE chats ADD COLUMN draft TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE replies ADD COLUMN comparison TEXT",
        "CREATE TABLE single_values(name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    ),
)
VERSION = len(STEPS)


class NewerVersion(Exception):
    """The file was written by a newer version of the program; `found` is its format."""

    def __init__(self, found: int) -> None:
        super().__init__(found)
        self.found = found


def version_of(db: sqlite3.Connection) -> int:
    """The format of a file; 0 for an empty one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def bring_up_to_date(db: sqlite3.Connection) -> None:
    """Make the tables, or bring those of an earlier version to this one: each step wholly or not at all.

    Raises NewerVersion, with the file as it was; and sqlite3.Error.
    """
    found = version_of(db)
    if found > VERSION:
        raise NewerVersion(found)
    for number in range(found + 1, VERSION + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            if version_of(db) < number:  # another program may have been quicker
                for statement in STEPS[number - 1]:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise
    index.make_whole(db)
