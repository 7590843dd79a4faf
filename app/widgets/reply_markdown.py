"""Formats a reply's document while it grows: its tail again and again, what is settled never again.

The text of the document is the source, character by character (see `app.markdown.lines`), with ghosts between; lines
are dressed where they stand, so that tokens, selections and ghosts stay where they are.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import groupby

from PySide6.QtGui import QTextBlock, QTextBlockFormat, QTextCursor, QTextDocument

from app.markdown.lines import CODE, NOTHING, TABLE_LINES, Formatted, Line, LineKind, Run
from app.markdown.shown import displayed
from app.markdown.tail import Step, Tail
from app.widgets.line_dressing import Stretch, dress_block, dress_text
from app.widgets.reply_formats import INDENT, INLINE_CODE, ReplyFormats
from app.widgets.table_columns import align_columns
from app.widgets.token_spans import TokenSpans

_SHARE = 9  # a tenth of the time, at most, goes into formatting what still changes
_CODE_LINE = Line(0, 0, LineKind.CODE)
_CLOSING_LINE = Line(0, 0, LineKind.FENCE_CLOSE)
_Dressed = tuple[str, Line, tuple[Run, ...]]


class ReplyMarkdown:
    """See the module. on_code: told of a block of a piece of code that is complete."""

    def __init__(self, document: QTextDocument, formats: ReplyFormats, on_code: Callable[[QTextBlock], None]) -> None:
        self._document, self._formats, self._on_code = document, formats, on_code
        self.restart(TokenSpans())

    def restart(self, spans: TokenSpans) -> None:
        """The document is empty; spans: those of what will come."""
        self._spans = spans
        self._tail = Tail()
        self._anchor = QTextCursor(self._document)  # where the tail begins
        self._anchor.setKeepPositionOnInsert(True)
        self._dressed: list[_Dressed] = []  # what each line of the tail was dressed by
        self._cards: list[QTextCursor] = []  # at the first lines of those that are settled
        self._due = 0.0
        self._indent, self._spaces = 0.0, 0
        self.reformatted = -1  # number of the first block that was dressed since this was last -1
        self.parsed = 0  # characters, for tests and measurements

    # Text

    @property
    def in_code(self) -> bool:
        """Whether what comes is code, in a fence at the outermost level."""
        return bool(self._tail.fence)

    def add(self, part: str) -> None:
        """Text was appended to the last line."""
        self._tail.add(part)

    def end_line(self, block: QTextBlock) -> None:
        """The last line, which this block ends, is complete."""
        if self._tail.fence:
            self._end_code_line(block)
        elif self._tail.opens_fence():
            self._open_fence(block)
        else:
            self._tail.add("\n")

    def next_line(self, block: QTextBlock) -> None:
        """A block for the next line was added."""
        if not self._tail.text:
            self._anchor.setPosition(block.position())
            self._dressed.clear()
        if self.in_code:
            dress_block(block, _CODE_LINE, self._formats.block(_CODE_LINE, indent=self._indent))
        else:
            line = Line(0, 0)
            dress_block(block, line, self._formats.block(line))

    def finish(self, block: QTextBlock) -> None:
        """No more text comes for now; block: the last one."""
        if self._tail.fence and self._tail.text:
            self._end_code_line(block)
        self.dress(at_once=True)

    # Fences

    def _open_fence(self, block: QTextBlock) -> None:
        """All before the fence is settled; its line shows its language, and code follows."""
        opening = self._tail.last_line()
        self._spaces = len(opening) - len(opening.lstrip())
        self._tail.add("\n")
        for step in self._tail.steps():
            self._apply(step)
        self._indent = float(block.blockFormat().property(INDENT) or 0)
        for line in self._walk(-1):
            self._settle_card(line[0])
        self._tail.open_fence(opening)

    def _end_code_line(self, block: QTextBlock) -> None:
        text = self._tail.last_line()
        if self._tail.closes_fence():
            self._tail.close_fence()
            form = self._formats.block(_CLOSING_LINE, indent=self._indent)
            self._dress_alone(block, NOTHING * len(text), _CLOSING_LINE)
            dress_block(block, _CLOSING_LINE, form)
            self._on_code(block.previous())
        elif self._spaces:
            before = min(len(text) - len(text.lstrip(" ")), self._spaces)
            self._dress_alone(block, NOTHING * before + displayed(text[before:]), _CODE_LINE)
        self._tail.forget()

    def _dress_alone(self, block: QTextBlock, display: str, line: Line) -> None:
        blocks = [block]
        while self.continues(blocks[0].previous()):
            blocks.insert(0, blocks[0].previous())
        dress_text(blocks, self._ghosts(), display, [Run(0, len(display), 0)], line, self._formats)
        self.note(blocks[0])

    # Dressing

    def dress(self, *, at_once: bool = False) -> None:
        """Format the tail, unless that would take too much of the time."""
        if self._tail.fence or not self._tail.text or (not at_once and time.perf_counter() < self._due):
            return
        began = time.perf_counter()
        for step in self._tail.steps(final=at_once):
            self._apply(step)
        now = time.perf_counter()
        self._due = now + _SHARE * (now - began)

    def _apply(self, step: Step) -> None:
        lines = list(self._walk(step.settled if step.formatted is None else len(step.formatted.lines)))
        if step.formatted is not None:
            self.parsed += len(step.formatted.shown)
            self._dress_lines(step.formatted, lines)
        if step.settled:
            self._settle(lines, step.settled)

    def _settle(self, lines: list[list[QTextBlock]], count: int) -> None:
        """The first `count` lines will not change any more."""
        for number, blocks in enumerate(lines[:count]):
            self._settle_card(blocks[0])
            after = lines[number + 1][0].userState() if number + 1 < len(lines) else LineKind.TEXT
            if blocks[0].userState() == LineKind.CODE and after != LineKind.CODE:
                self._on_code(blocks[-1])
        if count < len(lines):
            self._anchor.setPosition(lines[count][0].position())
        del self._dressed[:count]

    def _settle_card(self, block: QTextBlock) -> None:
        if _begins_card(block):
            cursor = QTextCursor(block)
            cursor.setKeepPositionOnInsert(True)
            self._cards.append(cursor)

    def _dress_lines(self, formatted: Formatted, lines: list[list[QTextBlock]]) -> None:
        ghosts = self._ghosts()
        numbers = range(min(len(lines), len(formatted.lines)))
        dressed: list[_Dressed] = []
        for number in numbers:
            line = formatted.lines[number]
            new = displayed(formatted.display(line)), line, tuple(formatted.runs(line))
            old = self._dressed[number] if number < len(self._dressed) else None
            dressed.append(new)
            if old is None or not _same(old, new):
                self._dress_line(new, lines[number], ghosts)
        for table, rows in groupby(numbers, lambda number: formatted.lines[number].kind in _IN_TABLE):
            if table:
                self._dress_table([(dressed[row], lines[row]) for row in rows])
        self._dressed[: len(dressed)] = dressed

    def _dress_line(self, dressed: _Dressed, blocks: list[QTextBlock], ghosts: list[Stretch]) -> None:
        display, line, runs = dressed
        dress_text(blocks, ghosts, display, runs, line, self._formats)
        self.note(blocks[0])
        if line.kind not in TABLE_LINES:
            for block in blocks:
                form = self._formats.block(line, len(display), continued=block != blocks[0])
                _mark_code(form, runs)
                dress_block(block, line, form)

    def _dress_table(self, rows: list[tuple[_Dressed, list[QTextBlock]]]) -> None:
        found = None
        for (display, line, runs), blocks in rows:
            if line.kind in TABLE_LINES:
                form = self._formats.block(line, len(display))
                form.setTabPositions(blocks[0].blockFormat().tabPositions())
                _mark_code(form, runs)
                for found in blocks:
                    dress_block(found, line, form)
        if found is not None:
            align_columns(found, self._formats)
            self.note(rows[0][1][0])

    def ghosts_changed(self, positions: list[int]) -> None:
        """Ghosts there became ticks, or ticks ghosts: what is as wide as its text is set anew."""
        tables = {self._document.findBlock(position).blockNumber() for position in positions}
        for number in tables:
            block = self._document.findBlockByNumber(number)
            if block.userState() in TABLE_LINES:
                align_columns(block, self._formats)
                self.note(block)

    def note(self, block: QTextBlock) -> None:
        """This block and those after it are set in other formats."""
        number = block.blockNumber()
        self.reformatted = number if self.reformatted < 0 else min(number, self.reformatted)

    # Places

    def _ghosts(self) -> list[Stretch]:
        """Where ghosts stand in the tail."""
        spans = self._spans
        first = max(spans.find(self._anchor.position()), 0)
        return spans.ghosts(first, len(spans))

    def ghosts_of(self, block: QTextBlock) -> list[Stretch]:
        """Where ghosts stand in a block."""
        spans, start = self._spans, block.position()
        first = spans.find(start)
        while first > 0 and spans.starts[first - 1] == start:
            first -= 1
        return spans.ghosts(max(first, 0), spans.find(start + block.length()) + 1)

    @property
    def settled_cards(self) -> int:
        """How many code cards and tables stand before what may still change."""
        return len(self._cards)

    def cards(self, first: int = 0) -> list[QTextBlock]:
        """The first lines of code cards and tables from number `first` on, in order."""
        found = [cursor.block() for cursor in self._cards[first:]]
        block = self._anchor.block()
        while block.isValid():
            if _begins_card(block) and (not found or found[-1] != block):
                found.append(block)
            block = block.next()
        return found

    def _walk(self, most: int) -> Iterator[list[QTextBlock]]:
        """The blocks of the tail's first lines."""
        block = self._anchor.block()
        while most and block.isValid():  # a negative number: all of them
            blocks = [block]
            while self.continues(blocks[-1]):
                blocks.append(blocks[-1].next())
            yield blocks
            block = blocks[-1].next()
            most -= 1

    def continues(self, block: QTextBlock) -> bool:
        """Whether the display alone breaks the line after this block."""
        breaks, end = self._spans.breaks, block.position() + block.length() - 1
        place = bisect_left(breaks, end)
        return block.isValid() and place < len(breaks) and breaks[place] == end


_IN_TABLE = (*TABLE_LINES, LineKind.HIDDEN)


def _begins_card(block: QTextBlock) -> bool:
    kind = block.userState()
    if kind == LineKind.CODE:
        return not block.previous().isValid() or block.previous().userState() < LineKind.CODE
    return kind in (LineKind.HEAD, LineKind.FENCE_OPEN)


def _mark_code(form: QTextBlockFormat, runs: tuple[Run, ...]) -> None:
    if any(run.style & CODE for run in runs):
        form.setProperty(INLINE_CODE, True)


def _same(old: _Dressed, new: _Dressed) -> bool:
    """Whether a line, wherever it now begins, looks the same."""
    (display, line, runs), (display2, line2, runs2) = old, new
    shift = line2.start - line.start
    return (
        display == display2
        and (line.kind, line.quotes, line.lists, line.hang, line.first, line.heading)
        == (line2.kind, line2.quotes, line2.lists, line2.hang, line2.first, line2.heading)
        and len(runs) == len(runs2)
        and all(
            (a.start + shift, a.stop + shift, a.style, a.href) == (b.start, b.stop, b.style, b.href)
            for a, b in zip(runs, runs2, strict=True)
        )
    )
