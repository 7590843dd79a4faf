"""Pointing at tokens: a moment of hovering, Alt and arrows, Enter; text and timeline select the same cycle."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.ui.reply_view import ReplyView
from app.widgets.token_pointer import HOVER_MS
from app.widgets.token_spans import Span, SpanKind
from engine.records import Opening
from reply_builders import cycle, finished

ALT = Qt.KeyboardModifier.AltModifier


@pytest.fixture
def reply(qapp: QApplication, qtbot: QtBot) -> ReplyView:
    theme.apply(qapp, "light")
    view = ReplyView()
    qtbot.addWidget(view)
    view.resize(700, 300)
    view.show()
    view.text.set_reduced_motion(True)
    view.append(cycle(0, [], "Plain"))
    view.append(cycle(1, [" one", " two"], " three"))
    view.append(cycle(2, [" four"], " five", [" wrong"]))
    return view


def move(reply: ReplyView, point: QPoint) -> None:
    kinds = QEvent.Type.MouseMove, QPointF(point), QPointF(reply.text.viewport().mapToGlobal(point))
    button = Qt.MouseButton.NoButton
    QApplication.sendEvent(reply.text.viewport(), QMouseEvent(*kinds, button, button, Qt.KeyboardModifier.NoModifier))


def over(reply: ReplyView, text: str) -> QPoint:
    spans = reply.text.spans
    index = next(i for i in range(len(spans)) if spans.texts[i] == text)
    return reply.text.token_rect(index).center()


def reached(reply: ReplyView, qtbot: QtBot, key: Qt.Key) -> str:
    found: list[Span] = []
    reply.pointer.reached.connect(found.append)
    qtbot.keyClick(reply.text, key, ALT)
    reply.pointer.reached.disconnect(found.append)
    assert len(found) == 1 and reply.text.current == found[0].index
    return found[0].text


def test_hovering_takes_a_quarter_of_a_second(reply: ReplyView, qtbot: QtBot) -> None:
    assert HOVER_MS == 250
    hovered: list[Span] = []
    reply.pointer.hovered.connect(hovered.append)
    move(reply, over(reply, " one"))
    assert reply.pointer._timer.isActive() and hovered == []
    move(reply, over(reply, " two"))
    qtbot.waitUntil(lambda: bool(hovered))
    assert [span.text for span in hovered] == [" two"], "only where the mouse came to rest"


def test_leaving_a_token_is_told_once(reply: ReplyView, qtbot: QtBot) -> None:
    left: list[None] = []
    reply.pointer.left.connect(lambda: left.append(None))
    move(reply, over(reply, " one"))
    move(reply, QPoint(690, 4))
    move(reply, QPoint(691, 4))
    assert len(left) == 1 and not reply.pointer._timer.isActive()
    move(reply, over(reply, " one"))
    QApplication.sendEvent(reply.text.viewport(), QEvent(QEvent.Type.Leave))
    assert len(left) == 2


def test_the_tick_of_a_rejected_guess_can_be_pointed_at(reply: ReplyView) -> None:
    span = reply.text.token_at(over(reply, " wrong"))
    assert span is not None and span.kind is SpanKind.GHOST and span.text == " wrong"


def test_alt_and_arrows_walk_over_every_token_and_rejected_guess(reply: ReplyView, qtbot: QtBot) -> None:
    walked = [reached(reply, qtbot, Qt.Key.Key_Left) for _ in range(7)]
    assert walked == [" five", " wrong", " four", " three", " two", " one", "Plain"]
    assert reached(reply, qtbot, Qt.Key.Key_Left) == "Plain", "the first stays"
    assert reached(reply, qtbot, Qt.Key.Key_Right) == " one"
    assert "accepted: cycle 2" in reply.text.accessibleDescription()


def test_alt_up_and_down_walk_over_cycles_and_select_them_in_the_timeline(reply: ReplyView, qtbot: QtBot) -> None:
    assert reached(reply, qtbot, Qt.Key.Key_Up) == " four"
    assert reached(reply, qtbot, Qt.Key.Key_Up) == " one"
    assert reply.timeline._selected == reply.text.selected_cycle == 1
    assert reached(reply, qtbot, Qt.Key.Key_Up) == "Plain"
    assert reached(reply, qtbot, Qt.Key.Key_Up) == "Plain"
    assert reached(reply, qtbot, Qt.Key.Key_Down) == " one"
    assert reached(reply, qtbot, Qt.Key.Key_Down) == " four"
    assert reached(reply, qtbot, Qt.Key.Key_Down) == " four"


def test_a_cycle_selected_in_the_timeline_is_where_the_keyboard_begins(reply: ReplyView, qtbot: QtBot) -> None:
    reply.refresh()
    bar = reply.timeline.bars()[1]
    qtbot.mouseClick(reply.timeline, Qt.MouseButton.LeftButton, pos=QPoint(int(bar.left) + 2, 14))
    assert reply.text.selected_cycle == 1
    assert reached(reply, qtbot, Qt.Key.Key_Right) == " one"


def test_enter_opens_only_where_a_token_was_reached(reply: ReplyView, qtbot: QtBot) -> None:
    entered: list[Span] = []
    reply.pointer.entered.connect(entered.append)
    qtbot.keyClick(reply.text, Qt.Key.Key_Return)
    assert entered == []
    reached(reply, qtbot, Qt.Key.Key_Left)
    qtbot.keyClick(reply.text, Qt.Key.Key_Return)
    assert [span.text for span in entered] == [" five"]


def test_given_tokens_can_be_reached_and_the_tail_cannot(qapp: QApplication, qtbot: QtBot) -> None:
    view = ReplyView()
    qtbot.addWidget(view)
    view.show()
    view.append(Opening((5, 6), ("Well", " then")))
    view.append(cycle(0, [], " so"))
    view.append(finished(tail=" held"))
    assert view.source_text() == "Well then so held"
    walked = [reached(view, qtbot, Qt.Key.Key_Left) for _ in range(3)]
    assert walked == [" so", " then", "Well"]
    assert "given" in view.text.accessibleDescription()
    assert reached(view, qtbot, Qt.Key.Key_Down) == " so"


def test_the_ring_is_painted_around_the_token_and_goes_with_a_restart(reply: ReplyView, qtbot: QtBot) -> None:
    accent = theme.LIGHT.accent.lower()

    def ringed() -> bool:
        reply.text.select_cycle(None)
        rect = reply.text.token_rect(1).adjusted(-3, -3, 3, 4).translated(reply.text.viewport().pos())
        image = reply.text.grab().toImage()
        points = [(x, y) for x in range(rect.left(), rect.right()) for y in range(max(rect.top(), 0), rect.bottom())]
        return sum(image.pixelColor(x, y).name() == accent for x, y in points) > 20

    assert not ringed()
    reply.text.set_current(1)
    assert ringed()
    reply.restart()
    assert reply.text.current is None


def test_a_token_at_the_end_of_a_line_is_found_on_the_line_it_begins(reply: ReplyView) -> None:
    reply.append(cycle(3, [" word"] * 60, " end"))
    text = reply.text
    rects = [text.token_rect(i) for i in range(len(text.spans))]
    assert all(rect.left() >= 0 and rect.right() <= text.viewport().width() + 2 for rect in rects)
    assert len({rect.top() for rect in rects}) > 2
