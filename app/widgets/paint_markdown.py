"""What is drawn around formatted text: cards of code, bars of quotations, rules, lines of tables."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QTextBlock

from app.markdown.lines import TABLE_LINES, LineKind
from app.theme import RADIUS_CARD, RADIUS_WASH, Theme
from app.widgets.reply_document import ReplyDocument
from app.widgets.reply_formats import INDENT, INLINE_CODE, QUOTE_STEP, QUOTES
from app.widgets.token_segments import block_band, blocks_between, lines_of, metrics_of


def paint_grounds(painter: QPainter, document: ReplyDocument, exposed: QRectF, width: int, theme: Theme) -> None:
    """Draw what lies behind the exposed blocks, line by line, so that a long card costs what is seen of it."""
    if document.raw:
        return
    for block in blocks_between(document, exposed.top(), exposed.bottom()):
        kind = block.userState()
        if kind >= LineKind.CODE:
            _paint_card_slice(painter, block, width, theme.color("surface"), theme.color("line"))
        quotes = block.blockFormat().property(QUOTES)
        if quotes:
            _paint_quotes(painter, block, int(quotes), theme)
        if kind == LineKind.RULE:
            top, bottom = block_band(block)
            painter.fillRect(QRectF(0, round((top + bottom) / 2), width, 1), theme.color("line2"))
        elif kind in TABLE_LINES:
            bottom = block_band(block)[1] + block.blockFormat().bottomMargin()
            left = float(block.blockFormat().property(INDENT) or 0)
            colour = theme.color("line2" if kind == LineKind.HEAD else "line")
            painter.fillRect(QRectF(left, round(bottom) - 1, width - left, 1), colour)


def paint_inline_code(painter: QPainter, document: ReplyDocument, exposed: QRectF, theme: Theme) -> None:
    """Outlines of code in the text. They are drawn above the washes, which show through."""
    painter.setPen(QPen(theme.color("line2"), 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for block in blocks_between(document, exposed.top(), exposed.bottom()):
        if not document.raw and block.blockFormat().property(INLINE_CODE):
            for rect in _inline_code(block):
                painter.drawRoundedRect(rect.adjusted(-1.5, 1.5, 1.5, -0.5), RADIUS_WASH, RADIUS_WASH)


def _inline_code(block: QTextBlock) -> list[QRectF]:
    """Where the inline code of a block stands, line by line."""
    stretches: list[list[int]] = []
    for piece in block.textFormats():
        if piece.format.property(INLINE_CODE):
            if stretches and stretches[-1][1] == piece.start:
                stretches[-1][1] += piece.length
            else:
                stretches.append([piece.start, piece.start + piece.length])
    metrics, found = metrics_of(block), []
    for line in lines_of(block):
        for start, stop in stretches:
            first = max(start + block.position(), line.start)
            last = min(stop + block.position(), line.stop)
            if first < last:
                left, right = sorted((line.x(first, block.position()), line.x(last, block.position())))
                right = min(right, line.origin.x() + line.line.x() + line.line.naturalTextWidth())
                top = line.baseline - metrics.ascent()
                found.append(QRectF(left, top, right - left, metrics.ascent() + metrics.descent()))
    return [rect for rect in found if rect.width() > 0]


def _paint_quotes(painter: QPainter, block: QTextBlock, quotes: int, theme: Theme) -> None:
    form = block.blockFormat()
    top, bottom = block_band(block)
    top, bottom = top - form.topMargin(), bottom + form.bottomMargin()
    for level in range(quotes):
        painter.fillRect(QRectF(level * QUOTE_STEP + 1, top, 3, bottom - top), theme.color("line2"))


def _is_code(block: QTextBlock) -> bool:
    return block.isValid() and block.userState() >= LineKind.CODE


def _paint_card_slice(painter: QPainter, block: QTextBlock, width: int, fill: QColor, edge: QColor) -> None:
    kind = block.userState()
    first = kind == LineKind.FENCE_OPEN or not _is_code(block.previous())
    last = kind == LineKind.FENCE_CLOSE or not _is_code(block.next())
    top, bottom = block_band(block)
    left = float(block.blockFormat().property(INDENT) or 0)
    rect = QRectF(left, top, width - left, bottom - top)
    box = rect.adjusted(0.5, 0.5 if first else -RADIUS_CARD * 2, -0.5, -0.5 if last else RADIUS_CARD * 2)
    path = QPainterPath()
    path.addRoundedRect(box, RADIUS_CARD, RADIUS_CARD)
    painter.save()
    painter.setClipRect(rect)
    painter.setPen(QPen(edge, 1))
    painter.setBrush(fill)
    painter.drawPath(path)
    painter.restore()
