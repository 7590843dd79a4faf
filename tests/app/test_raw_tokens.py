"""The raw view of a reply: every token by itself, marks and pointers unharmed, and back again to the same text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.markdown.lines import LineKind
from app.ui.conversation_view import ConversationView
from app.ui.reply_view import ReplyView
from app.widgets.token_segments import token_bounds
from app.widgets.token_spans import SpanKind
from engine.records import Event, Opening
from reply_builders import cycle, finished, long_reply

EVENTS: Sequence[Event] = (
    Opening((5,), ("Given",)),
    cycle(0, [" one", "\n", "\n"], "```"),
    cycle(1, ["py", "\n", "x"], " = 1", [" wrong"]),
    cycle(2, ["\n", "```", "\n"], "- item"),
    cycle(3, ["\n", "", "", ""], "😀"),
    cycle(4, ["你"], "好", ["们"]),
    finished(tail=" held back"),
)


@pytest.fixture
def reply(qapp: QApplication, qtbot: QtBot) -> ReplyView:
    theme.apply(qapp, "light")
    view = ReplyView()
    qtbot.addWidget(view)
    view.resize(700, 400)
    view.show()
    view.append_many(list(EVENTS))
    return view


def kinds(view: ReplyView) -> list[int]:
    document = view.text.document()
    return [document.findBlockByNumber(i).userState() for i in range(document.blockCount())]


def bounds(view: ReplyView) -> int:
    return len(list(token_bounds(view.text.document(), view.text.spans, 0, view.text.height())))


def test_raw_tokens_take_no_form_and_keep_the_source(reply: ReplyView) -> None:
    reply.text.set_reduced_motion(True)
    source, text = reply.source_text(), reply.text.toPlainText()
    assert LineKind.CODE in kinds(reply)
    reply._raw.trigger()
    assert set(kinds(reply)) == {LineKind.TEXT}
    assert reply.source_text() == source
    reply.text.selectAll()
    assert reply.text.createMimeDataFromSelection().text() == source
    reply._raw.trigger()
    assert LineKind.CODE in kinds(reply) and reply.text.toPlainText() == text
    assert reply.source_text() == source


def test_every_token_has_a_bound_and_halves_of_a_character_too(reply: ReplyView) -> None:
    spans = reply.text.spans
    tokens = sum(kind is not SpanKind.TAIL for kind in spans.kinds)
    reply._raw.trigger()
    assert bounds(reply) == tokens
    boxes = list(token_bounds(reply.text.document(), reply.text.spans, 0, reply.text.height()))
    smile = next(i for i in range(len(reply.text.spans)) if reply.text.spans.texts[i] == "😀")
    line = reply.text.token_rect(smile)
    halves = [
        box for box in boxes if abs(box.left() - line.left()) <= 6 and line.top() <= box.center().y() <= line.bottom()
    ]
    assert len({round(box.left()) for box in halves}) == 4, "three halves and the character, side by side"


def test_marks_and_pointing_are_the_same_in_both_views(reply: ReplyView) -> None:
    def seen() -> list[tuple[SpanKind, int, str]]:
        spans = reply.text.spans
        return [(spans.kinds[i], spans.cycles[i], spans.texts[i]) for i in range(len(spans))]

    before = seen()
    reply.text.set_current(3)
    reply.text.select_cycle(1)
    reply._raw.trigger()
    assert seen() == before
    assert reply.text.current == 3 and reply.text.selected_cycle == 1
    for index in range(len(reply.text.spans)):
        if reply.text.spans.texts[index].strip():
            found = reply.text.token_at(reply.text.token_rect(index).center())
            assert found is not None and found.index == index


def test_line_ends_and_bounds_are_painted_only_in_the_raw_view(reply: ReplyView) -> None:
    def ink() -> int:
        reply.text.set_tinted(False)
        image = reply.text.grab().toImage()
        end = reply.text.token_rect(2).translated(reply.text.viewport().pos())  # the end of the first line
        points = [(x, y) for x in range(end.left(), end.left() + 20) for y in range(end.top(), end.bottom())]
        return sum(image.pixelColor(x, y).lightness() < 170 for x, y in points)

    assert ink() == 0
    reply._raw.trigger()
    assert ink() > 10


def test_what_comes_while_raw_is_raw(reply: ReplyView) -> None:
    reply.restart()
    reply._raw.trigger()
    reply.text.set_reduced_motion(False)
    reply.append(cycle(0, ["```", "\n", "a"], " b", [" wrong"]))
    assert set(kinds(reply)) == {LineKind.TEXT}
    assert " wrong" in reply.text.toPlainText(), "ghosts fade as they do elsewhere"
    reply.restart()
    reply.append(cycle(0, ["```", "\n", "a"], " b"))
    assert set(kinds(reply)) == {LineKind.TEXT}, "a replay from the beginning stays raw"
    reply._raw.trigger()
    assert LineKind.FENCE_OPEN in kinds(reply)


def test_kept_ghosts_stay_in_both_views(reply: ReplyView) -> None:
    reply.set_keep_ghosts(True)
    assert "wrong" in reply.text.toPlainText()
    reply._raw.trigger()
    assert "wrong" in reply.text.toPlainText() and "们" in reply.text.toPlainText()
    reply.set_keep_ghosts(False)
    assert "wrong" not in reply.text.toPlainText()
    assert not reply.text._timer.isActive()


def test_tints_lie_on_code_and_list_items_too(reply: ReplyView) -> None:
    wash = theme.LIGHT.accepted_wash.lower()
    reply.text.set_tinted(True)
    image = reply.text.grab().toImage()
    for text in ("x", "你"):
        index = next(i for i in range(len(reply.text.spans)) if reply.text.spans.texts[i] == text)
        assert reply.text.spans.kinds[index] is SpanKind.ACCEPTED
        rect = reply.text.token_rect(index).translated(reply.text.viewport().pos())
        colours = {image.pixelColor(x, rect.bottom()).name() for x in range(rect.left() + 1, rect.right())}
        assert wash in colours, text
    item = next(i for i in range(len(reply.text.spans)) if reply.text.spans.texts[i] == "- item")
    rect = reply.text.token_rect(item).translated(reply.text.viewport().pos())
    under = [
        image.pixelColor(x, y)
        for x in range(rect.left(), rect.right())
        for y in range(rect.bottom(), rect.bottom() + 4)
    ]
    assert any(QColor(colour).blue() > QColor(colour).red() + 60 for colour in under), "the bonus token's dots"


def test_a_very_long_paragraph_goes_raw_and_back(qapp: QApplication, qtbot: QtBot) -> None:
    view = ReplyView()
    qtbot.addWidget(view)
    view.resize(700, 400)
    view.show()
    for event in long_reply(2000, paragraph=10_000):
        view.append(event)
    source = view.source_text()
    view._raw.trigger()
    assert view.source_text() == source and view.text.spans.source() == source
    view.append(cycle(999, [" more"], " end"))
    view._raw.trigger()
    view.append(finished())
    assert view.source_text() == source + " more end"


@pytest.fixture
def long_view(qapp: QApplication, qtbot: QtBot) -> Iterator[ReplyView]:
    """A reply of 20,000 tokens in a conversation."""
    conversation = ConversationView()
    qtbot.addWidget(conversation)
    conversation.resize(800, 700)
    conversation.show()
    view = conversation.begin_reply()
    view.append_many(list(long_reply(20_000)))
    view.append(finished(tail=" the end"))
    yield view
    conversation.close()  # it has lived until here


def test_a_reply_of_20000_tokens_goes_raw_in_slices_that_leave_the_window_alive(long_view: ReplyView) -> None:
    view = long_view
    source, height = view.source_text(), view.text.height()
    gaps = [thread_seconds(view._raw.trigger)]
    assert view.text.relaying and len(view.text.spans) < 10_000
    assert view.source_text() == source and view.text.height() >= height, "nothing jumps or is lost meanwhile"
    while view.text.relaying:
        gaps.append(thread_seconds(QApplication.processEvents))
    assert view.source_text() == source == view.text.spans.source()
    assert len(gaps) > 10 and max(gaps) < 0.1, "seconds of this thread alone, with room for a slow machine"
    assert view.text.height() != height, "it is as high as its text now"


def thread_seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def test_what_happens_while_slices_are_laid_is_there_at_the_end(qapp: QApplication, qtbot: QtBot) -> None:
    view = ReplyView()
    qtbot.addWidget(view)
    view.resize(700, 400)
    view.show()
    view.append_many(list(long_reply(8_000)))
    view.text.set_current(8_000)
    view._raw.trigger()
    assert view.text.relaying and len(view.text.spans) < 8_000
    view.text.viewport().repaint()  # the ring's token is not there yet
    view.append(cycle(999, [" more"], " end", [" no"]))
    view.append(finished(tail=" tail"))
    assert view.source_text().endswith(" more end tail")
    qtbot.waitUntil(lambda: not view.text.relaying, timeout=10_000)
    assert view.text.spans.source().endswith(" more end tail")
    assert not view.text._live and len(view.text.cycles) == 1601


def test_a_reply_that_is_emptied_or_turned_back_in_the_middle_is_whole(long_view: ReplyView, qtbot: QtBot) -> None:
    view = long_view
    source = view.source_text()
    view._raw.trigger()
    assert view.text.relaying
    view._raw.trigger()
    qtbot.waitUntil(lambda: not view.text.relaying, timeout=10_000)
    assert not view.text._reply.raw and view.text.spans.source() == source
    view._raw.trigger()
    view.restart()
    assert not view.text.relaying and view.source_text() == ""
