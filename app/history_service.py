"""The history on the window's side: operations go to the writer's thread, slow questions to one that reads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from app.history.opening import Opened
from app.history.operations import Nothing, Operation
from app.history.reader import Reader, Unreadable
from app.history.rows import Ids, Note
from app.history.writer import Ticket, Writer

Question = Callable[[Reader], Any]
Answer = Callable[[Any], object]


class History(QObject):
    """begin() opens the file; what is put before is written then. close() writes what is left.

    Signals: opened(list of chats that were interrupted) once it can be read; renewed() when another file took the
    place of a damaged one, so that all must be read anew; told(Note) for what a user must know.
    """

    opened = Signal(object)
    renewed = Signal()
    told = Signal(object)
    _opened_there = Signal(object)
    _settled_there = Signal(int, object)

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.ids = Ids()
        self.kept = True
        self._writer = Writer(folder, self._opened_there.emit, self.told.emit, self._release)
        self._reader: Reader | None = None
        self._asker: _Asker | None = None
        self._answers: dict[int, Answer] = {}
        self._last = 0
        self._begun = self._closed = False
        self._opened_there.connect(self._on_opened)
        self._settled_there.connect(self._on_settled)
        self.told.connect(self._on_told)

    @property
    def is_open(self) -> bool:
        """Whether it can be read."""
        return self._reader is not None

    @property
    def idle(self) -> bool:
        """Whether all that was put is on the disk."""
        return self._writer.idle

    @Slot()
    def begin(self) -> None:
        """Open the file, in the writer's thread."""
        if not self._begun and not self._closed:
            self._begun = True
            self._writer.begin()

    def put(self, operation: Operation, then: Callable[[], object] | None = None) -> Ticket:
        """Have something written after all that was put before. then: called here once it is."""
        self.begin()
        if then is None:
            return self._writer.put(operation)
        number = self._expect(lambda _: then())
        return self._writer.put(operation, lambda: self._settled_there.emit(number, None))

    def read(self, question: Question) -> Any:
        """The answer to a quick question; None where it cannot be read."""
        if self._reader is None:
            return None
        try:
            return question(self._reader)
        except Unreadable as error:
            self._on_unreadable(error)
            return None

    def ask(self, question: Question, answer: Answer) -> int:
        """Have a slow question answered by another thread; `answer` is called here, with None where it cannot be read.

        The number of the question, by which it can be given up.
        """
        number = self._expect(answer)
        if self._asker is None:
            self._settled_there.emit(number, None)
        else:
            self._asker.questions.put((number, question))
        return number

    def after_all(self, then: Callable[[], object]) -> None:
        """Call `then` here once all that was put by now is on the disk."""
        if self.idle:
            then()
        else:
            self.put(Nothing(), then)

    def give_up(self, number: int) -> None:
        """Nobody waits for this answer any more."""
        self._answers.pop(number, None)

    def close(self) -> bool:
        """Write what is left and end both threads; False where that takes too long."""
        self._closed = True
        self._answers.clear()
        if self._asker is not None:
            self._asker.end()
        ended = self._writer.close() if self._begun else True
        if self._reader is not None:
            self._reader.close()
        return ended

    def _expect(self, answer: Answer) -> int:
        self._last += 1
        self._answers[self._last] = answer
        return self._last

    @Slot(object)
    def _on_opened(self, opened: Opened) -> None:
        """The file is there, or another one in its place."""
        if self._closed:
            return
        again = self._reader is not None
        self.kept = opened.path is not None
        self._reader = Reader(opened.connect, shared=opened.shared)
        self.ids.stay_above(self.read(Reader.highest_id) or 0)
        if self._asker is not None:
            self._asker.end()
        self._asker = _Asker(Reader(opened.connect, shared=opened.shared), self._answered_there, self._answers)
        self._asker.start()
        if again:
            self.renewed.emit()
        else:
            self.opened.emit(opened.interrupted)

    def _release(self) -> None:
        """In the writer's thread: let go of the file."""
        for reader in (self._reader, self._asker.reader if self._asker is not None else None):
            if reader is not None:
                reader.close()

    def _answered_there(self, number: int, answer: Any) -> None:
        self._settled_there.emit(number, answer)

    @Slot(int, object)
    def _on_settled(self, number: int, answer: Any) -> None:
        waiting = self._answers.pop(number, None)
        if isinstance(answer, Unreadable):
            self._on_unreadable(answer)
            answer = None
        if waiting is not None and not self._closed:
            waiting(answer)

    def _on_unreadable(self, error: Unreadable) -> None:
        if error.damaged and self.kept:
            self._writer.mend()

    @Slot(object)
    def _on_told(self, note: Note) -> None:
        self.kept = self.kept and not note.lasting


class _Asker(threading.Thread):
    """Answers questions one after another; one that nobody waits for any more is passed over."""

    def __init__(self, reader: Reader, answered: Callable[[int, Any], None], waiting: dict[int, Answer]) -> None:
        super().__init__(name="history questions", daemon=True)
        self.reader = reader
        self.questions: SimpleQueue[tuple[int, Question] | None] = SimpleQueue()
        self._answered = answered
        self._waiting = waiting

    def run(self) -> None:
        while (asked := self.questions.get()) is not None:
            number, question = asked
            if number not in self._waiting:
                continue
            try:
                answer = question(self.reader)
            except Unreadable as error:
                answer = error
            self._answered(number, answer)
        self.reader.close()

    def end(self) -> None:
        """No more questions."""
        self.questions.put(None)
        self.join(5.0)
