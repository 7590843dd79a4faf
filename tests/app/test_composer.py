"""The composer: keys, input methods, states, growing, pasting, chips and gauge."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QInputMethodEvent, QTextCursor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.ui.composer import Composer
from app.widgets.context_gauge import short_count


@pytest.fixture
def composer(qapp: QApplication, qtbot: QtBot) -> Composer:
    theme.apply(qapp, "light")
    widget = Composer()
    qtbot.addWidget(widget)
    widget.resize(720, 120)
    widget.show()
    return widget


@pytest.fixture
def sent(composer: Composer) -> list[str]:
    messages: list[str] = []
    composer.send_requested.connect(messages.append)
    return messages


def test_enter_sends_and_keeps_the_text(composer: Composer, sent: list[str], qtbot: QtBot) -> None:
    qtbot.keyClicks(composer.input, "hello")
    qtbot.keyClick(composer.input, Qt.Key.Key_Return)
    assert sent == ["hello"]
    assert composer.text() == "hello"
    composer.clear_text()
    assert composer.text() == ""


def test_shift_enter_makes_a_line(composer: Composer, sent: list[str], qtbot: QtBot) -> None:
    qtbot.keyClicks(composer.input, "a")
    qtbot.keyClick(composer.input, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(composer.input, "b")
    assert sent == [] and composer.text() == "a\nb"


def test_ctrl_enter_mode(composer: Composer, sent: list[str], qtbot: QtBot) -> None:
    composer.set_send_with_ctrl(True)
    qtbot.keyClicks(composer.input, "a")
    qtbot.keyClick(composer.input, Qt.Key.Key_Enter)
    assert sent == [] and composer.text() == "a\n"
    qtbot.keyClick(composer.input, Qt.Key.Key_Enter, Qt.KeyboardModifier.ControlModifier)
    assert sent == ["a\n"]


def test_enter_confirms_the_input_method_and_does_not_send(composer: Composer, sent: list[str], qtbot: QtBot) -> None:
    composer.set_text("你")
    QApplication.sendEvent(composer.input, QInputMethodEvent("hao", []))
    qtbot.keyClick(composer.input, Qt.Key.Key_Return)
    assert sent == [] and composer.text() == "你"
    confirmed = QInputMethodEvent("", [])
    confirmed.setCommitString("好")
    QApplication.sendEvent(composer.input, confirmed)
    qtbot.keyClick(composer.input, Qt.Key.Key_Return)
    assert len(sent) == 1 and sorted(sent[0]) == sorted("你好")


def test_blank_text_is_not_sent(composer: Composer, sent: list[str], qtbot: QtBot) -> None:
    composer.set_text(" \n ")
    assert not composer.button.isEnabled()
    qtbot.keyClick(composer.input, Qt.Key.Key_Return)
    assert sent == []


def test_one_button_sends_and_stops_in_one_place(composer: Composer, sent: list[str], qtbot: QtBot) -> None:
    composer.set_text("go")
    place = composer.button.geometry()
    qtbot.mouseClick(composer.button, Qt.MouseButton.LeftButton)
    assert sent == ["go"]
    composer.set_state("generating")
    assert composer.button.text() == "Stop" == composer.button.accessibleName()
    with qtbot.waitSignal(composer.stop_requested):
        qtbot.mouseClick(composer.button, Qt.MouseButton.LeftButton)
    composer.set_state("stopping")
    assert not composer.button.isEnabled() and composer.button.text() == "Stopping…"
    QApplication.processEvents()
    assert composer.button.geometry() == place
    assert sent == ["go"]


@pytest.mark.parametrize("state", ["generating", "stopping", "unavailable"])
def test_enter_sends_in_no_other_state(composer: Composer, sent: list[str], qtbot: QtBot, state: str) -> None:
    composer.set_state(state)
    composer.set_text("kept")
    qtbot.keyClick(composer.input, Qt.Key.Key_Return)
    assert sent == [] and composer.text() == "kept"
    assert composer.input.isEnabled()


def test_unknown_state_is_refused(composer: Composer) -> None:
    with pytest.raises(ValueError, match="asleep"):
        composer.set_state("asleep")


def test_grows_from_one_line_to_eight(composer: Composer) -> None:
    heights = []
    for lines in (1, 2, 8, 9, 40):
        composer.set_text("\n".join(["x"] * lines))
        heights.append(composer.input.height())
    assert heights[0] < heights[1] < heights[2] == heights[3] == heights[4]
    composer.clear_text()
    assert composer.input.height() == heights[0]


@pytest.mark.parametrize("text", ["x" * 1_000_000, "word " * 200_000, "line\n" * 200_000])
def test_a_megabyte_can_be_pasted_and_edited(composer: Composer, sent: list[str], qtbot: QtBot, text: str) -> None:
    data = QMimeData()
    data.setText(text)
    composer.input.insertFromMimeData(data)
    qtbot.keyClicks(composer.input, "!")
    assert composer.text() == text + "!"
    longest = max(composer.input.document().findBlockByNumber(i).length() for i in range(50))
    assert longest <= 1002, "no line is laid out as a whole"
    qtbot.keyClick(composer.input, Qt.Key.Key_Return)
    assert sent == [text + "!"]


def test_a_paste_of_very_many_lines_leaves_the_window_alive(composer: Composer, qtbot: QtBot) -> None:
    text = "".join(f"line {i}\n" for i in range(100_000)) + "x" * 2500
    data = QMimeData()
    data.setText(text)
    gaps = [thread_seconds(lambda: composer.input.insertFromMimeData(data))]
    assert composer.input.inserting and composer.button.isEnabled()
    while composer.input.inserting:
        gaps.append(thread_seconds(QApplication.processEvents))
    assert len(gaps) > 20 and sorted(gaps)[-2] < 0.1, "seconds of this thread, with room for a slow machine"
    assert composer.text() == text and composer.input.textCursor().atEnd()
    composer.input.undo()
    assert composer.text() == "", "one step, however many slices"


def test_what_is_typed_or_asked_for_while_lines_come_in_is_right(composer: Composer, qtbot: QtBot) -> None:
    text = "line\n" * 20_000
    composer.set_text("before ")
    composer.input.moveCursor(QTextCursor.MoveOperation.End)
    composer.insert_text(text)
    composer.input.moveCursor(QTextCursor.MoveOperation.Start)
    qtbot.keyClicks(composer.input, "typed ")
    assert composer.text() == "typed before " + text
    composer.set_text(text)
    composer.set_text("other")
    qtbot.wait(20)
    assert composer.text() == "other" and not composer.input.inserting


def thread_seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def test_paste_is_plain_and_normalises_line_ends(composer: Composer) -> None:
    data = QMimeData()
    data.setText("a\r\nb\rc")
    data.setHtml("<b>a</b>")
    composer.input.insertFromMimeData(data)
    assert composer.text() == "a\nb\nc"
    composer.set_text("start end")
    composer.insert_text("!")
    assert composer.text() == "start end!"


def test_chips_show_labels_and_report_clicks(composer: Composer, qtbot: QtBot) -> None:
    composer.set_sampling_label("Temperature 0.7")
    composer.set_speculation_label("Speculation off")
    assert composer.sampling_chip.text() == "Temperature 0.7"
    with qtbot.waitSignal(composer.sampling_clicked):
        qtbot.mouseClick(composer.sampling_chip, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(composer.speculation_clicked):
        qtbot.mouseClick(composer.speculation_chip, Qt.MouseButton.LeftButton)
    composer.resize(450, 120)
    QApplication.processEvents()
    assert composer.speculation_chip.text() == ""
    assert composer.speculation_chip.accessibleName() == "Speculation off"


@pytest.mark.parametrize(
    ("used", "role", "text"),
    [
        (3200, "accent", "3.2k of 8k tokens"),
        (6600, "warn", "6.6k of 8k tokens, filling up"),
        (7900, "error", "7.9k of 8k tokens, nearly full"),
    ],
)
def test_gauge_warns_by_colour_and_words(composer: Composer, used: int, role: str, text: str) -> None:
    composer.set_gauge(used, 8192)
    assert composer.gauge.role() == role
    assert composer.gauge.text() == text == composer.gauge.accessibleName()
    image = composer.gauge.grab().toImage()
    seen = {image.pixelColor(x, y).name() for x in range(16) for y in range(image.height())}
    assert getattr(theme.LIGHT, role).lower() in seen


def test_gauge_is_hidden_without_a_total(composer: Composer) -> None:
    composer.set_gauge(10, 100)
    assert composer.gauge.isVisible()
    composer.set_gauge(0, 0)
    assert not composer.gauge.isVisible()


def test_short_counts() -> None:
    assert [short_count(n) for n in (0, 999, 1000, 3200, 4096, 8192, 131072)] == [
        "0",
        "999",
        "1k",
        "3.2k",
        "4k",
        "8k",
        "128k",
    ]
