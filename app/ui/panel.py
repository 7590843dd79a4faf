"""The plain surfaces that the window is laid out on, and labels in a tone of the theme."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.theme import PX_CAPTION, PX_CONTROL, RADIUS_WASH, active, is_theme_change, ui_font


class Panel(QWidget):
    """A widget filled with a colour role of the theme, with hairlines along the named edges ("right bottom")."""

    def __init__(self, role: str, edges: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._role = role
        self._edges = edges.split()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        theme = active()
        painter.fillRect(event.rect(), theme.color(self._role))
        line = theme.color("line")
        right, bottom = self.width() - 1, self.height() - 1
        rects = {
            "left": (0, 0, 1, self.height()),
            "right": (right, 0, 1, self.height()),
            "top": (0, 0, self.width(), 1),
            "bottom": (0, bottom, self.width(), 1),
        }
        for edge in self._edges:
            painter.fillRect(*rects[edge], line)

    def changeEvent(self, event: QEvent) -> None:
        if is_theme_change(event):
            self.update()
        super().changeEvent(event)


class ToneLabel(QLabel):
    """Text in a colour role and a size of the design; keeps both when the theme changes."""

    def __init__(
        self,
        text: str = "",
        tone: str = "text",
        px: float = PX_CONTROL,
        weight: QFont.Weight = QFont.Weight.Normal,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self._tone = tone
        self._px = px
        self._weight = weight
        self._dress()

    def set_tone(self, tone: str) -> None:
        """Another colour role."""
        if tone != self._tone:
            self._tone = tone
            self._dress()

    def changeEvent(self, event: QEvent) -> None:
        if is_theme_change(event):
            self._dress()
        super().changeEvent(event)

    def _dress(self) -> None:
        color = active().color(self._tone)
        palette = self.palette()
        if palette.color(QPalette.ColorRole.WindowText) != color:
            palette.setColor(QPalette.ColorRole.WindowText, color)
            self.setPalette(palette)
        font = ui_font(self._px, self._weight)
        if font != self.font():
            self.setFont(font)


class Tag(ToneLabel):
    """A small framed word."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, "text2", PX_CAPTION, parent=parent)
        self.setContentsMargins(7, 1, 7, 1)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(active().color("line2"), 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS_WASH, RADIUS_WASH)
        painter.end()
        super().paintEvent(event)


class ElidedLabel(ToneLabel):
    """A label that gives way: it shortens its text with an ellipsis and then shows all of it in a tooltip."""

    def __init__(
        self,
        text: str = "",
        tone: str = "text",
        px: float = PX_CONTROL,
        weight: QFont.Weight = QFont.Weight.Normal,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(text, tone, px, weight, parent)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance("…") * 3, super().minimumSizeHint().height())

    def paintEvent(self, _: QPaintEvent) -> None:
        metrics = self.fontMetrics()
        shown = metrics.elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        self.setToolTip(self.text() if shown != self.text() else "")
        painter = QPainter(self)
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        painter.drawText(self.rect(), self.alignment() | Qt.AlignmentFlag.AlignVCenter, shown)


class Dot(QWidget):
    """A small round mark in a colour role; decoration beside words that say the same."""

    def __init__(self, tone: str = "text3", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tone = tone
        self.setFixedSize(8, 8)

    def set_tone(self, tone: str) -> None:
        """Another colour role."""
        if tone != self._tone:
            self._tone = tone
            self.update()

    @property
    def tone(self) -> str:
        """The colour role in force."""
        return self._tone

    def paintEvent(self, _: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(active().color(self._tone)))
        painter.drawEllipse(self.rect().adjusted(1, 1, -1, -1))


def beside(*parts: QWidget) -> QWidget:
    """Widgets in a row without gaps; the last one takes the room."""
    return _joined(QHBoxLayout(), parts, len(parts) - 1)


def stacked(*parts: QWidget, grows: int = 0) -> QWidget:
    """Widgets in a column without gaps; part number `grows` takes the room."""
    return _joined(QVBoxLayout(), parts, grows)


def _joined(layout: QBoxLayout, parts: tuple[QWidget, ...], grows: int) -> QWidget:
    holder = QWidget()
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(0)
    for number, part in enumerate(parts):
        layout.addWidget(part, int(number == grows))
    holder.setLayout(layout)
    return holder
