"""The list of chats: headings, pages, and rows that come, change and go."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester

from app.chat_list_model import BUSY, CHAT_ID, HEADING, PAGE, ChatListModel, Fetch
from app.history.rows import ChatRow

DAY = 86400.0


def row(number: int, age: float, title: str = "", *, pinned: bool = False) -> ChatRow:
    at = time.time() - age
    return ChatRow(number, title or f"Chat {number}", pinned, at, at)


def store(*rows: ChatRow) -> Fetch:
    """A history of these chats."""
    ordered = sorted(rows, key=lambda found: found.order, reverse=True)
    asked: list[ChatRow | None] = []

    def fetch(after: ChatRow | None, most: int) -> list[ChatRow]:
        asked.append(after)
        return [found for found in ordered if after is None or found.order < after.order][:most]

    return fetch


@pytest.fixture
def model(qapp: object) -> ChatListModel:
    made = ChatListModel()
    tester = QAbstractItemModelTester(made, QAbstractItemModelTester.FailureReportingMode.Fatal)
    made.setProperty("tester", tester)
    return made


def shown(model: ChatListModel) -> list[str]:
    return [str(model.index(place).data()) for place in range(model.rowCount())]


def everything(model: ChatListModel) -> None:
    while model.canFetchMore(QModelIndex()):
        model.fetchMore(QModelIndex())


def noon(days: float) -> float:
    """An age that is so many days back, at noon of that day."""
    now = time.localtime()
    return (now.tm_hour - 12) * 3600 + now.tm_min * 60 + days * DAY


def test_headings_go_by_days(model: ChatListModel) -> None:
    model.load(store(row(1, 0), row(2, noon(1)), row(3, noon(9)), row(4, noon(400), pinned=True), row(5, noon(2))))
    assert shown(model) == [
        *("Pinned", "Chat 4", "Today", "Chat 1", "Yesterday", "Chat 2"),
        *("Earlier", "Chat 5", "Chat 3"),
    ]
    heading = model.index(0)
    assert heading.flags() == Qt.ItemFlag.NoItemFlags and heading.data(HEADING) == "Pinned"
    assert heading.data(CHAT_ID) is None and model.index(1).data(CHAT_ID) == 4


def test_pages_come_as_they_are_asked_for(model: ChatListModel) -> None:
    rows = [row(number, number * 600.0) for number in range(1, 2 * PAGE + 51)]
    model.load(store(*rows))
    assert len(model.titles()) == PAGE and model.canFetchMore(QModelIndex())
    everything(model)
    assert model.ids() == [found.id for found in rows] and len(set(shown(model))) == model.rowCount()


def test_a_question_brings_its_chat_to_the_top(model: ChatListModel) -> None:
    model.load(store(row(1, 10), row(2, noon(1)), row(3, noon(2))))
    model.put(row(3, 0, "Chat 3 again"))
    assert shown(model) == ["Today", "Chat 3 again", "Chat 1", "Yesterday", "Chat 2"]
    model.put(row(9, 0))
    assert model.titles()[0] == "Chat 9"


def test_another_title_moves_nothing(model: ChatListModel) -> None:
    first = row(1, 10)
    model.load(store(first, row(2, 20)))
    changed: list[int] = []
    model.dataChanged.connect(lambda top, bottom: changed.append(top.row()))
    model.modelReset.connect(lambda: changed.append(-1))
    model.put(ChatRow(1, "Named", False, first.created, first.updated))
    assert changed == [1] and model.titles() == ["Named", "Chat 2"]
    model.put(ChatRow(1, "Named", False, first.created, first.updated))
    assert changed == [1]


def test_what_belongs_to_a_page_that_was_not_fetched_waits_for_it(model: ChatListModel) -> None:
    rows = [row(number, number * 600.0) for number in range(1, PAGE + 11)]
    model.load(store(*rows))
    model.put(rows[-3])
    assert len(model.titles()) == PAGE, "else those between would be missing"
    everything(model)
    assert model.ids() == [found.id for found in rows]


def test_a_replay_is_called_one_and_stays_when_the_list_is_read_again(model: ChatListModel) -> None:
    model.put(row(7, 0, "Why?"), replay=True)
    model.load(store(row(1, 10)))
    assert model.titles() == ["Replay: Why?", "Chat 1"]
    model.put(row(7, 0, "Why?"))
    assert model.titles() == ["Why?", "Chat 1"], "kept now"


def test_chats_go(model: ChatListModel) -> None:
    model.load(store(row(1, 10), row(2, noon(1))))
    taken = model.take(2)
    assert taken is not None and taken.id == 2 and shown(model) == ["Today", "Chat 1"]
    assert model.take(2) is None and model.place_of(2) is None and model.row(2) is None


def test_titles_are_edited_but_not_to_nothing(model: ChatListModel) -> None:
    model.load(store(row(1, 10)))
    renamed: list[tuple[int, str]] = []
    model.renamed.connect(lambda number, title: renamed.append((number, title)))
    assert model.setData(model.index(1), "New") and not model.setData(model.index(1), "  ")
    assert not model.setData(model.index(0), "Heading") and renamed == [(1, "New")]


def test_the_busy_chat_is_said_in_words(model: ChatListModel) -> None:
    model.load(store(row(1, 10), row(2, 20)))
    model.set_busy(2)
    index = model.index(2)
    assert index.data(BUSY) and index.data(Qt.ItemDataRole.AccessibleDescriptionRole) == "A reply is being written"
    model.set_busy(None)
    assert not index.data(BUSY) and not index.data(Qt.ItemDataRole.AccessibleDescriptionRole)
