"""The left column beside the settings page: back to the chat, and the groups of the page."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QListWidgetItem, QVBoxLayout, QWidget

from app.declaration import GROUPS
from app.theme import PX_CAPTION, SPACING_BLOCK, SPACING_PART
from app.ui.chat_list import RowList
from app.ui.panel import Panel, ToneLabel
from app.ui.setting_editors import words
from app.ui.side_bar import WIDTH
from app.widgets.icon_button import TextButton

GROUP = Qt.ItemDataRole.UserRole


class SettingsSide(Panel):
    """Signals: back(), group_chosen(name)."""

    back = Signal()
    group_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("side", "right", parent)
        self.setFixedWidth(WIDTH)
        self.back_button = TextButton("‹  " + self.tr("Back to chat"), "ghost")
        self.back_button.setAccessibleName(self.tr("Back to chat"))
        self.back_button.clicked.connect(self.back)
        head = QHBoxLayout()
        head.setContentsMargins(0, 10, 4, 0)
        head.addWidget(self.back_button)
        head.addStretch(1)
        head.addWidget(ToneLabel(self.tr("Esc"), "text3", PX_CAPTION))
        self.list = RowList()
        self.list.setAccessibleName(self.tr("Groups of settings"))
        for group, title, _ in GROUPS:
            item = QListWidgetItem(words(title))
            item.setData(GROUP, group)
            self.list.addItem(item)
        self.list.setCurrentRow(0)
        self.list.itemClicked.connect(self._on_item)
        self.list.itemActivated.connect(self._on_item)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACING_BLOCK, 0, SPACING_BLOCK + 1, SPACING_PART)
        column.setSpacing(SPACING_BLOCK)
        column.addLayout(head)
        column.addWidget(self.list, 1)

    def mark(self, group: str) -> None:
        """Show which group is in view."""
        for row, (name, _, _) in enumerate(GROUPS):
            if name == group:
                self.list.setCurrentRow(row)

    @Slot(QListWidgetItem)
    def _on_item(self, item: QListWidgetItem) -> None:
        self.group_chosen.emit(item.data(GROUP))
