"""The field above the chats in which they are searched."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QLineEdit, QToolButton, QWidget

from app.icons import icon
from app.theme import PX_CAPTION, active, is_theme_change, ui_font


class SearchField(QLineEdit):
    """down() when the arrow key leads to what was found; given_up() on Esc."""

    down = Signal()
    given_up = Signal()

    def __init__(self, keys: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._drawn = ""
        self.setPlaceholderText(self.tr("Search chats"))
        self.setAccessibleName(self.tr("Search chats"))
        self.setClearButtonEnabled(True)
        self.setMaxLength(200)
        self._lens = QAction(self)
        for button in self.findChildren(QToolButton):
            button.setAccessibleName(self.tr("Clear the search"))
        self.addAction(self._lens, QLineEdit.ActionPosition.LeadingPosition)
        for button in self.findChildren(QToolButton):
            if not button.accessibleName():
                button.setAccessibleName(self.placeholderText())
        self._keys = QLabel(keys, self)
        self._keys.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._keys.setFont(ui_font(PX_CAPTION))
        self.textChanged.connect(self._show_keys)
        self._dress()

    def _show_keys(self) -> None:
        self._keys.setVisible(not self.text())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Down:
            self.down.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.given_up.emit()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        # The window's own Esc stops replies; in here it ends the search.
        override = event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent)
        if override and event.key() == Qt.Key.Key_Escape:  # type: ignore[attr-defined]
            event.accept()
            return True
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        size = self._keys.sizeHint()
        place = QPoint(self.width() - size.width() - 10, (self.height() - size.height()) // 2)
        self._keys.setGeometry(QRect(place, size))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "_keys"):
            self._dress()

    def _dress(self) -> None:
        if self._drawn == active().name:
            return
        self._drawn = active().name
        self._lens.setIcon(icon("search", "text3"))
        palette = self._keys.palette()
        palette.setColor(self._keys.foregroundRole(), active().color("text3"))
        self._keys.setPalette(palette)
