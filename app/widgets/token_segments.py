"""Where on the screen the tokens of a reply are: rectangles of the marks to paint, for a band of the document only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import cast

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QTextBlock, QTextDocument, QTextLayout, QTextLine

from app.widgets.token_spans import SpanKind, TokenSpans


class LineKind(IntEnum):
    """The user state of a text block. The last three lie on the code card."""

    TEXT = -1
    GAP = 1
    END = 2
    CODE = 3
    FENCE_OPEN = 4
    FENCE_CLOSE = 5


UNMARKED_LINES = (LineKind.FENCE_OPEN, LineKind.FENCE_CLOSE)


def column_x(line: QTextLine, column: int) -> float:
    """Where a column of a block stands on its line; Qt answers with the column it settled on beside it."""
    return cast(tuple[float, int], line.cursorToX(column))[0]


@dataclass(frozen=True, slots=True)
class Segment:
    """One run of one kind, cycle and line. first: index of its first span.

    rect: from the ascent to the descent of the reply's font, without leading spaces and those that end a line.
    """

    kind: SpanKind
    cycle: int
    first: int
    rect: QRectF


@dataclass(frozen=True, slots=True)
class _Line:
    """A laid-out line in document coordinates."""

    line: QTextLine
    origin: QPointF
    start: int
    stop: int

    @property
    def baseline(self) -> float:
        return self.origin.y() + self.line.ascent()

    def x(self, position: int, block_position: int) -> float:
        return self.origin.x() + column_x(self.line, position - block_position)


def block_band(block: QTextBlock) -> tuple[float, float]:
    """Top and bottom of a block whose lines have a fixed height; Qt's own rectangle leaves out the lines' lead."""
    top = block.layout().position().y()
    return top, top + block.layout().lineCount() * block.blockFormat().lineHeight()


def blocks_between(document: QTextDocument, top: float, bottom: float) -> Iterator[QTextBlock]:
    """Blocks that touch the band from top to bottom, in document coordinates."""
    position = document.documentLayout().hitTest(QPointF(0.0, max(top, 0.0)), Qt.HitTestAccuracy.FuzzyHit)
    block = document.findBlock(max(position, 0))
    if block.previous().isValid():
        block = block.previous()
    while block.isValid():
        first, last = block_band(block)
        if first > bottom:
            return
        if last >= top:
            yield block
        block = block.next()


def lines_of(block: QTextBlock, top: float, bottom: float) -> Iterator[_Line]:
    """The lines of a block that touch the band from top to bottom."""
    layout: QTextLayout = block.layout()
    origin = layout.position()
    for i in range(layout.lineCount()):
        line = layout.lineAt(i)
        y = origin.y() + line.y()
        if y > bottom:
            return
        if y + line.height() >= top:
            start = block.position() + line.textStart()
            yield _Line(line, QPointF(origin.x(), y), start, start + line.textLength())


def segments(document: QTextDocument, spans: TokenSpans, top: float, bottom: float) -> Iterator[Segment]:
    """The marks between top and bottom (document coordinates), in reading order. Cost follows the band's height."""
    metrics = QFontMetricsF(document.defaultFont())
    for block in blocks_between(document, top, bottom):
        if block.userState() in UNMARKED_LINES:
            continue
        for line in lines_of(block, top, bottom):
            yield from _segments_of_line(spans, line, block.position(), metrics)


def segments_of_range(document: QTextDocument, spans: TokenSpans, start: int, stop: int) -> Iterator[Segment]:
    """The marks of the lines that hold the positions from start to before stop."""
    metrics = QFontMetricsF(document.defaultFont())
    block = document.findBlock(start)
    while block.isValid() and block.position() < stop:
        for line in lines_of(block, -1.0, float("inf")):
            if line.start < stop and line.stop > start:
                yield from _segments_of_line(spans, line, block.position(), metrics)
        block = block.next()


def _segments_of_line(spans: TokenSpans, line: _Line, block_position: int, metrics: QFontMetricsF) -> Iterator[Segment]:
    index = max(spans.find(line.start), 0)
    count = len(spans)
    while index < count and spans.starts[index] < line.stop:
        last = _end_of_run(spans, index, line.stop)
        start, stop = _without_spaces(spans, index, last, line)
        if start < stop:
            left, right = sorted((line.x(start, block_position), line.x(stop, block_position)))
            if spans.kinds[index] is not SpanKind.GHOST:
                right = min(right, line.origin.x() + line.line.x() + line.line.naturalTextWidth())
            if right > left:
                height = metrics.ascent() + metrics.descent()
                rect = QRectF(left, line.baseline - metrics.ascent(), right - left, height)
                yield Segment(spans.kinds[index], spans.cycles[index], index, rect)
        index = last + 1


def _end_of_run(spans: TokenSpans, index: int, stop: int) -> int:
    """Last span of the run that starts at index: accepted tokens of one cycle are one run, all else stands alone."""
    if spans.kinds[index] is not SpanKind.ACCEPTED:
        return index
    cycle = spans.cycles[index]
    count = len(spans)
    while (
        index + 1 < count
        and spans.starts[index + 1] < stop
        and spans.kinds[index + 1] is SpanKind.ACCEPTED
        and spans.cycles[index + 1] == cycle
    ):
        index += 1
    return index


def _without_spaces(spans: TokenSpans, first: int, last: int, line: _Line) -> tuple[int, int]:
    """Positions of a run on a line, leading spaces outside; a ghost keeps its spaces, which are all a tick is."""
    if spans.kinds[first] is SpanKind.GHOST:
        return max(spans.starts[first], line.start), min(spans.starts[first] + spans.length(first), line.stop)
    start = spans.starts[first]
    index = first
    while index <= last:
        text = spans.texts[index]
        spaces = len(text) - len(text.lstrip())
        start = spans.starts[index] + spaces
        if spaces < len(text):
            break
        index += 1
    return max(start, line.start), min(spans.starts[last] + spans.length(last), line.stop)
