"""The one thread that writes the history: operations in their order, in batches, none lost where the disk allows it."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

from app.history.opening import Opened, mend, open_history
from app.history.operations import Operation
from app.history.reader import is_damage
from app.history.rows import Note
from app.history.words import TROUBLE
from app.words import words

BATCH_SECONDS = 0.3  # what is not urgent waits this long for more of its kind
RETRY_SECONDS = 1.0
CLOSE_SECONDS = 5.0
log = logging.getLogger(__name__)


class Ticket:
    """Tells when an operation is on the disk, or that it will not be for now. then: called in the writer's thread,
    once, when it is written."""

    def __init__(self, then: Callable[[], None] | None = None) -> None:
        self._settled = threading.Event()
        self._then = then
        self.written = False

    def settle(self, written: bool) -> None:
        """The operation was written, or could not be by now."""
        self.written = written
        self._settled.set()
        if written and self._then is not None:
            self._then()
            self._then = None

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is settled; whether it is."""
        return self._settled.wait(seconds)


class _Mend:
    """An order among the operations: the file was found to be damaged by a reader."""


Order = tuple[Operation | _Mend | None, Ticket]


class Writer:
    """begin() opens the file in the thread. told(Note) and opened(Opened), also after a repair, come from the thread.

    release: asked to close every other connection, before a broken file is set aside.
    """

    def __init__(
        self,
        folder: Path,
        opened: Callable[[Opened], None],
        told: Callable[[Note], None],
        release: Callable[[], None],
        batch_seconds: float = BATCH_SECONDS,
    ) -> None:
        self._folder = folder
        self._batch_seconds = batch_seconds
        self._on_opened = opened
        self._tell = told
        self._release = release
        self._orders: SimpleQueue[Order] = SimpleQueue()
        self._batch: list[tuple[Operation, Ticket]] = []
        self._thread: threading.Thread | None = None
        self._opened: Opened | None = None
        self._troubled = False
        self._mends = 0
        self._closing = False
        self._given = 0
        self._done = 0

    def begin(self) -> None:
        """Start the thread; operations given before wait for it."""
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)
        self._thread.start()

    @property
    def idle(self) -> bool:
        """Whether all that was given is on the disk. Asked by the thread that gives."""
        return self._done == self._given

    def put(self, operation: Operation, then: Callable[[], None] | None = None) -> Ticket:
        """Have an operation done after all those given before. Never waits. One thread gives operations."""
        ticket = Ticket(then)
        self._given += 1
        self._orders.put((operation, ticket))
        return ticket

    def mend(self) -> None:
        """A reader found the file damaged."""
        self._orders.put((_Mend(), Ticket()))

    def close(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Write what is left and end the thread; False where it takes longer than that."""
        if self._thread is None:
            return True
        self._orders.put((None, Ticket()))
        self._thread.join(seconds)
        return not self._thread.is_alive()

    # The thread

    def _run(self) -> None:
        opened = self._opened = open_history(self._folder)
        self._announce(opened)
        due: float | None = None
        while not self._closing:
            due = self._gather(due)
            if due is not None and time.monotonic() >= due:
                due = None if self._write() else time.monotonic() + RETRY_SECONDS
        self._write()
        self._finish()

    def _announce(self, opened: Opened) -> None:
        self._on_opened(opened)
        for note in opened.notes:
            self._tell(note)

    def _gather(self, due: float | None) -> float | None:
        """Take orders until there is something to write now; when that is."""
        wait = None if due is None else max(0.0, due - time.monotonic())
        try:
            operation, ticket = self._orders.get(timeout=wait)
        except Empty:
            return due
        if operation is None:
            self._closing = True
        elif isinstance(operation, _Mend):
            self._repair()
        else:
            self._batch.append((operation, ticket))
            if operation.urgent and not self._troubled:
                return 0.0
            if due is None:
                return time.monotonic() + self._batch_seconds
            if self._troubled:  # nobody waits for a disk that is full
                ticket.settle(False)
        return due

    def _write(self) -> bool:
        """Write the batch in one transaction; False where it must be tried again."""
        if not self._batch:
            return True
        assert self._opened is not None
        db = self._opened.db
        try:
            db.execute("BEGIN IMMEDIATE")
            for operation, _ in self._batch:
                self._apply(db, operation)
            db.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            self._trouble(error)
            return False
        written = self._batch
        self._batch = []
        self._done += len(written)
        for _, ticket in written:
            ticket.settle(True)
        self._troubled = False
        return True

    def _apply(self, db: sqlite3.Connection, operation: Operation) -> None:
        """One operation. What contradicts the tables (its chat was lost with a broken file, say) is left out."""
        db.execute("SAVEPOINT one")
        try:
            operation.apply(db)
        except (sqlite3.IntegrityError, OverflowError) as error:
            log.warning("%s was not stored: %s", type(operation).__name__, error)
            db.execute("ROLLBACK TO one")
        db.execute("RELEASE one")

    def _trouble(self, error: sqlite3.Error) -> None:
        """The batch is kept and tried again; nobody waits for it any longer."""
        for _, ticket in self._batch:
            ticket.settle(False)
        if is_damage(error):
            self._repair()
        elif not self._troubled:
            self._tell(Note(words(TROUBLE, cause=str(error).rstrip(".").lower())))
        self._troubled = True

    def _repair(self) -> None:
        """A new file in place of the broken one, with what could be read. Once a run: a disk that breaks every file
        is beyond us."""
        opened = self._opened
        if opened is None or opened.path is None or self._mends:
            return
        self._mends += 1
        self._release()
        opened.db.close()
        try:
            self._opened = mend(opened.path)
        except (sqlite3.Error, OSError):
            self._opened = open_history(self._folder)
        self._announce(self._opened)

    def _finish(self) -> None:
        for _, ticket in self._batch:
            ticket.settle(False)
        assert self._opened is not None
        self._release()
        with contextlib.suppress(sqlite3.Error):
            if self._opened.path is not None:
                self._opened.db.execute("PRAGMA optimize")
                self._opened.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with contextlib.suppress(sqlite3.Error):
            self._opened.db.close()
