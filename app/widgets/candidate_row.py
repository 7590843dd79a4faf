"""One token that might have stood at a place: its text, and what draft and full model gave it, as bars and figures."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.theme import PX_LABEL, RADIUS_BAR, RADIUS_CONTROL, active, mono_font, ui_font
from engine.candidates import Candidate

PADDING = 8
BAR = 4
FIGURE = "0.00"


def visible_piece(piece: str) -> str:
    """A token's text with its spaces and line ends to be seen."""
    return piece.replace(" ", "·").replace("\n", "↵").replace("\t", "⇥").replace("\r", "␍")


class CandidateRow(QAbstractButton):
    """A button over the width of the card. The bars share one scale from 0 to 1."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._candidate: Candidate | None = None
        self._own = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    @property
    def candidate(self) -> Candidate | None:
        """What it shows."""
        return self._candidate

    def show_candidate(self, candidate: Candidate, *, own: bool) -> None:
        """Show a token. own: it is the one that the card is about."""
        self._candidate, self._own = candidate, own
        draft = self.tr("n/a") if candidate.draft_prob is None else f"{candidate.draft_prob:.2f}"
        name = self.tr("{piece}: draft {draft}, full model {full}. Regenerate from here with it.")
        for word, value in (("piece", visible_piece(candidate.piece)), ("draft", draft)):
            name = name.replace("{" + word + "}", value)
        self.setAccessibleName(name.replace("{full}", f"{candidate.full_prob:.2f}"))
        self.setToolTip(self.tr("Token {id}. Regenerate from here with it.").replace("{id}", str(candidate.id)))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, round(QFontMetricsF(ui_font(PX_LABEL)).height()) + 6)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def paintEvent(self, _: QPaintEvent) -> None:
        if self._candidate is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme = active()
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        if self.underMouse() or self.isDown():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("raised" if self.isDown() else "hover"))
            painter.drawRoundedRect(box, RADIUS_CONTROL, RADIUS_CONTROL)
        if self.hasFocus():
            painter.setPen(QPen(theme.color("accent"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, RADIUS_CONTROL, RADIUS_CONTROL)
        figure = QFontMetricsF(ui_font(PX_LABEL)).horizontalAdvance(FIGURE) + 16
        inner = QRectF(self.rect()).adjusted(PADDING, 0, -PADDING, 0)
        words = inner.width() * 0.38
        self._paint_piece(painter, QRectF(inner.left(), 0, words - 8, inner.height()))
        bars = QRectF(inner.left() + words, 0, inner.width() - words - 2 * figure, inner.height())
        middle = inner.center().y()
        self._paint_bar(painter, bars, middle - BAR - 0.5, self._candidate.draft_prob, theme.color("draft"))
        self._paint_bar(painter, bars, middle + 0.5, self._candidate.full_prob, theme.color("verify"))
        self._paint_figure(painter, QRectF(bars.right(), 0, figure, inner.height()), self._candidate.draft_prob)
        self._paint_figure(painter, QRectF(bars.right() + figure, 0, figure, inner.height()), self._candidate.full_prob)

    def _paint_piece(self, painter: QPainter, box: QRectF) -> None:
        assert self._candidate is not None
        font = mono_font(PX_LABEL)
        font.setWeight(QFont.Weight.DemiBold if self._own else QFont.Weight.Normal)
        painter.setFont(font)
        painter.setPen(active().color("text" if self._own else "text2"))
        text = visible_piece(self._candidate.piece) or f"<{self._candidate.id}>"
        shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, box.width())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, shown)

    def _paint_bar(self, painter: QPainter, bars: QRectF, top: float, share: float | None, color: QColor) -> None:
        if share is None:
            return
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color)
        painter.drawRoundedRect(QRectF(bars.left(), top, max(bars.width() * share, 2.0), BAR), RADIUS_BAR, RADIUS_BAR)

    def _paint_figure(self, painter: QPainter, box: QRectF, share: float | None) -> None:
        painter.setFont(ui_font(PX_LABEL))
        painter.setPen(active().color("text" if share is not None else "text3"))
        text = f"{share:.2f}" if share is not None else self.tr("n/a")
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, text)
