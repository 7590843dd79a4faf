"""A chat of 2,000 messages: its end is shown at once, the rest when it is scrolled to; and a list of many chats."""

from __future__ import annotations

import time

import pytest
from fake_engine import paris
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from window_bench import Bench, BenchMaker

from app.history.copying import AddWholeChat
from app.history.opening import open_history
from app.history.packing import plain_request, text_of
from app.history.rows import ASSISTANT, OVER, USER, ChatRow, Ids, StoredChat, StoredMessage, StoredReply
from app.ui.reply_view import ReplyView
from engine.files.paths import data_dir
from engine.settings import GenerateRequest

EVENTS = paris().events()
LONG = 2000


def long_chat(ids: Ids, count: int) -> AddWholeChat:
    """A chat whose questions are numbered, with replies of a few cycles."""
    numbers = [ids.next() for _ in range(count)]
    messages = tuple(
        StoredMessage(
            number,
            parent,
            ASSISTANT if place % 2 else USER,
            OVER,
            time.time(),
            text_of(EVENTS) if place % 2 else f"Question {place // 2} of many",
        )
        for place, (number, parent) in enumerate(zip(numbers, [None, *numbers], strict=False))
    )
    request = plain_request(GenerateRequest(prompt=" "))
    replies = {number: StoredReply(request, events=EVENTS) for number in numbers[1::2]}
    row = ChatRow(ids.next(), "The long one", False, time.time(), time.time())
    return AddWholeChat(StoredChat(row, {}, "", numbers[-1], messages), replies)


@pytest.fixture
def bench(benches: BenchMaker) -> Bench:
    opened = open_history(data_dir())
    opened.db.execute("BEGIN")
    long_chat(Ids(), LONG).apply(opened.db)
    opened.db.execute("COMMIT")
    opened.db.close()
    made = benches()
    made.qtbot.waitUntil(lambda: made.window.history.is_open, timeout=10_000)
    return made


def settled(bench: Bench) -> None:
    """Wait until nothing more is built above."""
    bench.qtbot.waitUntil(lambda: not bench.view._earlier.isActive(), timeout=5000)


def test_opening_builds_the_end_only_and_soon(bench: Bench) -> None:
    start = time.thread_time()
    bench.window.side_bar.chat_chosen.emit(bench.listed(0))
    QApplication.processEvents()
    took = time.thread_time() - start
    assert bench.said[-2:] == ["Question 999 of many", text_of(EVENTS)]
    settled(bench)
    assert 4 <= len(bench.view.turns()) <= 60, "a few screens"
    assert bench.view.is_following(), "at its end"
    assert took < 1.0, f"{took:.2f} s; the figure that counts is taken by benchmarks/history.py"


def test_scrolling_up_brings_the_earlier_ones_and_keeps_the_place(bench: Bench) -> None:
    bench.window.side_bar.chat_chosen.emit(bench.listed(0))
    settled(bench)
    bar = bench.view._area.verticalScrollBar()
    shown = len(bench.view.turns())
    bar.setValue(40)
    seen = bench.view.turns()[1]
    place = seen.mapTo(bench.view, seen.rect().topLeft()).y()
    bench.qtbot.waitUntil(lambda: len(bench.view.turns()) > shown, timeout=5000)
    assert abs(seen.mapTo(bench.view, seen.rect().topLeft()).y() - place) <= 2, "nothing that is read moves"
    said = bench.said
    numbers = [int(words.split()[1]) for words in said if words.startswith("Question")]
    assert numbers == list(range(1000 - len(numbers), 1000)), "in their order, without a gap"
    first = bench.view.turns()[1]
    assert isinstance(first, ReplyView) and first.counts.summary() and not first._details.isChecked(), "as an old one"


def test_a_search_hit_far_up_is_gone_to(bench: Bench) -> None:
    side = bench.window.side_bar
    side.search.setText("Question 970 of")
    bench.qtbot.waitUntil(lambda: len(side.found.hits()) == 1, timeout=5000)
    bench.qtbot.keyClick(side.search, Qt.Key.Key_Return)
    hit = next(turn for turn in bench.view.turns() if not isinstance(turn, ReplyView) and "970" in turn.text())
    top = hit.mapTo(bench.view, hit.rect().topLeft()).y()
    assert 0 <= top < bench.view.height() / 2 and not bench.view.is_following()


def test_the_next_question_carries_all_that_was_said(bench: Bench) -> None:
    bench.window.side_bar.chat_chosen.emit(bench.listed(0))
    bench.ready()
    bench.ask("And now?")
    messages = bench.engine.requests[0].messages
    assert len(messages) == LONG + 1 and messages[0].content == "Question 0 of many"
    view = bench.view.turns()[-3]
    assert isinstance(view, ReplyView)
    turn = bench.window.chat.chats.current.turn(view.property("replyId"))
    assert turn is not None and turn.reply is not None and turn.reply.request is not None
    assert len(turn.reply.request.messages) == LONG - 1, "its own prompt, without what came after"
