"""A few words at the bottom left for some seconds, with a way back."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, QTimer, Signal, Slot
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.theme import RADIUS_CARD, active
from app.ui.panel import ElidedLabel
from app.widgets.icon_button import IconButton, TextButton

SHOWN_MS = 8000
MARGIN = 12
ABOVE = 40  # the status line
WIDTH = 224  # as the side bar, so that it covers nothing else


class UndoToast(QWidget):
    """One at a time. undone() by its button; expired() when its time is over, it is dismissed or another comes."""

    undone = Signal()
    expired = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._pending = False
        self._words = ElidedLabel()
        self.undo_button = TextButton(self.tr("Undo"), "secondary", parent=self)
        self.undo_button.clicked.connect(self._undo)
        self.close_button = IconButton("close", self.tr("Dismiss"), self)
        self.close_button.clicked.connect(self.expire)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.undo_button)
        row.addStretch(1)
        row.addWidget(self.close_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 8, 8)
        column.setSpacing(8)
        column.addWidget(self._words)
        column.addLayout(row)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SHOWN_MS)
        self._timer.timeout.connect(self.expire)
        window.installEventFilter(self)
        self.hide()

    def offer(self, words: str) -> None:
        """Say what was done, and offer to undo it."""
        self._show(words, undoable=True)

    def say(self, words: str) -> None:
        """Say what was done."""
        self._show(words, undoable=False)

    def _show(self, words: str, undoable: bool) -> None:
        self.expire()
        self._pending = undoable
        self.undo_button.setVisible(undoable)
        self._words.setText(words)
        self._words.setToolTip(words)
        self.setAccessibleName(words)
        self._place()
        self.show()
        self.raise_()
        self._timer.start()

    @property
    def words(self) -> str:
        """What it says; "" while it is hidden."""
        return "" if self.isHidden() else self._words.text()

    @Slot()
    def _undo(self) -> None:
        self._pending = False
        self.expire()
        self.undone.emit()

    @Slot()
    def expire(self) -> None:
        """The time for undoing is over."""
        self._timer.stop()
        self.hide()
        if self._pending:
            self._pending = False
            self.expired.emit()

    def _place(self) -> None:
        width = min(WIDTH, self._window.width() - 2 * MARGIN)
        height = self.sizeHint().height()
        self.setGeometry(MARGIN, self._window.height() - height - ABOVE, width, height)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._timer.stop()

    def leaveEvent(self, event: QEvent) -> None:
        if self.isVisible():
            self._timer.start()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = active()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("line2"), 1))
        painter.setBrush(theme.color("raised"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS_CARD, RADIUS_CARD)
        painter.end()
