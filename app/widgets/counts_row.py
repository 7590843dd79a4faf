"""The counts under a reply. Each word is drawn in the style of its own token state, so the row is the legend too."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QHelpEvent, QPainter
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.theme import PX_LABEL, Theme, active, ui_font
from app.widgets.painted import PaintedWidget
from app.widgets.state_word import paint_state_word
from app.widgets.token_spans import SpanKind
from engine.statistics import ReplyStatistics

_GAP = 20
_NEAR = 5


@dataclass(frozen=True, slots=True)
class _Count:
    kind: SpanKind
    word: str
    count: int
    help: str


class CountsRow(PaintedWidget):
    """accepted 103 · rejected 16 · corrections 16 · bonus 9, and the colours of the timeline where there is room."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._statistics = ReplyStatistics()
        self.setFont(ui_font(PX_LABEL))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Token counts"))

    def set_statistics(self, statistics: ReplyStatistics) -> None:
        """Show the counts of a reply."""
        self._statistics = statistics
        self.setAccessibleDescription(self.summary())
        self.redraw()

    def summary(self) -> str:
        """The counts in words."""
        return ", ".join(f"{count.word} {count.count}" for count in self.counts())

    def counts(self) -> list[_Count]:
        """What the row shows, in order."""
        s = self._statistics
        plain = _Count(SpanKind.PLAIN, self.tr("plain"), s.plain, self.tr("Tokens decoded without a draft."))
        if s.drafted == 0:
            return [plain]
        agreed = self.tr("Drafts that the full model agreed with.")
        own = self.tr("The full model's own choice instead of a rejected draft.")
        extra = self.tr("The full model's extra token after drafts that were all accepted.")
        shown = [
            _Count(SpanKind.ACCEPTED, self.tr("accepted"), s.kept, agreed),
            _Count(SpanKind.GHOST, self.tr("rejected"), s.tested - s.accepted, self._rejected_help()),
            _Count(SpanKind.CORRECTION, self.tr("corrections"), s.corrections, own),
            _Count(SpanKind.BONUS, self.tr("bonus"), s.bonuses, extra),
        ]
        return [*shown, plain] if s.plain else shown

    def _rejected_help(self) -> str:
        untested = self._statistics.drafted - self._statistics.tested
        text = self.tr("Drafts that the full model replaced.")
        if untested:
            more = self.tr("{count} more drafts came after a wrong one and were not tested.")
            text += " " + more.replace("{count}", str(untested))
        return text

    def sizeHint(self) -> QSize:
        return QSize(200, round(QFontMetricsF(self.font()).height()) + 10)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def _layout(self) -> list[tuple[_Count, QRectF, QRectF]]:
        """Each count with the rectangles of its word and its figure."""
        words, figures = QFontMetricsF(self.font()), QFontMetricsF(_strong(self.font()))
        x, result = 2.0, []
        for count in self.counts():
            word = QRectF(x, 0, words.horizontalAdvance(count.word), self.height())
            figure = QRectF(word.right() + _NEAR, 0, figures.horizontalAdvance(str(count.count)) + 1, self.height())
            result.append((count, word, figure))
            x = figure.right() + _GAP
        return result

    def draw(self, painter: QPainter) -> None:
        theme = active()
        right = 0.0
        for count, word, figure in self._layout():
            scale = self.devicePixelRatioF()
            paint_state_word(painter, count.kind, count.word, word, self.font(), scale, theme)
            painter.setFont(_strong(self.font()))
            painter.setPen(theme.color("text"))
            painter.drawText(figure, Qt.AlignmentFlag.AlignVCenter, str(count.count))
            right = figure.right()
        if self._statistics.drafted:
            self._paint_legend(painter, right + _GAP, theme)

    def _paint_legend(self, painter: QPainter, left: float, theme: Theme) -> None:
        """The timeline's colours, right aligned; left out where they do not fit."""
        metrics = QFontMetricsF(self.font())
        parts = [(self.tr("draft"), "draft"), (self.tr("verify"), "verify")]
        if self._statistics.wait_seconds > 0:
            parts.append((self.tr("transfer wait"), "wait"))
        widths = [metrics.horizontalAdvance(text) + 14 for text, _ in parts]
        x = self.width() - sum(widths) - 16 * (len(parts) - 1)
        if x < left:
            return
        painter.setFont(self.font())
        middle = self.height() / 2
        for (text, role), width in zip(parts, widths, strict=True):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(role))
            painter.drawRoundedRect(QRectF(x, middle - 4, 8, 8), 2, 2)
            painter.setPen(theme.color("text2"))
            box = QRectF(x + 13, 0, width, self.height())
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, text)
            x += width + 16

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            for count, word, figure in self._layout():
                if word.united(figure).contains(event.pos()):
                    QToolTip.showText(event.globalPos(), count.help, self)
                    return True
            QToolTip.hideText()
            return True
        return super().event(event)


def _strong(font: QFont) -> QFont:
    result = QFont(font)
    result.setWeight(QFont.Weight.Medium)
    return result
