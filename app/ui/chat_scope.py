"""Says beside a group of settings that they are those of the open chat, and makes them everyone's."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.live_settings import LiveSettings
from app.theme import PX_LABEL, SPACING_PART
from app.ui.panel import ToneLabel
from app.widgets.icon_button import TextButton


class ChatScope(QWidget):
    """There only while a chat that remembers these settings is open."""

    def __init__(self, settings: LiveSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._words = ToneLabel(self.tr("of the open chat"), "text2", PX_LABEL)
        self.button = TextButton(self.tr("Use for new chats"), "ghost")
        self.button.setToolTip(self.tr("New chats begin with these values; other chats keep their own"))
        self.button.clicked.connect(settings.keep_lent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACING_PART)
        row.addWidget(self._words)
        row.addWidget(self.button)
        settings.lent_changed.connect(self._refresh)
        settings.changed.connect(self._refresh)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        self.setVisible(bool(self._settings.lent))
        self.button.setVisible(self._settings.lends_otherwise)
