"""Colours finished code: Pygments finds its keywords, strings and comments; a little at a time, so that nothing waits.

Hues mean what became of tokens, so code has one colour, the accent, for its keywords, and greys for the rest.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterator

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QTextBlock, QTextCharFormat, QTextCursor, QTextDocument

from app.markdown.lines import NOTHING, LineKind
from app.widgets.line_dressing import Stretch, as_units, stretches

SLICE_SECONDS = 0.004
LONGEST = 100_000  # characters of code; what is longer stays plain


class CodeColours(QObject):
    """ghosts: where ghosts stand in a block. coloured: makes a format of a colour's role."""

    def __init__(
        self,
        document: QTextDocument,
        ghosts: Callable[[QTextBlock], list[Stretch]],
        coloured: Callable[[QTextCharFormat, str], QTextCharFormat],
    ) -> None:
        super().__init__(document)
        self._document = document
        self._ghosts, self._coloured = ghosts, coloured
        self.at_once = False  # for a picture: nothing is left for later
        self._jobs: deque[Generator[None, None, None]] = deque()
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._work)

    def add(self, last: QTextBlock) -> None:
        """Colour the code that this block ends."""
        first = last
        while first.previous().isValid() and first.previous().userState() == LineKind.CODE:
            first = first.previous()
        opening = first.previous()
        if last.userState() != LineKind.CODE or opening.userState() != LineKind.FENCE_OPEN:
            return
        language = self._said(opening).strip().lower()
        if language:
            self._jobs.append(self._colour(QTextCursor(first), language))
            self._timer.start()
        while self.at_once and self._jobs:
            self._work()

    def clear(self) -> None:
        """Forget what is still to be coloured."""
        self._jobs.clear()
        self._timer.stop()

    @property
    def working(self) -> bool:
        """Whether some code is still to be coloured."""
        return bool(self._jobs)

    def _work(self) -> None:
        deadline = time.perf_counter() + SLICE_SECONDS
        edit = QTextCursor(self._document)
        edit.beginEditBlock()  # laid out once
        while self._jobs and time.perf_counter() < deadline:
            try:
                next(self._jobs[0])
            except StopIteration:
                self._jobs.popleft()
        edit.endEditBlock()
        if not self._jobs:
            self._timer.stop()

    def _colour(self, first: QTextCursor, language: str) -> Generator[None, None, None]:
        """Colours the code that begins at a cursor; every step is short."""
        from pygments import lexers  # not at the start of the program: much of what is written has no code

        yield
        from pygments.util import ClassNotFound

        try:
            lexer = lexers.get_lexer_by_name(language, stripnl=False, ensurenl=False)
        except ClassNotFound:
            return
        yield
        lines = [self._said(block) for block in _code(first.block())]
        code = "\n".join(lines)
        if len(code) > LONGEST:
            return
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        yield
        block, number = first.block(), 0
        for place, kind, value in lexer.get_tokens_unprocessed(code):
            role = role_of(str(kind))
            if role:
                yield
                for row, begin, end in _rows(starts, place, place + len(value)):
                    while number < row and block.isValid():
                        block, number = block.next(), number + 1
                    if block.isValid() and block.userState() == LineKind.CODE:
                        self._dress(block, begin, end, role)

    def _said(self, block: QTextBlock) -> str:
        """A line of code without its ghosts, and with spaces for what is hidden of it."""
        text, start = as_units(block.text()), block.position()
        parts = [text[first - start : last - start] for first, last in stretches(block, self._ghosts(block))]
        return "".join(parts).replace(NOTHING, " ")

    def _dress(self, block: QTextBlock, begin: int, end: int, role: str) -> None:
        """Colour a stretch of a line, counted without ghosts."""
        cursor = QTextCursor(block)
        form = self._coloured(QTextCharFormat(), role)
        for start, stop in stretches(block, self._ghosts(block)):
            first, last = start + max(begin, 0), min(start + end, stop)
            if first < last:
                cursor.setPosition(first)
                cursor.setPosition(last, QTextCursor.MoveMode.KeepAnchor)
                cursor.mergeCharFormat(form)
            begin, end = begin - (stop - start), end - (stop - start)


def role_of(kind: str) -> str:
    """The role of the colour for a kind of Pygments' tokens; "" for the text's own."""
    parts = kind.split(".")
    if "Keyword" in parts or kind.endswith("Operator.Word"):
        return "accent"
    if "Comment" in parts:
        return "text3"
    return "text2" if "String" in parts or "Number" in parts else ""


def _code(block: QTextBlock) -> Iterator[QTextBlock]:
    while block.isValid() and block.userState() == LineKind.CODE:
        yield block
        block = block.next()


def _rows(starts: list[int], begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """A stretch of the code as stretches of its lines: number, beginning and end in the line."""
    row = bisect_right(starts, begin) - 1
    while row < len(starts) - 1 and starts[row] < end:
        yield row, max(begin - starts[row], 0), min(end, starts[row + 1] - 1) - starts[row]
        row += 1
