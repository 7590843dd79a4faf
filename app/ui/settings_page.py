"""The settings in place of the chat: the groups at the left where there is room, the cards beside them."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.live_settings import LiveSettings
from app.ui.settings_pane import SettingsPane
from app.ui.settings_side import SettingsSide


class SettingsPage(QWidget):
    """Signals: back() to the chat; the others ask for another model."""

    back = Signal()
    open_folder = Signal()
    open_file = Signal()
    load_starter = Signal()

    def __init__(self, settings: LiveSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.side = SettingsSide()
        self.pane = SettingsPane(settings)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.side)
        row.addWidget(self.pane, 1)
        self.side.back.connect(self.back)
        self.side.group_chosen.connect(self.pane.show_group)
        self.pane.group_in_view.connect(self.side.mark)
        self.pane.back.connect(self.back)
        self.pane.open_folder.connect(self.open_folder)
        self.pane.open_file.connect(self.open_file)
        self.pane.load_starter.connect(self.load_starter)

    def set_wide(self, wide: bool) -> None:
        """Without room for the groups the way back is in the page's own head."""
        self.side.setVisible(wide)
        self.pane.back_button.setVisible(not wide)
