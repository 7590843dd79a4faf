"""What a search found: a title and, below it, the words around the match."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QPainter
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.history.rows import Hit
from app.theme import PX_CAPTION, PX_CONTROL, RADIUS_CONTROL, SPACING_BLOCK, active, is_theme_change, ui_font
from app.ui.chat_list import ground, quiet

Index = QModelIndex | QPersistentModelIndex
HIT = int(Qt.ItemDataRole.UserRole)


class HitModel(QAbstractListModel):
    """The hits of one search."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._hits: list[Hit] = []

    def show(self, hits: list[Hit]) -> None:
        """Other hits."""
        self.beginResetModel()
        self._hits = list(hits)
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 (Qt's own signature)
        return 0 if parent.isValid() else len(self._hits)

    def data(self, index: Index, role: int = int(Qt.ItemDataRole.DisplayRole)) -> Any:
        hit = self._hits[index.row()]
        if role == HIT:
            return hit
        if role == Qt.ItemDataRole.DisplayRole:
            return hit.chat.title or self.tr("Untitled")
        if role == Qt.ItemDataRole.AccessibleDescriptionRole:
            return hit.before + hit.match + hit.after
        return None


class HitDelegate(QStyledItemDelegate):
    """Two lines; what was searched for stands out in the second."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(0, 18 + QFontMetrics(ui_font(PX_CONTROL)).height() + QFontMetrics(ui_font(PX_CAPTION)).height())

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme, hit = active(), index.data(HIT)
        state: QStyle.StateFlag = option.state
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if chosen or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("raised" if chosen else "hover"))
            painter.drawRoundedRect(QRectF(option.rect).adjusted(0, 1, 0, -1), RADIUS_CONTROL, RADIUS_CONTROL)
        room: QRect = option.rect.adjusted(SPACING_BLOCK, 7, -SPACING_BLOCK, -7)
        painter.setFont(ui_font(PX_CONTROL, QFont.Weight.Medium))
        painter.setPen(theme.color("text"))
        metrics = painter.fontMetrics()
        title = metrics.elidedText(str(index.data()), Qt.TextElideMode.ElideRight, room.width())
        whole = room if hit.message is not None else option.rect.adjusted(SPACING_BLOCK, 0, -SPACING_BLOCK, 0)
        place = Qt.AlignmentFlag.AlignTop if hit.message is not None else Qt.AlignmentFlag.AlignVCenter
        painter.drawText(whole, place | Qt.AlignmentFlag.AlignLeft, title)
        if hit.message is not None:
            self._paint_around(painter, room, hit)
        painter.restore()

    def _paint_around(self, painter: QPainter, room: QRect, hit: Hit) -> None:
        theme, x = active(), room.left()
        parts = ((hit.before, "text3", False), (hit.match, "text", True), (hit.after, "text3", False))
        for words, role, strong in parts:
            painter.setFont(ui_font(PX_CAPTION, QFont.Weight.DemiBold if strong else QFont.Weight.Normal))
            painter.setPen(theme.color(role))
            metrics = painter.fontMetrics()
            left = room.right() - x
            if left <= 0:
                return
            shown = metrics.elidedText(words, Qt.TextElideMode.ElideRight, left)
            line = QRect(x, room.bottom() - metrics.height() + 1, left, metrics.height())
            painter.drawText(line, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
            x += metrics.horizontalAdvance(shown)


class SearchList(QListView):
    """chosen(Hit) by click or Enter; left() when the keyboard goes up from the first."""

    chosen = Signal(object)
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        quiet(self)
        self._model = HitModel(self)
        self.setModel(self._model)
        self.setItemDelegate(HitDelegate(self))
        self.setAccessibleName(self.tr("Chats found"))
        self.clicked.connect(self._on_clicked)

    def show_hits(self, hits: list[Hit]) -> None:
        """Other hits; the first is selected."""
        self._model.show(hits)
        self.scrollToTop()
        if hits:
            self.setCurrentIndex(self._model.index(0))

    def hits(self) -> list[Hit]:
        """What is shown."""
        return [self._model.index(row).data(HIT) for row in range(self._model.rowCount())]

    @Slot()
    def choose_current(self) -> None:
        """As if the selected hit was clicked."""
        self._on_clicked(self.currentIndex())

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        if index.isValid():
            self.chosen.emit(index.data(HIT))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event):
            ground(self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.choose_current()
        elif event.key() == Qt.Key.Key_Up and self.currentIndex().row() <= 0:
            self.left.emit()
        else:
            super().keyPressEvent(event)
