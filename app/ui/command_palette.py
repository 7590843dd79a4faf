"""The command palette (Ctrl+Shift+P): type a part of a command's name and press Enter."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt, Slot
from PySide6.QtGui import QKeyEvent, QKeySequence, QPainter
from PySide6.QtWidgets import QDialog, QLineEdit, QListWidgetItem, QStyleOptionViewItem, QVBoxLayout, QWidget

from app.theme import PX_CAPTION, SPACING_BLOCK, SPACING_PART, active, ui_font
from app.ui.chat_list import ChatDelegate, RowList
from app.ui.commands import Command, Commands

WIDTH, HEIGHT = 480, 360
TOP = 72
ROW_HEIGHT = 30
KEYS = Qt.ItemDataRole.UserRole + 17
MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


def match(words: str, wanted: str) -> int | None:
    """How well a name fits what was typed, smaller is better; None where it does not.

    A part of the name fits best, then letters that follow one another in it with others between.
    """
    name, typed = words.casefold(), wanted.casefold().strip()
    if not typed:
        return 0
    at = name.find(typed)
    if at >= 0:
        return at
    place = -1
    for letter in typed.replace(" ", ""):
        place = name.find(letter, place + 1)
        if place < 0:
            return None
    return 1000 + place


class CommandDelegate(ChatDelegate):
    """A row with the command's keys at its right."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(0, ROW_HEIGHT)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().paint(painter, option, index)
        rect: QRect = option.rect
        painter.save()
        painter.setFont(ui_font(PX_CAPTION))
        painter.setPen(active().color("text2"))
        room = rect.adjusted(0, 0, -SPACING_BLOCK, 0)
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, index.data(KEYS))
        painter.restore()


class CommandPalette(QDialog):
    """Over the window's top; closes when a command is chosen, with Esc, and with a click beside it."""

    def __init__(self, commands: Commands, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setWindowTitle(self.tr("Commands"))
        self._commands = commands
        self._possible: list[Command] = []
        self._listed: list[Command] = []
        self.field = QLineEdit()
        self.field.setPlaceholderText(self.tr("Type a command"))
        self.field.setAccessibleName(self.tr("Type a command"))
        self.field.textChanged.connect(self._filter)
        self.field.returnPressed.connect(self._run)
        self.field.installEventFilter(self)
        self.list = RowList()
        self.list.setItemDelegate(CommandDelegate(self.list))
        self.list.setAccessibleName(self.tr("Commands"))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.itemClicked.connect(self._run)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACING_PART, SPACING_PART, SPACING_PART, SPACING_PART)
        column.setSpacing(SPACING_PART)
        column.addWidget(self.field)
        column.addWidget(self.list, 1)

    def open_over(self, window: QWidget) -> None:
        """Show what is possible now, below the window's top edge."""
        self._possible = self._commands.possible()
        self.field.clear()
        self._filter("")
        self.resize(min(WIDTH, window.width() - 32), min(HEIGHT, window.height() - TOP - 16))
        self.move(
            window.mapToGlobal(window.rect().topLeft()).x() + (window.width() - self.width()) // 2,
            window.mapToGlobal(window.rect().topLeft()).y() + TOP,
        )
        self.show()
        self.field.setFocus()

    def names(self) -> list[str]:
        """What is listed."""
        return [command.action.text() for command in self._listed]

    @Slot(str)
    def _filter(self, wanted: str) -> None:
        fits = [(match(command.action.text(), wanted), command) for command in self._possible]
        fitting = sorted(((fit, command) for fit, command in fits if fit is not None), key=lambda pair: pair[0])
        self._listed = [command for _, command in fitting]
        self.list.clear()
        for command in self._listed:
            keys = command.action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            item = QListWidgetItem(command.action.text())
            item.setData(KEYS, keys)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{command.action.text()} {keys}".strip())
            self.list.addItem(item)
        self.list.setCurrentRow(0)

    @Slot()
    def _run(self) -> None:
        row = self.list.currentRow()
        if 0 <= row < len(self._listed):
            action = self._listed[row].action
            self.accept()
            action.trigger()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The arrows move in the list while the cursor is in the field."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent) and event.key() in MOVES:
            self.list.keyPressEvent(event)
            return True
        return super().eventFilter(watched, event)
