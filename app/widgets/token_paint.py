"""How token states look: washes and underlines below the text, fades, ticks, caret and outlines above it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPixmap

from app.theme import RADIUS_WASH, Theme
from app.widgets.reply_document import ReplyDocument
from app.widgets.token_segments import Segment, blocks_between, rect_of_range, token_bounds
from app.widgets.token_spans import SpanKind

OVERHANG = 2
DOT_STEP = 4


def paint_marks(painter: QPainter, marks: Sequence[Segment], theme: Theme) -> None:
    """Washes of accepted runs, underlines of corrections and bonus tokens."""
    tile = dot_tile(theme.color("bonus"), painter.device().devicePixelRatio())
    correction = QPen(theme.color("correction"), 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap)
    if theme.washes:
        paint_washes(painter, [mark.rect for mark in marks if mark.kind is SpanKind.ACCEPTED], theme)
    else:
        painter.setPen(QPen(theme.color("accepted_dot"), 1))
        painter.drawLines([_underline(mark.rect) for mark in marks if mark.kind is SpanKind.ACCEPTED])
    painter.setPen(correction)
    painter.drawLines([_underline(mark.rect) for mark in marks if mark.kind is SpanKind.CORRECTION])
    for mark in marks:
        if mark.kind is SpanKind.BONUS:
            paint_dots(painter, mark.rect.left(), mark.rect.right(), round(mark.rect.bottom() + 1), tile)


def _underline(rect: QRectF) -> QLineF:
    y = round(rect.bottom() + 1)
    return QLineF(rect.left(), y, rect.right(), y)


def paint_washes(painter: QPainter, rects: Iterable[QRectF], theme: Theme) -> None:
    """Rounded grounds of accepted text."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("accepted_wash"))
    for rect in rects:
        box = rect.adjusted(-OVERHANG, -OVERHANG, OVERHANG, OVERHANG)
        painter.drawRoundedRect(box, RADIUS_WASH, RADIUS_WASH)


def paint_dots(painter: QPainter, left: float, right: float, y: float, tile: QPixmap) -> None:
    """A row of round dots, from a tile of `dot_tile`."""
    dots = max(round((right - left + DOT_STEP / 2) / DOT_STEP), 1)
    painter.drawTiledPixmap(QRectF(round(left), y - 1, dots * DOT_STEP - DOT_STEP / 2, 2), tile)


def dot_tile(color: QColor, scale: float) -> QPixmap:
    """One dot of a dotted underline, 4 by 2 logical pixels at a device pixel ratio. Tiles paint faster than dots."""
    tile = QPixmap(round(DOT_STEP * scale), round(2 * scale))
    tile.fill(Qt.GlobalColor.transparent)
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    if scale < 1.5:
        painter.drawRect(QRectF(0, 0, 2 * scale, 2 * scale))  # too small to be round and keep its contrast
    else:
        painter.drawEllipse(QRectF(0, 0, 2 * scale, 2 * scale))
    painter.end()
    tile.setDevicePixelRatio(scale)
    return tile


def paint_fade(painter: QPainter, rect: QRectF, share: float, theme: Theme) -> None:
    """Cover a ghost with the canvas by a share from 0 to 1."""
    cover = theme.color("canvas")
    cover.setAlphaF(share)
    painter.fillRect(rect.adjusted(-1, -1, 1, 1), cover)


def paint_tick(painter: QPainter, rect: QRectF, theme: Theme) -> None:
    """The mark that a guess was rejected here."""
    painter.setPen(QPen(theme.color("rejected"), 1.2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    x, top = rect.center().x(), rect.bottom() - 1  # below the line, where no punctuation stands
    painter.drawPolyline([QPointF(x - 2.5, top + 3.5), QPointF(x, top), QPointF(x + 2.5, top + 3.5)])


def paint_caret(painter: QPainter, end: QRectF, theme: Theme) -> None:
    """The bar at the live end."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("accent"))
    painter.drawRoundedRect(QRectF(end.right() + 3, end.top() + 1, 2.5, end.height() - 1), 1, 1)


def paint_cycle_outline(painter: QPainter, marks: list[Segment], theme: Theme) -> None:
    """An outline around one cycle's text, a box a line."""
    boxes: list[QRectF] = []
    for mark in marks:
        if boxes and abs(boxes[-1].center().y() - mark.rect.center().y()) < mark.rect.height() / 2:
            boxes[-1] = boxes[-1].united(mark.rect)
        else:
            boxes.append(QRectF(mark.rect))
    painter.setPen(QPen(theme.color("accent"), 1.2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for box in boxes:
        painter.drawRoundedRect(box.adjusted(-3, -3, 3, 4), RADIUS_WASH, RADIUS_WASH)


def paint_token_outline(painter: QPainter, rect: QRectF, theme: Theme) -> None:
    """A ring around the token that the keyboard is at."""
    painter.setPen(QPen(theme.color("accent"), 2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(rect.adjusted(-2, -2, 2, 3), RADIUS_WASH, RADIUS_WASH)


def paint_bounds(painter: QPainter, document: ReplyDocument, exposed: QRectF, theme: Theme) -> None:
    """A hairline before every token, and a sign for every line end of the source."""
    painter.setPen(QPen(theme.color("text3"), 1))
    bounds = token_bounds(document, document.spans, exposed.top(), exposed.bottom())
    painter.drawLines([QLineF(box.left() - 0.5, box.top() + 2, box.left() - 0.5, box.bottom()) for box in bounds])
    metrics = QFontMetricsF(document.defaultFont())
    breaks = set(document.spans.breaks)
    for block in blocks_between(document, exposed.top(), exposed.bottom()):
        end = block.position() + block.length() - 1
        if block.next().isValid() and end not in breaks:
            line = rect_of_range(document, end, end)
            painter.drawText(QPointF(line.left() + 3, line.top() + metrics.ascent()), "↵")
