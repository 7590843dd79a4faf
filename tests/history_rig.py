"""A history in a folder without a window: a writer that is waited for, and a reader of what it wrote."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.history.opening import FILE_NAME, Opened
from app.history.operations import AddChat, AddMessage, AppendEvents, BeginReply, EndReply, Operation
from app.history.reader import Reader
from app.history.rows import USER, ChatRow, Ids, Note, StoredReply
from app.history.writer import Ticket, Writer
from engine.records import Event

WAIT_SECONDS = 20.0


@dataclass
class Shelf:
    """The writer, what it told, and a reader."""

    writer: Writer
    ids: Ids = field(default_factory=Ids)
    notes: list[Note] = field(default_factory=list)
    openings: list[Opened] = field(default_factory=list)

    @property
    def reader(self) -> Reader:
        """A reader of the file as it is now."""
        opened = self.openings[-1]
        return Reader(opened.connect, shared=opened.shared)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """The same, closed at the end."""
        reader = self.reader
        yield reader
        reader.close()

    def do(self, *operations: Operation) -> Ticket:
        """Have operations done, and wait until they are written or could not be."""
        tickets = [self.writer.put(operation) for operation in operations]
        for ticket in tickets:
            assert ticket.wait(WAIT_SECONDS)
        return tickets[-1]

    def chat(self, title: str = "A chat", at: float | None = None, *, pinned: bool = False) -> int:
        """A new chat."""
        number, at = self.ids.next(), time.time() if at is None else at
        self.do(AddChat(ChatRow(number, title, pinned, at, at)))
        return number

    def say(self, chat: int, text: str, parent: int | None = None) -> int:
        """A message of the user."""
        number = self.ids.next()
        self.do(AddMessage(number, chat, parent, USER, text, time.time()))
        return number

    def answer(self, chat: int, parent: int, events: tuple[Event, ...], reply: StoredReply | None = None) -> int:
        """A reply that is over."""
        number = self.ids.next()
        begin = BeginReply(number, chat, parent, time.time(), reply or StoredReply())
        self.do(begin, AppendEvents(number, events), EndReply(number))
        return number

    @property
    def told(self) -> list[str]:
        """What a user was told, in English."""
        return [note.words.english for note in self.notes]


@contextmanager
def shelf(folder: Path, release: Callable[[], None] = lambda: None, batch_seconds: float = 0.0) -> Iterator[Shelf]:
    """A writer on this folder that has opened its file; closed at the end."""
    ready = threading.Event()
    openings: list[Opened] = []
    notes: list[Note] = []

    def opened(found: Opened) -> None:
        openings.append(found)
        ready.set()

    writer = Writer(folder, opened, notes.append, release, batch_seconds)
    writer.begin()
    try:
        assert ready.wait(WAIT_SECONDS)
        made = Shelf(writer, notes=notes, openings=openings)
        yield made
    finally:
        assert writer.close(WAIT_SECONDS)


def raw(folder: Path) -> sqlite3.Connection:
    """The file itself, for what nobody else would do to it."""
    return sqlite3.connect(folder / FILE_NAME)
