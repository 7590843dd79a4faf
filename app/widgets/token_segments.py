"""Where on the screen the tokens of a reply are: rectangles of the marks to paint, for a band of the document only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFontMetricsF, QTextBlock, QTextDocument, QTextLayout, QTextLine

from app.markdown.lines import TABLE_LINES, LineKind
from app.widgets.line_dressing import as_units
from app.widgets.reply_formats import heading_font
from app.widgets.token_spans import SpanKind, TokenSpans

UNMARKED_LINES = (LineKind.FENCE_OPEN, LineKind.FENCE_CLOSE, LineKind.HIDDEN, LineKind.RULE)


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
    # Halving by block number: Qt's hit test walks all blocks, and this runs for every paint.
    low, high = 0, document.blockCount() - 1
    while low < high:
        middle = (low + high + 1) // 2
        if document.findBlockByNumber(middle).layout().position().y() <= top:
            low = middle
        else:
            high = middle - 1
    block = document.findBlockByNumber(low)
    while block.isValid():
        first, last = block_band(block)
        if first > bottom:
            return
        if last >= top:
            yield block
        block = block.next()


def lines_of(block: QTextBlock) -> Iterator[_Line]:
    """The lines of a block."""
    layout: QTextLayout = block.layout()
    origin = layout.position()
    for i in range(layout.lineCount()):
        line = layout.lineAt(i)
        start = block.position() + line.textStart()
        yield _Line(line, QPointF(origin.x(), origin.y() + line.y()), start, start + line.textLength())


class MarkCache:
    """The marks of each block, worked out when its text or the width has changed. A paint costs what is in view.

    reformatted: gives, once, the number of the first block that was set in other formats, and -1 where none was.
    """

    def __init__(self, reformatted: Callable[[], int]) -> None:
        self._reformatted = reformatted
        self._blocks: dict[int, tuple[tuple[int, int, float, float, float], list[Segment]]] = {}
        self.worked_out = 0  # blocks whose marks were computed, for tests and measurements

    def between(self, document: QTextDocument, spans: TokenSpans, top: float, bottom: float) -> list[Segment]:
        """The marks that touch the band from top to bottom (document coordinates), in reading order."""
        self._forget_from(self._reformatted())
        width = document.textWidth()
        found: list[Segment] = []
        for block in blocks_between(document, top, bottom):
            if block.userState() not in UNMARKED_LINES:
                marks = self._of_block(block, spans, width)
                found += [m for m in marks if m.rect.top() <= bottom and m.rect.bottom() >= top]
        return found

    def _forget_from(self, number: int) -> None:
        if number >= 0:
            for later in [known for known in self._blocks if known >= number]:
                del self._blocks[later]

    def _of_block(self, block: QTextBlock, spans: TokenSpans, width: float) -> list[Segment]:
        place = block.layout().position()
        key = (block.revision(), block.length(), width, place.x(), place.y())
        number = block.blockNumber()
        cached = self._blocks.get(number)
        if cached is None or cached[0] != key:
            self.worked_out += 1
            cached = (key, list(segments_of_block(block, spans)))
            self._blocks[number] = cached
        return cached[1]


def segments_of_block(block: QTextBlock, spans: TokenSpans) -> Iterator[Segment]:
    """The marks of a block, in reading order."""
    metrics = metrics_of(block)
    for line in lines_of(block):
        yield from _segments_of_line(spans, line, block, metrics)


def metrics_of(block: QTextBlock) -> QFontMetricsF:
    """Those of the reply's font, or of a heading's for a heading."""
    level, font = block.blockFormat().headingLevel(), block.document().defaultFont()
    return QFontMetricsF(heading_font(level, font) if level else font)


def band_of_range(document: QTextDocument, start: int, stop: int) -> QRectF:
    """A rectangle, as wide as the text, of the lines that hold the positions from start to before stop."""
    first, last = document.findBlock(start), document.findBlock(max(start, stop - 1))
    top = block_band(first)[0] + _line_top(first, start)
    bottom = block_band(last)[0] + _line_top(last, max(start, stop - 1)) + last.blockFormat().lineHeight()
    return QRectF(0, top, document.textWidth(), bottom - top)


def rect_of_range(document: QTextDocument, start: int, stop: int) -> QRectF:
    """Where the positions from start to before stop are, on the line that start is on; at least 2 pixels wide."""
    block = document.findBlock(start)
    layout = block.layout()
    line = layout.lineForTextPosition(start - block.position())
    if not line.isValid():
        return QRectF(layout.position(), layout.position() + QPointF(2, block.blockFormat().lineHeight()))
    metrics = metrics_of(block)
    last = min(stop - block.position(), line.textStart() + line.textLength())
    left, right = sorted((column_x(line, start - block.position()), column_x(line, last)))
    top = layout.position().y() + line.y() + line.ascent() - metrics.ascent()
    return QRectF(layout.position().x() + left, top, max(right - left, 2.0), metrics.ascent() + metrics.descent())


def token_bounds(document: QTextDocument, spans: TokenSpans, top: float, bottom: float) -> Iterator[QRectF]:
    """Where tokens begin in the band from top to bottom, as upright rectangles of no width.

    Tokens without text of their own, such as the first bytes of a character, stand two pixels apart.
    """
    metrics = QFontMetricsF(document.defaultFont())
    height = metrics.ascent() + metrics.descent()
    for block in blocks_between(document, top, bottom):
        end = block.position() + block.length() - 1  # of a line end, which may be a token too
        for line in lines_of(block):
            stop = line.stop + (line.stop >= end)
            index, aside, last_start = max(spans.find(line.start), 0), 0.0, -1
            while index > 0 and spans.starts[index - 1] == spans.starts[index] >= line.start:
                index -= 1
            while index < len(spans) and spans.starts[index] < stop:
                start = spans.starts[index]
                aside = aside + 2 if start == last_start else 0.0
                if start >= line.start and spans.kinds[index] is not SpanKind.TAIL:
                    x = line.x(start, block.position()) + aside
                    yield QRectF(x, line.baseline - metrics.ascent(), 0, height)
                last_start, index = start, index + 1


def _line_top(block: QTextBlock, position: int) -> float:
    line = block.layout().lineForTextPosition(position - block.position())
    return line.lineNumber() * block.blockFormat().lineHeight() if line.isValid() else 0.0


def _segments_of_line(spans: TokenSpans, line: _Line, block: QTextBlock, metrics: QFontMetricsF) -> Iterator[Segment]:
    index = max(spans.find(line.start), 0)
    count = len(spans)
    while index < count and spans.starts[index] < line.stop:
        last = _end_of_run(spans, index, line.stop)
        start, stop = _without_spaces(spans, index, last, line)
        for first, end in _in_cells(block, start, stop):
            left, right = sorted((line.x(first, block.position()), line.x(end, block.position())))
            if spans.kinds[index] is not SpanKind.GHOST:
                right = min(right, line.origin.x() + line.line.x() + line.line.naturalTextWidth())
            if right > left:
                height = metrics.ascent() + metrics.descent()
                rect = QRectF(left, line.baseline - metrics.ascent(), right - left, height)
                yield Segment(spans.kinds[index], spans.cycles[index], index, rect)
        index = last + 1


def _in_cells(block: QTextBlock, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """A stretch of positions without the gaps between the cells of a table."""
    if block.userState() in TABLE_LINES:
        text, place = as_units(block.text()), block.position()
        while start < stop and "\t" in text[start - place : stop - place]:
            tab = text.index("\t", start - place) + place
            if text[start - place : tab - place].strip():
                yield start, tab
            start = tab + 1
    if start < stop:
        yield start, stop


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
