"""The chats of the history as a list under headings, fetched a page at a time."""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from app.history.rows import ChatRow

Index = QModelIndex | QPersistentModelIndex
Fetch = Callable[[ChatRow | None, int], list[ChatRow]]
CHAT_ID = int(Qt.ItemDataRole.UserRole)
BUSY = CHAT_ID + 1
HEADING = CHAT_ID + 2
PINNED = CHAT_ID + 3
PAGE = 200
PINNED_GROUP, TODAY, YESTERDAY, EARLIER = range(4)


class ChatListModel(QAbstractListModel):
    """Pinned chats, then the others by the day of their last question. renamed(chat_id, title) when one was edited.

    `prefix`: what is put before the title of a chat that is a replay.
    """

    renamed = Signal(object, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[ChatRow] = []  # as `ChatRow.order`, falling
        self._entries: list[ChatRow | int] = []  # rows, with the number of a group before its first
        self._ids: set[int] = set()
        self._replays: set[int] = set()
        self._more = False
        self._last: ChatRow | None = None  # the end of what was fetched
        self._fetch: Fetch = lambda _after, _most: []
        self._busy: int | None = None

    # Content

    def load(self, fetch: Fetch) -> None:
        """Begin anew with the first page of what `fetch` gives; rows that were put in and are not in it stay."""
        kept = [row for row in self._rows if row.id in self._replays]
        self.beginResetModel()
        self._fetch = fetch
        self._rows, self._ids = [], set()
        for row in kept:
            self._insert(row)
        self._take_page(None)
        self._regroup()
        self.endResetModel()

    def _take_page(self, after: ChatRow | None) -> None:
        found = self._fetch(after, PAGE)
        self._more = len(found) == PAGE
        self._last = found[-1] if found else after
        for row in found:
            self._insert(row)

    def put(self, row: ChatRow, *, replay: bool = False) -> None:
        """Show a chat that is new, or that is otherwise than before."""
        old = next((other for other in self._rows if other.id == row.id), None)
        if replay:
            self._replays.add(row.id)
        else:
            self._replays.discard(row.id)
        if old == row:
            return
        if old is not None and old.order == row.order:
            place = self._entries.index(old)
            self._rows[self._rows.index(old)] = self._entries[place] = row
            index = self.index(place)
            self.dataChanged.emit(index, index)
            return
        self.beginResetModel()
        if old is not None:
            self._drop(old)
        if not (self._more and self._last is not None and row.order < self._last.order):  # else its page is yet to come
            self._insert(row)
        self._regroup()
        self.endResetModel()

    def take(self, chat_id: int) -> ChatRow | None:
        """A chat is not to be shown any more; its row, if it was."""
        old = self.row(chat_id)
        if old is not None:
            self.beginResetModel()
            self._drop(old)
            self._regroup()
            self.endResetModel()
        return old

    def set_busy(self, chat_id: int | None) -> None:
        """The chat in which a reply is being written."""
        for changed in {self._busy, chat_id} if chat_id != self._busy else ():
            self._busy = chat_id
            place = self.place_of(changed)
            if place is not None:
                self.dataChanged.emit(self.index(place), self.index(place))

    def _insert(self, row: ChatRow) -> None:
        if row.id not in self._ids:
            self._ids.add(row.id)
            insort(self._rows, row, key=_falling)

    def _drop(self, row: ChatRow) -> None:
        self._rows.remove(row)
        self._ids.discard(row.id)

    def _regroup(self) -> None:
        self._entries = self._grouped(self._rows, None)

    def _grouped(self, rows: list[ChatRow], before: ChatRow | None) -> list[ChatRow | int]:
        """Rows with the headings among them, where they follow the row `before`."""
        entries: list[ChatRow | int] = []
        today = date.today()
        limits = _midnight(today), _midnight(today - timedelta(days=1))
        group = -1 if before is None else _group(before, limits)
        for row in rows:
            of_row = _group(row, limits)
            if of_row != group:
                group = of_row
                entries.append(group)
            entries.append(row)
        return entries

    # Reading

    def row(self, chat_id: int) -> ChatRow | None:
        """A chat by its number, where it has been fetched."""
        return next((row for row in self._rows if row.id == chat_id), None) if chat_id in self._ids else None

    def place_of(self, chat_id: int | None) -> int | None:
        """The place in the list of a chat."""
        if chat_id not in self._ids:
            return None
        return next(
            (place for place, entry in enumerate(self._entries) if isinstance(entry, ChatRow) and entry.id == chat_id),
            None,
        )

    def titles(self) -> list[str]:
        """The titles of the chats that have been fetched, in order."""
        return [self._title(row) for row in self._rows]

    def ids(self) -> list[int]:
        """Their numbers."""
        return [row.id for row in self._rows]

    # Qt's side

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 (Qt's own signature)
        return 0 if parent.isValid() else len(self._entries)

    def data(self, index: Index, role: int = int(Qt.ItemDataRole.DisplayRole)) -> Any:
        if not index.isValid():
            return None
        entry = self._entries[index.row()]
        if isinstance(entry, int):
            if role in (Qt.ItemDataRole.DisplayRole, HEADING):
                return self._heading(entry)
            return None
        if role == Qt.ItemDataRole.DisplayRole or role == Qt.ItemDataRole.ToolTipRole:
            return self._title(entry)
        if role == Qt.ItemDataRole.EditRole:
            return entry.title
        if role == CHAT_ID:
            return entry.id
        if role == BUSY:
            return entry.id == self._busy
        if role == PINNED:
            return entry.pinned
        if role == Qt.ItemDataRole.AccessibleDescriptionRole and entry.id == self._busy:
            return self.tr("A reply is being written")
        return None

    def setData(self, index: Index, value: Any, role: int = int(Qt.ItemDataRole.EditRole)) -> bool:
        entry = self._entries[index.row()]
        if role != Qt.ItemDataRole.EditRole or isinstance(entry, int) or not str(value).strip():
            return False
        self.renamed.emit(entry.id, str(value))
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid() or isinstance(self._entries[index.row()], int):
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable

    def canFetchMore(self, parent: Index) -> bool:
        return self._more and not parent.isValid()

    def fetchMore(self, parent: Index) -> None:
        before = len(self._rows)
        self._take_page(self._last)
        new = self._grouped(self._rows[before:], self._rows[before - 1] if before else None)
        if new:
            first = len(self._entries)
            self.beginInsertRows(QModelIndex(), first, first + len(new) - 1)
            self._entries += new
            self.endInsertRows()

    def _title(self, row: ChatRow) -> str:
        title = row.title or self.tr("Untitled")
        return self.tr("Replay: {title}").replace("{title}", title) if row.id in self._replays else title

    def _heading(self, group: int) -> str:
        return (self.tr("Pinned"), self.tr("Today"), self.tr("Yesterday"), self.tr("Earlier"))[group]


def _falling(row: ChatRow) -> tuple[bool, float, int]:
    return not row.pinned, -row.updated, -row.id


def _midnight(day: date) -> float:
    return time.mktime(datetime(day.year, day.month, day.day).timetuple())


def _group(row: ChatRow, limits: tuple[float, float]) -> int:
    if row.pinned:
        return PINNED_GROUP
    return TODAY if row.updated >= limits[0] else YESTERDAY if row.updated >= limits[1] else EARLIER
