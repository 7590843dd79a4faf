"""The conversation: following the end, bubbles, empty state, banner."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app import theme
from app.ui.conversation_view import COLUMN_WIDTH, ConversationView
from app.widgets.user_bubble import MAX_WIDTH, OPEN_HEIGHT, UserBubble
from reply_builders import finished, long_reply


@pytest.fixture
def view(qapp: QApplication, qtbot: QtBot) -> ConversationView:
    theme.apply(qapp, "light")
    widget = ConversationView()
    qtbot.addWidget(widget)
    widget.resize(1000, 500)
    widget.show()
    return widget


def fill(view: ConversationView, qapp: QApplication, tokens: int = 600) -> None:
    view.add_user("Hello?")
    reply = view.begin_reply()
    qapp.processEvents()
    for event in long_reply(tokens):
        reply.append(event)


def wheel(widget: QWidget, delta: int) -> QWheelEvent:
    """Turn the wheel over the middle of a widget."""
    point = QPointF(widget.rect().center())
    event = QWheelEvent(
        point,
        widget.mapToGlobal(point),
        QPoint(),
        QPoint(0, delta),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)
    return event


def test_follows_the_end_while_text_arrives(view: ConversationView, qapp: QApplication) -> None:
    fill(view, qapp)
    bar = view._area.verticalScrollBar()
    assert bar.maximum() > 500
    assert bar.value() == bar.maximum()
    assert not view._jump.isVisible()


def test_scrolled_up_is_never_pulled_down(view: ConversationView, qapp: QApplication, qtbot: QtBot) -> None:
    fill(view, qapp)
    bar = view._area.verticalScrollBar()
    wheel(view._area.viewport(), 240)
    place = bar.value()
    assert place < bar.maximum()
    reply = view.turns()[-1]
    for event in long_reply(300):
        reply.append(event)  # type: ignore[union-attr]
    assert bar.value() == place
    assert view._jump.isVisible()
    qtbot.mouseClick(view._jump, Qt.MouseButton.LeftButton)
    assert bar.value() == bar.maximum() and not view._jump.isVisible()
    reply.append(long_reply(300)[-1])  # type: ignore[union-attr]
    qapp.processEvents()
    assert bar.value() == bar.maximum()


def test_a_reply_leaves_the_wheel_to_the_conversation(view: ConversationView, qapp: QApplication) -> None:
    fill(view, qapp)
    qapp.processEvents()
    text = view.turns()[-1].text  # type: ignore[union-attr]
    bar = view._area.verticalScrollBar()
    point = QPointF(view.rect().center())
    assert view.childAt(point.toPoint()) is text.viewport()
    QTest.wheelEvent(view.windowHandle(), point, QPoint(0, 240))
    assert bar.value() < bar.maximum()
    assert text.verticalScrollBar().maximum() == 0


def test_own_message_goes_to_the_end_again(view: ConversationView, qapp: QApplication) -> None:
    fill(view, qapp)
    view._area.verticalScrollBar().setValue(0)
    assert not view.is_following()
    view.add_user("And then?")
    qapp.processEvents()
    assert view._area.verticalScrollBar().value() == view._area.verticalScrollBar().maximum()


def test_column_is_centred_and_bounded(view: ConversationView, qapp: QApplication) -> None:
    fill(view, qapp, 50)
    reply = view.turns()[-1]
    assert reply.width() == COLUMN_WIDTH
    left = reply.mapTo(view, QPoint(0, 0)).x()
    assert abs(left - (view._area.viewport().width() - COLUMN_WIDTH) // 2) <= 1
    view.resize(500, 500)
    qapp.processEvents()
    assert reply.mapTo(view, QPoint(0, 0)).x() == 16
    assert reply.width() == view._area.viewport().width() - 32


def test_new_reply_makes_the_last_one_old(view: ConversationView, qapp: QApplication) -> None:
    fill(view, qapp, 50)
    first = view.turns()[-1]
    first.append(finished())  # type: ignore[union-attr]
    assert first.timeline.isVisible()  # type: ignore[union-attr]
    view.begin_reply()
    assert not first.timeline.isVisible()  # type: ignore[union-attr]


def test_empty_state_offers_prompts_and_returns(view: ConversationView, qapp: QApplication, qtbot: QtBot) -> None:
    buttons = view._empty.findChildren(QPushButton)
    assert len(buttons) == 3
    with qtbot.waitSignal(view.suggestion_chosen) as chosen:
        qtbot.mouseClick(buttons[1], Qt.MouseButton.LeftButton)
    assert chosen.args == [buttons[1].text()]
    fill(view, qapp, 50)
    assert not view._empty.isVisible()
    view.clear()
    assert view._empty.isVisible() and view.turns() == []


def test_last_reply_can_be_taken_away(view: ConversationView, qapp: QApplication) -> None:
    fill(view, qapp, 50)
    view.remove_last_reply()
    assert [type(turn) for turn in view.turns()] == [UserBubble]
    view.remove_last_reply()
    assert len(view.turns()) == 1, "a message of the user stays"


def test_banner_shows_sentence_and_action(view: ConversationView, qtbot: QtBot) -> None:
    view.show_banner("The file x.gguf is cut short.", "Choose another")
    assert view.banner.isVisible() and view.banner.sentence() == "The file x.gguf is cut short."
    assert "x.gguf" in view.banner.accessibleName()
    with qtbot.waitSignal(view.banner_action_clicked):
        qtbot.mouseClick(view.banner.action_button, Qt.MouseButton.LeftButton)
    view.show_banner("Only words.")
    assert not view.banner.action_button.isVisible()
    qtbot.mouseClick(view.banner.close_button, Qt.MouseButton.LeftButton)
    assert not view.banner.isVisible()


def test_bubble_is_as_wide_as_its_text_and_at_the_right(view: ConversationView, qapp: QApplication) -> None:
    short, long = view.add_user("Hi"), view.add_user("word " * 60)
    qapp.processEvents()
    assert short._body.width() < 80
    assert long._body.width() <= MAX_WIDTH
    assert short._body.geometry().right() == short.rect().right()
    assert short._body.extent()[0] == 1
    assert long._body.height() > short._body.height() * 3
    assert long._body.verticalScrollBar().maximum() == 0, "all of it is shown"


@pytest.mark.parametrize("text", ["word " * 200_000, "x" * 1_000_000, "line\n" * 40_000])
def test_a_megabyte_is_collapsed_and_opens_in_a_box(view: ConversationView, qtbot: QtBot, text: str) -> None:
    bubble = view.add_user(text)
    QApplication.processEvents()
    assert bubble.height() < 800
    assert len(bubble._body.text()) < 2_000
    qtbot.mouseClick(bubble._more, Qt.MouseButton.LeftButton)
    QApplication.processEvents()
    assert bubble.is_open() and bubble._body.height() == OPEN_HEIGHT
    assert bubble._body.text() == text == bubble.text()
    assert bubble._body.document().firstBlock().length() <= 1001, "no line is laid out as a whole"
    qtbot.mouseClick(bubble._more, Qt.MouseButton.LeftButton)
    assert not bubble.is_open()


def test_bubble_copies_its_text_exactly(view: ConversationView) -> None:
    text = "a\u00a0b\n\n  c " + "y" * 2500 + "\nend"
    bubble = view.add_user(text)
    bubble._toggle()
    bubble._body.selectAll()
    assert bubble._body.createMimeDataFromSelection().text() == text
