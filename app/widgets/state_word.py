"""A token state as a word drawn in its own form, and the legend of the two models' bars."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme import PX_CAPTION, PX_LABEL, Theme, active, ui_font
from app.widgets.painted import PaintedWidget
from app.widgets.token_paint import dot_tile, paint_dots, paint_washes
from app.widgets.token_spans import SpanKind


def paint_state_word(
    painter: QPainter, kind: SpanKind, text: str, word: QRectF, font: QFont, scale: float, theme: Theme
) -> None:
    """A word, vertically in the middle of its box, in the form that tokens of its state have in the text."""
    metrics = QFontMetricsF(font)
    middle = word.center().y()
    underline = round(middle + metrics.ascent() / 2 + 3)
    drawn = QFont(font)
    painter.setPen(theme.color("text"))
    if kind is SpanKind.ACCEPTED and theme.washes:
        height = metrics.height() - 4
        paint_washes(painter, [QRectF(word.left(), middle - height / 2, word.width(), height)], theme)
        painter.setPen(theme.color("text"))
    elif kind is SpanKind.GHOST:
        drawn.setStrikeOut(True)
        painter.setPen(theme.color("rejected"))
    painter.setFont(drawn)
    painter.drawText(word.adjusted(0, 0, 2, 0), Qt.AlignmentFlag.AlignVCenter, text)
    if kind is SpanKind.ACCEPTED and not theme.washes:
        painter.setPen(QPen(theme.color("accepted_dot"), 1))
        painter.drawLine(QLineF(word.left(), underline, word.right(), underline))
    elif kind is SpanKind.CORRECTION:
        painter.setPen(QPen(theme.color("correction"), 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        painter.drawLine(QLineF(word.left(), underline, word.right(), underline))
    elif kind is SpanKind.BONUS:
        paint_dots(painter, word.left(), word.right(), underline, dot_tile(theme.color("bonus"), scale))


class StateWord(PaintedWidget):
    """One word: the state of a token."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kind = SpanKind.PLAIN
        self.setFont(ui_font(PX_LABEL))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_kind(self, kind: SpanKind) -> None:
        """Show the state of this kind of span."""
        self._kind = kind
        self.setAccessibleName(self.word)
        self.updateGeometry()
        self.redraw()

    @property
    def word(self) -> str:
        """What is shown."""
        words = {
            SpanKind.ACCEPTED: self.tr("accepted"),
            SpanKind.GHOST: self.tr("rejected"),
            SpanKind.CORRECTION: self.tr("correction"),
            SpanKind.BONUS: self.tr("bonus"),
            SpanKind.PLAIN: self.tr("plain"),
            SpanKind.GIVEN: self.tr("given"),
        }
        return words.get(self._kind, "")

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(self.font())
        return QSize(round(metrics.horizontalAdvance(self.word)) + 6, round(metrics.height()) + 8)

    def draw(self, painter: QPainter) -> None:
        word = QRectF(2, 0, self.width() - 6, self.height())
        paint_state_word(painter, self._kind, self.word, word, self.font(), self.devicePixelRatioF(), active())


class Legend(PaintedWidget):
    """Which bar is the draft's and which the full model's, at the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFont(ui_font(PX_CAPTION))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Upper bar and first figure: draft. Lower bar and second figure: full model."))

    def sizeHint(self) -> QSize:
        return QSize(120, round(QFontMetricsF(self.font()).height()) + 2)

    def draw(self, painter: QPainter) -> None:
        theme, metrics = active(), QFontMetricsF(self.font())
        right = self.width() - 8.0
        for text, role in ((self.tr("full"), "verify"), (self.tr("draft"), "draft")):
            left = right - metrics.horizontalAdvance(text)
            painter.setFont(self.font())
            painter.setPen(theme.color("text2"))
            painter.drawText(QRectF(left, 0, right - left + 2, self.height()), Qt.AlignmentFlag.AlignVCenter, text)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(role))
            painter.drawRoundedRect(QRectF(left - 13, self.height() / 2 - 4, 8, 8), 2, 2)
            right = left - 13 - 14
