"""The left column: brand and new chat, search, the chats, and the way to the settings."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from app.chat_list_model import ChatListModel
from app.history.rows import Hit
from app.icons import icon
from app.theme import PX_CAPTION, PX_TEXT, SPACING_BLOCK, SPACING_PART, active, is_theme_change
from app.ui.chat_list import ChatList
from app.ui.panel import Panel, ToneLabel
from app.ui.search_field import SearchField
from app.ui.search_list import SearchList
from app.widgets.icon_button import IconButton, TextButton

WIDTH = 248


class SideBar(Panel):
    """Signals: new_chat(), settings(), import_wanted(); chat_chosen(chat_id), hit_chosen(Hit); searched(words)."""

    new_chat = Signal()
    chat_chosen = Signal(object)
    hit_chosen = Signal(object)
    searched = Signal(str)
    import_wanted = Signal()
    settings = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("side", "right", parent)
        self.setFixedWidth(WIDTH)
        self._brand = QLabel()
        self._drawn = ""
        self.model = ChatListModel(self)
        self.more_button = self._more_button()
        self.new_button = IconButton("new-chat", self.tr("New chat (Ctrl+N)"))
        self.new_button.clicked.connect(self.new_chat)
        self.search = SearchField("Ctrl K")
        self.search.textChanged.connect(self._on_search)
        self.list = ChatList(self.model)
        self.list.chosen.connect(self.chat_chosen)
        self.found = SearchList()
        self.found.chosen.connect(self.hit_chosen)
        self.search.returnPressed.connect(self.found.choose_current)
        self.search.down.connect(self._to_found)
        self.search.given_up.connect(self.end_search)
        self.found.left.connect(self.search.setFocus)
        self._nothing = ToneLabel(self.tr("Nothing found"), "text3", PX_CAPTION)
        self._nothing.setContentsMargins(SPACING_BLOCK, SPACING_PART, 0, 0)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._pages = QStackedWidget()
        for page in (self.list, self.found, self._nothing):
            self._pages.addWidget(page)
        self._not_kept = ToneLabel(self.tr("Chats of this run are not kept"), "warn", PX_CAPTION, QFont.Weight.Medium)
        self._not_kept.setContentsMargins(SPACING_BLOCK, 0, 0, 0)
        self._not_kept.hide()
        self.settings_button = TextButton(self.tr("Settings"), "ghost", "settings")
        self.settings_button.setToolTip(self.tr("Settings (Ctrl+,)"))
        self.settings_button.clicked.connect(self.settings)
        self._lay_out()
        self._dress()
        self.show_state(None, None)

    def _lay_out(self) -> None:
        bottom = QHBoxLayout()
        bottom.addWidget(self.settings_button)
        bottom.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACING_BLOCK, 0, SPACING_BLOCK + 1, SPACING_PART)
        column.setSpacing(SPACING_PART)
        column.addLayout(self._head())
        column.addWidget(self.search)
        column.addWidget(self._pages, 1)
        column.addWidget(self._not_kept)
        column.addLayout(bottom)

    def _more_button(self) -> IconButton:
        menu = QMenu(self)
        menu.addAction(self.tr("Import chat…")).triggered.connect(self.import_wanted)
        button = IconButton("ellipsis", self.tr("More about chats"))
        button.setMenu(menu)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        return button

    def _head(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setContentsMargins(4, 10, 0, 0)
        row.setSpacing(SPACING_PART)
        row.addWidget(self._brand)
        row.addWidget(ToneLabel("Specular", "text", PX_TEXT, QFont.Weight.DemiBold))
        row.addStretch(1)
        row.addWidget(self.more_button)
        row.addWidget(self.new_button)
        return row

    def show_state(self, current_id: int | None, busy_id: int | None) -> None:
        """Which chat is open, and in which a reply is being written."""
        self.model.set_busy(busy_id)
        self.list.show_current(current_id)

    def show_not_kept(self, why: str) -> None:
        """Say that chats of this run are lost at its end."""
        self._not_kept.setToolTip(why)
        self._not_kept.setAccessibleDescription(why)
        self._not_kept.show()

    # Search

    @Slot()
    def begin_search(self) -> None:
        """Put the cursor in the field."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    @Slot()
    def end_search(self) -> None:
        """The list is back."""
        self.search.clear()
        self.list.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot(str)
    def _on_search(self, words: str) -> None:
        if not words.strip():
            self._pages.setCurrentWidget(self.list)
        self.searched.emit(words)

    def show_hits(self, hits: list[Hit]) -> None:
        """What the search for the words in the field found."""
        self.found.show_hits(hits)
        self._pages.setCurrentWidget(self.found if hits else self._nothing)

    @Slot()
    def _to_found(self) -> None:
        if self.found.isVisible():
            self.found.setFocus(Qt.FocusReason.TabFocusReason)

    def _dress(self) -> None:
        if self._drawn == active().name:
            return
        self._drawn = active().name
        self._brand.setPixmap(icon("brand", "accent", 20).pixmap(QSize(20, 20), self.devicePixelRatio()))

    def changeEvent(self, event: QEvent) -> None:
        if is_theme_change(event) and hasattr(self, "settings_button"):
            self._dress()
        super().changeEvent(event)
