"""How much of the context is used: a small ring and the figures."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme import PX_LABEL, active, is_theme_change, ui_font

WARN_FROM = 0.80
ERROR_FROM = 0.95
_RING = 14


def short_count(tokens: int) -> str:
    """3200 -> "3.2k", 8192 -> "8k", 320 -> "320"; thousands of 1,024 where the number is made of them."""
    if tokens < 1000:
        return str(tokens)
    thousands = tokens / 1024 if tokens % 1024 == 0 else tokens / 1000
    return f"{thousands:.1f}".removesuffix(".0") + "k"


class ContextGauge(QWidget):
    """Accent to 80 %, warning to 95 %, then error, with words. Hidden until the total is known."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._used = 0
        self._total = 0
        self.setFont(ui_font(PX_LABEL))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.hide()

    def set_gauge(self, used: int, total: int) -> None:
        """Tokens used and tokens there are; a total of 0 hides the gauge."""
        self._used, self._total = used, total
        self.setVisible(total > 0)
        tip = self.tr("{used} of {total} tokens of the context are used.")
        self.setToolTip(tip.replace("{used}", f"{used:,}").replace("{total}", f"{total:,}"))
        self.setAccessibleName(self.text())
        self.updateGeometry()
        self.update()

    def role(self) -> str:
        """The colour role in force."""
        share = self._used / self._total if self._total else 0.0
        return "error" if share >= ERROR_FROM else "warn" if share >= WARN_FROM else "accent"

    def text(self) -> str:
        """The figures, in words where they matter."""
        used, total = short_count(self._used), short_count(self._total)
        text = {
            "accent": self.tr("{used} of {total} tokens"),
            "warn": self.tr("{used} of {total} tokens, filling up"),
            "error": self.tr("{used} of {total} tokens, nearly full"),
        }[self.role()]
        return text.replace("{used}", used).replace("{total}", total)

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(self.font())
        return QSize(_RING + 8 + round(metrics.horizontalAdvance(self.text())), 28)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = active()
        role = self.role()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ring = QRectF(1.5, (self.height() - _RING) / 2 + 1, _RING - 2, _RING - 2)
        painter.setPen(QPen(theme.color("line2"), 2))
        painter.drawEllipse(ring)
        share = min(self._used / self._total, 1.0) if self._total else 0.0
        painter.setPen(QPen(theme.color(role), 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        painter.drawArc(ring, 90 * 16, -round(360 * 16 * share))
        painter.setPen(theme.color("text2" if role == "accent" else role))
        box = QRectF(_RING + 6, 0, self.width() - _RING - 6, self.height())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, self.text())
        painter.end()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event):
            self.update()
