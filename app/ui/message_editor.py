"""A question that is put differently: its text in a field, in place of its bubble."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.theme import RADIUS_BUBBLE, active, is_theme_change
from app.ui.composer import ComposerInput
from app.widgets.icon_button import TextButton


class MessageEditor(QWidget):
    """sent(text) and cancelled(): Enter and Esc as in the composer, or the buttons."""

    sent = Signal(str)
    cancelled = Signal()

    def __init__(self, text: str, send_with_ctrl: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.input = ComposerInput(self)
        self.input.setAccessibleName(self.tr("Edited message"))
        self.input.send_with_ctrl = send_with_ctrl
        self.input.set_text(text)
        self.cancel_button = TextButton(self.tr("Cancel"), "ghost", parent=self)
        self.send_button = TextButton(self.tr("Send"), "secondary", "send", self)
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addStretch(1)
        row.addWidget(self.cancel_button)
        row.addWidget(self.send_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 10, 8, 8)
        column.setSpacing(8)
        column.addWidget(self.input)
        column.addLayout(row)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.input.submitted.connect(self._send)
        self.input.textChanged.connect(self._refresh)
        self.send_button.clicked.connect(self._send)
        self.cancel_button.clicked.connect(self.cancelled)

    def _send(self) -> None:
        if self.input.has_text():
            self.sent.emit(self.input.text())

    def _refresh(self) -> None:
        self.send_button.setEnabled(self.input.has_text())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
            event.accept()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        # The window's own Esc must not take the key away from the field.
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            if event.key() == Qt.Key.Key_Escape:
                event.accept()
                return True
        elif is_theme_change(event):
            self.update()
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = active()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("line2"), 1))
        painter.setBrush(theme.color("input"))
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, RADIUS_BUBBLE, RADIUS_BUBBLE)
        painter.end()
