"""Opening the history's file whatever state it, or the place it lies in, is in.

A broken file is set aside and what can be read of it is brought over. Where no file can be written, or a newer version
of the program wrote it, chats are kept in memory for this run, and what can be read is shown. Nothing is destroyed.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.history import operations, schema
from app.history.reader import is_damage
from app.history.rows import Note
from app.history.salvage import salvage
from app.history.words import MENDED, NEWER, NOT_KEPT
from app.words import words

FILE_NAME = "history.db"
SIDE_FILES = ("-wal", "-shm")
BUSY_SECONDS = 2.0
MOST_IN_MEMORY = 512 << 20  # bytes of a file that may be read, not written, to be shown from memory
Connect = Callable[[], sqlite3.Connection]


@dataclass(slots=True)
class Opened:
    """db: the writer's connection. connect: another one, for a reader, or the same where `shared`.

    path: None in memory. interrupted: chats in which a reply was being written when the program ended, the last first.
    """

    db: sqlite3.Connection
    connect: Connect
    path: Path | None
    notes: list[Note]
    interrupted: list[int]

    @property
    def shared(self) -> bool:
        """Whether readers use the writer's connection, and must not close it."""
        return self.path is None


def connection(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection that commits only where it is told to. Raises sqlite3.Error."""
    target = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
    db = sqlite3.connect(target, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)
    db.execute("PRAGMA foreign_keys = ON")
    return db


def open_history(folder: Path) -> Opened:
    """The history in a folder, brought up to date; in memory, with a note, where that cannot be."""
    path = folder / FILE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _open_file(path, [])
    except schema.NewerVersion as error:
        values = {"file": path.name, "found": str(error.found), "known": str(schema.VERSION)}
        return _in_memory([Note(words(NEWER, **values), lasting=True)])
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            return _after_damage(path, error)
        return _unwritten(path, str(error))
    except OSError as error:
        return _unwritten(path, error.strerror or str(error))


def _open_file(path: Path, notes: list[Note]) -> Opened:
    db = connection(path)
    try:
        if schema.version_of(db) > schema.VERSION:  # before anything is written
            raise schema.NewerVersion(schema.version_of(db))
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON")
        schema.bring_up_to_date(db)
        interrupted = _recovered(db)
    except BaseException:
        db.close()
        raise
    with contextlib.suppress(OSError):
        path.chmod(0o600)  # what was said is nobody else's business

    def connect() -> sqlite3.Connection:
        return connection(path, read_only=True)

    return Opened(db, connect, path, notes, interrupted)


def _recovered(db: sqlite3.Connection) -> list[int]:
    """Set right what the last run left; that it can be written shows that the file can."""
    db.execute("BEGIN IMMEDIATE")
    try:
        interrupted = operations.recover(db)
        db.execute("INSERT OR REPLACE INTO single_values VALUES('opened', ?)", (str(int(time.time())),))
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    return interrupted


def _after_damage(path: Path, cause: sqlite3.Error) -> Opened:
    try:
        return mend(path)
    except (sqlite3.Error, OSError) as error:
        return _unwritten(path, f"{cause}; {error}")


def mend(path: Path) -> Opened:
    """Set a broken file aside, begin a new one, and bring over what can be read. Raises OSError, sqlite3.Error."""
    aside = set_aside(path)
    opened = _open_file(path, [])
    chats = salvage(aside, opened.db)
    opened.notes.append(Note(words(MENDED, file=path.name, aside=aside.name, count=str(chats))))
    opened.interrupted = _recovered(opened.db) or opened.interrupted
    return opened


def set_aside(path: Path) -> Path:
    """Rename a file, and what SQLite keeps beside it, to a name that is free. Raises OSError."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    names = (path.with_name(f"{path.stem}.broken-{stamp}{more}{path.suffix}") for more in ("", "-2", "-3", "-4"))
    aside = next((name for name in names if not name.exists()), None)
    if aside is None:
        raise FileExistsError(f"no free name beside {path.name}")
    for side in SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            os.replace(path.with_name(path.name + side), aside.with_name(aside.name + side))
    os.replace(path, aside)
    return aside


def _unwritten(path: Path, cause: str) -> Opened:
    note = Note(words(NOT_KEPT, file=str(path), cause=cause.rstrip(".").lower()), lasting=True)
    return _in_memory([note], path)


def _in_memory(notes: list[Note], source: Path | None = None) -> Opened:
    """A history that lasts as long as the program; what can be read of a file is in it from the start."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if source is not None:
        with contextlib.suppress(sqlite3.Error, OSError):
            _copy(source, db)
    try:
        schema.bring_up_to_date(db)
        interrupted = _recovered(db)
    except (sqlite3.Error, schema.NewerVersion):
        db.close()
        if source is None:
            raise
        return _in_memory(notes)  # the copy makes no sense; an empty history does
    return Opened(db, lambda: db, None, notes, interrupted)


def _copy(source: Path, db: sqlite3.Connection) -> None:
    if source.stat().st_size > MOST_IN_MEMORY:
        return
    # Beside a file in a folder that cannot be written SQLite can make no log; "immutable" reads it without one.
    for mode in ("mode=ro", "immutable=1"):
        reader: sqlite3.Connection | None = None
        try:
            reader = sqlite3.connect(f"{source.absolute().as_uri()}?{mode}", timeout=0.1, uri=True)
            reader.backup(db, progress=_give_up_if_locked)
            return
        except sqlite3.Error:
            continue
        finally:
            if reader is not None:
                reader.close()


def _give_up_if_locked(_status: int, remaining: int, total: int) -> None:
    """A backup that has not ended with its first step waits for a lock, and would for ever."""
    raise sqlite3.OperationalError(f"{remaining} of {total} pages are locked")
