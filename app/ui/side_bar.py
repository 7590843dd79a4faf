"""The left column: brand and new chat, the chats of this run, and the way to the settings."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QPainter
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.conversation import Chat
from app.icons import icon
from app.theme import (
    PX_CAPTION,
    PX_CONTROL,
    PX_TEXT,
    RADIUS_CONTROL,
    SPACING_BLOCK,
    SPACING_PART,
    SPACING_WIDE,
    active,
    is_theme_change,
    ui_font,
)
from app.ui.panel import Panel, ToneLabel
from app.widgets.icon_button import IconButton, TextButton

WIDTH = 248
ROW_HEIGHT = 36
CHAT_ID = Qt.ItemDataRole.UserRole
BUSY = Qt.ItemDataRole.UserRole + 1


class RowDelegate(QStyledItemDelegate):
    """Rows 36 high with a rounded ground; a dot at the right while a reply is being written."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(0, ROW_HEIGHT)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        theme = active()
        state: QStyle.StateFlag = option.state
        rect: QRect = option.rect
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if chosen or hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("raised" if chosen else "hover"))
            painter.drawRoundedRect(QRectF(rect).adjusted(0, 1, 0, -1), RADIUS_CONTROL, RADIUS_CONTROL)
        if state & QStyle.StateFlag.State_HasFocus and state & QStyle.StateFlag.State_KeyboardFocusChange:
            painter.setPen(theme.color("accent"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(rect).adjusted(1, 2, -1, -2), RADIUS_CONTROL, RADIUS_CONTROL)
        busy = bool(index.data(BUSY))
        room = rect.adjusted(SPACING_BLOCK, 0, -SPACING_BLOCK - (SPACING_WIDE if busy else 0), 0)
        font = ui_font(PX_CONTROL, QFont.Weight.DemiBold if chosen else QFont.Weight.Normal)
        painter.setFont(font)
        painter.setPen(theme.color("text" if chosen else "text2"))
        words = painter.fontMetrics().elidedText(str(index.data()), Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, words)
        if busy:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent"))
            painter.drawEllipse(QRectF(rect.right() - SPACING_BLOCK - 6, rect.center().y() - 2.5, 6, 6))
        painter.restore()


class RowList(QListWidget):
    """A list without frame on the side colour."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setItemDelegate(RowDelegate(self))
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.setUniformItemSizes(True)


class SideBar(Panel):
    """Signals: new_chat(), chat_chosen(chat_id), settings()."""

    new_chat = Signal()
    chat_chosen = Signal(int)
    settings = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("side", "right", parent)
        self.setFixedWidth(WIDTH)
        self._brand = QLabel()
        self._drawn = ""
        self.new_button = IconButton("new-chat", self.tr("New chat (Ctrl+N)"))
        self.new_button.clicked.connect(self.new_chat)
        self._caption = ToneLabel(self.tr("Chats of this run"), "text3", PX_CAPTION, QFont.Weight.Medium)
        self._caption.setContentsMargins(SPACING_BLOCK, 0, 0, 0)
        self.list = RowList()
        self.list.setAccessibleName(self.tr("Chats"))
        self.list.itemClicked.connect(self._on_item)
        self.list.itemActivated.connect(self._on_item)
        self.settings_button = TextButton(self.tr("Settings"), "ghost", "settings")
        self.settings_button.setToolTip(self.tr("Settings (Ctrl+,)"))
        self.settings_button.clicked.connect(self.settings)
        bottom = QHBoxLayout()
        bottom.addWidget(self.settings_button)
        bottom.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACING_BLOCK, 0, SPACING_BLOCK + 1, SPACING_PART)
        column.setSpacing(SPACING_PART)
        column.addLayout(self._head())
        column.addSpacing(SPACING_PART)
        column.addWidget(self._caption)
        column.addWidget(self.list, 1)
        column.addLayout(bottom)
        self._dress()
        self.show_chats([], 0, None)

    def _head(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setContentsMargins(4, 10, 0, 0)
        row.setSpacing(SPACING_PART)
        row.addWidget(self._brand)
        row.addWidget(ToneLabel("Specular", "text", PX_TEXT, QFont.Weight.DemiBold))
        row.addStretch(1)
        row.addWidget(self.new_button)
        return row

    def show_chats(self, chats: list[Chat], current_id: int, busy_id: int | None) -> None:
        """The chats newest first, which one is open, and in which a reply is being written."""
        self.list.clear()
        for chat in chats:
            title = chat.title or self.tr("Untitled")
            if chat.replay:
                title = self.tr("Replay: {title}").replace("{title}", title)
            item = QListWidgetItem(title)
            item.setData(CHAT_ID, chat.chat_id)
            item.setData(BUSY, chat.chat_id == busy_id)
            item.setToolTip(title)
            if chat.chat_id == busy_id:
                item.setData(Qt.ItemDataRole.AccessibleDescriptionRole, self.tr("A reply is being written"))
            self.list.addItem(item)
            if chat.chat_id == current_id:
                self.list.setCurrentItem(item)
        self._caption.setVisible(bool(chats))
        self.list.setFocusPolicy(Qt.FocusPolicy.StrongFocus if chats else Qt.FocusPolicy.NoFocus)

    @Slot(QListWidgetItem)
    def _on_item(self, item: QListWidgetItem) -> None:
        self.chat_chosen.emit(item.data(CHAT_ID))

    def _dress(self) -> None:
        if self._drawn == active().name:
            return
        self._drawn = active().name
        self._brand.setPixmap(icon("brand", "accent", 20).pixmap(QSize(20, 20), self.devicePixelRatio()))

    def changeEvent(self, event: QEvent) -> None:
        if is_theme_change(event) and hasattr(self, "settings_button"):
            self._dress()
        super().changeEvent(event)
