"""Columns of a table: tabs as far apart as the widest of their cells, ghosts included."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, zip_longest

from PySide6.QtGui import QFontMetricsF, QTextBlock, QTextCursor

from app.markdown.lines import NOTHING, TABLE_LINES, LineKind
from app.widgets.line_dressing import as_text, as_units
from app.widgets.reply_formats import ALIGNS, ReplyFormats

MOST_ROWS = 200  # that are measured together, upwards and downwards


def align_columns(block: QTextBlock, formats: ReplyFormats) -> None:
    """Set the tabs of the table that a block is a row of."""
    rows = [block, *islice(_rows(block, down=False), MOST_ROWS), *islice(_rows(block, down=True), MOST_ROWS)]
    rows = [row for row in rows if row.userState() in TABLE_LINES]
    widths = [max(column) for column in zip_longest(*map(_widths, rows), fillvalue=0.0)]
    for row in rows:
        form = row.blockFormat()
        tabs = formats.tabs(widths, str(form.property(ALIGNS) or "").split(","))
        if [(tab.position, tab.type) for tab in form.tabPositions()] != [(tab.position, tab.type) for tab in tabs]:
            form.setTabPositions(tabs)
            QTextCursor(row).setBlockFormat(form)


def _rows(block: QTextBlock, *, down: bool) -> Iterator[QTextBlock]:
    """The lines of the table below or above one of its rows. The line under its head counts."""
    while True:
        if not down and block.userState() == LineKind.HEAD:
            return
        block = block.next() if down else block.previous()
        kind = block.userState() if block.isValid() else LineKind.TEXT
        if kind not in (LineKind.ROW, LineKind.HIDDEN) and (down or kind != LineKind.HEAD):
            return
        yield block


def _widths(row: QTextBlock) -> list[float]:
    """Widths of a row's cells."""
    text, widths = as_units(row.text()), [0.0]
    for piece in row.textFormats():
        metrics = QFontMetricsF(piece.format.font())
        first, *others = as_text(text[piece.start : piece.start + piece.length]).replace(NOTHING, "").split("\t")
        widths[-1] += metrics.horizontalAdvance(first)
        widths += [metrics.horizontalAdvance(other) for other in others]
    return widths
