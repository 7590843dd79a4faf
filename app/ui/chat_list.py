"""The list of chats: rows with a rounded ground under quiet headings, renamed in place, a menu for each."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPoint, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QContextMenuEvent, QFont, QKeyEvent, QMouseEvent, QPainter, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QLineEdit,
    QListView,
    QListWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app.chat_list_model import BUSY, CHAT_ID, HEADING, ChatListModel
from app.icons import BOX, icon
from app.theme import (
    PX_CAPTION,
    PX_CONTROL,
    RADIUS_CONTROL,
    SPACING_BLOCK,
    SPACING_WIDE,
    active,
    is_theme_change,
    ui_font,
)

Index = QModelIndex | QPersistentModelIndex
ROW_HEIGHT = 36
MORE_WIDTH = 28
LONGEST_TITLE = 200


class ChatDelegate(QStyledItemDelegate):
    """A dot at the right while a reply is being written; where it is pointed at, the button of its menu."""

    def __init__(self, parent: QWidget, *, menus: bool = False) -> None:
        super().__init__(parent)
        self._menus = menus
        self.look_anew()

    def look_anew(self) -> None:
        """Find the fonts, which takes too long to be done for every row."""
        self._heading = ui_font(PX_CAPTION, QFont.Weight.Medium)
        self._usual = ui_font(PX_CONTROL)
        self._chosen = ui_font(PX_CONTROL, QFont.Weight.DemiBold)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(0, max(ROW_HEIGHT, option.fontMetrics.height() + 16))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        heading = index.data(HEADING)
        if heading is not None:
            self._paint_heading(painter, option.rect, str(heading))
        else:
            self._paint_row(painter, option, index)
        painter.restore()

    def _paint_heading(self, painter: QPainter, rect: QRect, words: str) -> None:
        painter.setFont(self._heading)
        painter.setPen(active().color("text3"))
        room = rect.adjusted(SPACING_BLOCK, 0, -SPACING_BLOCK, -6)
        painter.drawText(room, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft, words)

    def _paint_row(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme = active()
        state: QStyle.StateFlag = option.state
        rect: QRect = option.rect
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        if chosen or hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("raised" if chosen else "hover"))
            painter.drawRoundedRect(QRectF(rect).adjusted(0, 1, 0, -1), RADIUS_CONTROL, RADIUS_CONTROL)
        if state & QStyle.StateFlag.State_HasFocus and state & QStyle.StateFlag.State_KeyboardFocusChange:
            painter.setPen(theme.color("accent"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(rect).adjusted(1, 2, -1, -2), RADIUS_CONTROL, RADIUS_CONTROL)
        busy = bool(index.data(BUSY))
        right = MORE_WIDTH if hovered and self._menus else SPACING_BLOCK + (SPACING_WIDE if busy else 0)
        room = rect.adjusted(SPACING_BLOCK, 0, -right, 0)
        painter.setFont(self._chosen if chosen else self._usual)
        painter.setPen(theme.color("text" if chosen else "text2"))
        words = painter.fontMetrics().elidedText(str(index.data()), Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, words)
        if hovered and self._menus:
            icon("ellipsis").paint(painter, more_rect(rect))
        elif busy:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent"))
            painter.drawEllipse(QRectF(rect.right() - SPACING_BLOCK - 6, rect.center().y() - 2.5, 6, 6))

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = QLineEdit(parent)
        editor.setMaxLength(LONGEST_TITLE)
        editor.setAccessibleName(self.tr("Title of the chat"))
        return editor

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        editor.setGeometry(option.rect.adjusted(2, 2, -2, -2))


def more_rect(row: QRect) -> QRect:
    """Where the button of a row's menu is."""
    return QRect(row.right() - MORE_WIDTH + 4, row.center().y() - BOX // 2 + 1, BOX, BOX)


class ChatList(QTableView):
    """Signals: chosen(chat_id) by click or Enter; menu_wanted(chat_id, QPoint on the screen).

    A table of one column, because a QListView asks the model about every row whenever some are added.
    """

    chosen = Signal(object)
    menu_wanted = Signal(object, QPoint)

    def __init__(self, model: ChatListModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._current: int | None = None
        self._place = 0
        quiet(self)
        self.setModel(model)
        self.setItemDelegate(ChatDelegate(self, menus=True))
        self._make_list()
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setAccessibleName(self.tr("Chats"))
        self.clicked.connect(self._on_clicked)
        model.modelAboutToBeReset.connect(self._remember_place)
        model.modelReset.connect(self._restore_place)

    def initViewItemOption(self, option: QStyleOptionViewItem) -> None:
        """The delegate paints the ground of the open chat; the table's own would show at its round corners."""
        super().initViewItemOption(option)
        option.palette.setColor(QPalette.ColorRole.Highlight, Qt.GlobalColor.transparent)

    def _make_list(self) -> None:
        self.horizontalHeader().hide()
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.horizontalHeader().setMinimumSectionSize(1)
        rows = self.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setMinimumSectionSize(1)
        rows.setDefaultSectionSize(max(ROW_HEIGHT, self.fontMetrics().height() + 16))
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setCornerButtonEnabled(False)
        self.setTabKeyNavigation(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)

    def show_current(self, chat_id: int | None) -> None:
        """Select the open chat."""
        self._current = chat_id
        place = self._model.place_of(chat_id)
        if place is None:
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
        elif self.currentIndex().row() != place or not self.selectionModel().hasSelection():
            self.setCurrentIndex(self._model.index(place))

    def rename(self, chat_id: int) -> None:
        """Let the user change a title in place."""
        place = self._model.place_of(chat_id)
        if place is not None:
            self.edit(self._model.index(place))

    @Slot()
    def _remember_place(self) -> None:
        self._place = self.verticalScrollBar().value()

    @Slot()
    def _restore_place(self) -> None:
        self.show_current(self._current)
        self.verticalScrollBar().setValue(self._place)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        chat_id = index.data(CHAT_ID)
        if chat_id is not None:
            self.chosen.emit(chat_id)

    def _on_activated(self, index: QModelIndex) -> None:
        if index.isValid() and index.data(CHAT_ID) is not None and self.state() != self.State.EditingState:
            self.chosen.emit(index.data(CHAT_ID))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        delegate = self.itemDelegate()
        if is_theme_change(event) and isinstance(delegate, ChatDelegate):
            delegate.look_anew()
            ground(self)
            self.verticalHeader().setDefaultSectionSize(max(ROW_HEIGHT, self.fontMetrics().height() + 16))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        chat_id = index.data(CHAT_ID) if index.isValid() else None
        on_button = chat_id is not None and event.position().x() >= self.visualRect(index).right() - MORE_WIDTH
        if on_button and event.button() == Qt.MouseButton.LeftButton:
            self.menu_wanted.emit(chat_id, event.globalPosition().toPoint())
            return
        super().mousePressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        index = (
            self.indexAt(event.pos()) if event.reason() != QContextMenuEvent.Reason.Keyboard else self.currentIndex()
        )
        if index.isValid() and index.data(CHAT_ID) is not None:
            rect = self.visualRect(index)
            place = event.globalPos()
            if event.reason() == QContextMenuEvent.Reason.Keyboard:
                place = self.viewport().mapToGlobal(rect.bottomLeft())
            self.menu_wanted.emit(index.data(CHAT_ID), place)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._on_activated(self.currentIndex())
        else:
            super().keyPressEvent(event)


def ground(view: QAbstractItemView) -> None:
    """The side colour, opaque: scrolling then moves pixels instead of painting every row again."""
    palette = view.viewport().palette()
    if palette.color(QPalette.ColorRole.Base) != active().color("side"):
        palette.setColor(QPalette.ColorRole.Base, active().color("side"))
        view.viewport().setPalette(palette)
    view.viewport().setBackgroundRole(QPalette.ColorRole.Base)
    view.viewport().setAutoFillBackground(True)


def quiet(view: QAbstractItemView) -> None:
    """Without frame, on the side colour, all rows of one height."""
    view.setFrameShape(QFrame.Shape.NoFrame)
    view.setMouseTracking(True)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    if isinstance(view, QListView):
        view.setUniformItemSizes(True)
    ground(view)
    view.viewport().setAttribute(Qt.WidgetAttribute.WA_Hover)


class RowList(QListWidget):
    """A short list that looks like the one of the chats."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        quiet(self)
        self.setItemDelegate(ChatDelegate(self))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event):
            ground(self)
