"""The error banner: what went wrong in one sentence, and one thing to do about it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QWidget

from app.icons import BOX, pixmap
from app.theme import RADIUS_CARD, active, is_theme_change
from app.widgets.icon_button import IconButton, TextButton


class Banner(QWidget):
    """Hidden until `show_message`. `dismissed` is emitted when the user closes it."""

    action_clicked = Signal()
    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon = QLabel(self)
        self._sentence = QLabel(self)
        self._sentence.setWordWrap(True)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._sentence.setTextFormat(Qt.TextFormat.PlainText)
        self.action_button = TextButton("", "secondary", parent=self)
        self.action_button.clicked.connect(self.action_clicked)
        self.close_button = IconButton("close", self.tr("Dismiss"), self)
        self.close_button.clicked.connect(self._dismiss)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 8, 8)
        row.setSpacing(8)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._sentence, 1)
        row.addWidget(self.action_button)
        row.addWidget(self.close_button)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self._dress()
        self.hide()

    def show_message(self, sentence: str, action_text: str | None = None) -> None:
        """Show a sentence and, with `action_text`, a button."""
        self._sentence.setText(sentence)
        self.setAccessibleName(self.tr("Error: {sentence}").replace("{sentence}", sentence))
        self.action_button.setText(action_text or "")
        self.action_button.setVisible(action_text is not None)
        self.show()

    def sentence(self) -> str:
        """What it says."""
        return self._sentence.text()

    def _dismiss(self) -> None:
        self.hide()
        self.dismissed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = active()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("error"), 1))
        painter.setBrush(theme.color("error_bg"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS_CARD, RADIUS_CARD)
        painter.end()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "close_button"):
            self._dress()

    def _dress(self) -> None:
        self._icon.setPixmap(pixmap("warning", active().error, BOX, self.devicePixelRatioF()))
        self._icon.setContentsMargins(0, 2, 0, 0)
