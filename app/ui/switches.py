"""Two painted controls of the settings page: an on/off switch and a row of segments of which one is chosen."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFocusEvent, QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QHBoxLayout, QSizePolicy, QWidget

from app.theme import PX_LABEL, RADIUS_CONTROL, active, ui_font

_KEYBOARD = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason, Qt.FocusReason.ShortcutFocusReason)


class _Painted(QAbstractButton):
    """A button that draws itself and shows its focus ring only where the keyboard brought the focus."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setCheckable(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._ring = False

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = event.reason() in _KEYBOARD
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        super().focusOutEvent(event)

    def draw_ring(self, painter: QPainter, radius: float) -> None:
        """The focus ring, inside the widget's own rectangle."""
        if self._ring and self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(active().color("accent"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), radius, radius)


class Switch(_Painted):
    """On or off. The state is also drawn by the side the knob is on."""

    value_changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.toggled.connect(self._on_toggled)

    @Slot(bool)
    def _on_toggled(self, on: bool) -> None:
        self.value_changed.emit(on)

    def set_value(self, value: bool) -> None:
        """Show a value without telling anyone."""
        self.blockSignals(True)
        self.setChecked(value)
        self.blockSignals(False)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(42, 26)

    def paintEvent(self, _: QPaintEvent) -> None:
        theme = active()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        track = QRectF(4, 3, 34, 20)
        on = self.isChecked()
        painter.setPen(QPen(theme.color("accent_bg" if on else "text3"), 1))
        painter.setBrush(theme.color("accent_bg" if on else "input"))
        painter.drawRoundedRect(track.adjusted(0.5, 0.5, -0.5, -0.5), 10, 10)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("on_accent" if on else "text3"))
        painter.drawEllipse(QRectF(21 if on else 7, 6, 14, 14))
        self.draw_ring(painter, 12)


class _Segment(_Painted):
    """One choice of a `Segmented`."""

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self.text()) + 24, metrics.height() + 12)

    def paintEvent(self, _: QPaintEvent) -> None:
        theme = active()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        chosen = self.isChecked()
        hovered = self.underMouse() and self.isEnabled()
        fill = theme.color("raised") if chosen else theme.color("hover") if hovered else None
        box = QRectF(self.rect()).adjusted(2, 2, -2, -2)
        if fill is not None:
            painter.setPen(QPen(theme.color("line2"), 1) if chosen and not theme.washes else Qt.PenStyle.NoPen)
            painter.setBrush(fill)
            painter.drawRoundedRect(box, RADIUS_CONTROL - 2, RADIUS_CONTROL - 2)
        painter.setFont(ui_font(PX_LABEL, QFont.Weight.DemiBold if chosen else QFont.Weight.Normal))
        painter.setPen(QColor(theme.color("text3" if not self.isEnabled() else "text" if chosen else "text2")))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.text())
        self.draw_ring(painter, RADIUS_CONTROL)


class Segmented(QWidget):
    """A few choices side by side; arrow keys move between them. Values may be of any type."""

    value_changed = Signal(object)

    def __init__(self, choices: tuple[tuple[Any, str], ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._values = [value for value, _ in choices]
        self._group = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for number, (_, words) in enumerate(choices):
            segment = _Segment(self)
            segment.setText(words)
            segment.setFont(ui_font(PX_LABEL))
            segment.setAccessibleName(words)
            self._group.addButton(segment, number)
            row.addWidget(segment, 1)
        self._group.idClicked.connect(self._on_clicked)

    @Slot(int)
    def _on_clicked(self, number: int) -> None:
        self.value_changed.emit(self._values[number])

    def set_value(self, value: Any) -> None:
        """Show a value without telling anyone."""
        self._group.button(self._values.index(value)).setChecked(True)

    def set_missing(self, values: tuple[Any, ...], reason: str) -> None:
        """Disable the choices of these values, with the reason as their tooltip; () enables all."""
        for value, button in zip(self._values, self._group.buttons(), strict=True):
            button.setEnabled(value not in values)
            button.setToolTip(reason if value in values else "")

    def name_all(self, label: str) -> None:
        """Put the setting's label before each choice for screen readers."""
        self.setAccessibleName(label)
        for button in self._group.buttons():
            button.setAccessibleName(f"{label}: {button.text()}")

    def paintEvent(self, _: QPaintEvent) -> None:
        theme = active()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("line2"), 1))
        painter.setBrush(theme.color("input"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS_CONTROL, RADIUS_CONTROL)
