"""A replay: its clock, its scrubbing, and that any way to a position shows what was there when it happened."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest
from fake_engine import paris
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea
from pytestqt.qtbot import QtBot

from app import theme
from app.replay import SLICE, SPEEDS, Replay
from app.ui.replay_bar import ReplayBar
from app.ui.reply_view import ReplyView
from engine.recording import event_times
from engine.records import Event
from reply_builders import finished, long_reply

EVENTS = paris().events()
TIMES = event_times(EVENTS)


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Stage:
    """A replay of the Paris reply, whose clock the test moves."""

    qtbot: QtBot
    view: ReplyView
    replay: Replay
    clock: Clock

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        self.replay.tick()

    @property
    def text(self) -> str:
        return self.view.source_text()


@pytest.fixture
def stage(qapp: QApplication, qtbot: QtBot) -> Stage:
    theme.apply(qapp, "dark")
    view, clock = ReplyView(), Clock()
    qtbot.addWidget(view)
    view.resize(700, 300)
    view.show()
    view.append_many(list(EVENTS))
    return Stage(qtbot, view, Replay(EVENTS, TIMES, view, view, clock=clock), clock)


def text_at(seconds: float) -> str:
    """What had been written by then."""
    return "".join(
        piece
        for event, at in zip(EVENTS, TIMES, strict=True)
        if at <= seconds
        for piece in getattr(event, "pieces", ())
    )


def test_it_begins_with_nothing_and_at_rest(stage: Stage) -> None:
    assert stage.text == "" and not stage.replay.playing and not stage.replay.ticking
    assert stage.view.timeline.bars() == [] and not stage.view.is_finished()


@pytest.mark.parametrize("speed", SPEEDS)
def test_the_clock_shows_what_had_come_by_then(stage: Stage, speed: float) -> None:
    stage.replay.set_speed(speed)
    stage.replay.play()
    for _ in range(7):
        stage.pass_time(0.05 / speed)
        assert stage.text == text_at(stage.replay.position)
    assert stage.replay.position == pytest.approx(0.35)
    assert 0 < len(stage.text) < len(text_at(9))


def test_it_stops_at_the_end_and_plays_again_from_the_beginning(stage: Stage) -> None:
    stage.replay.play()
    stage.pass_time(99)
    assert stage.text == text_at(9) and stage.view.is_finished()
    assert not stage.replay.playing and not stage.replay.ticking
    assert stage.replay.position == stage.replay.duration == TIMES[-1]
    stage.replay.play()
    assert stage.replay.position == 0 and stage.text == "" and stage.replay.playing
    stage.replay.pause()


def test_a_paused_clock_does_not_move(stage: Stage) -> None:
    stage.replay.play()
    stage.pass_time(0.2)
    stage.replay.pause()
    where, text = stage.replay.position, stage.text
    stage.pass_time(5)
    assert (stage.replay.position, stage.text) == (where, text) and not stage.replay.ticking
    stage.replay.play()
    stage.pass_time(0.05)
    assert stage.replay.position == pytest.approx(where + 0.05)
    stage.replay.pause()


def test_a_change_of_speed_counts_from_now_on(stage: Stage) -> None:
    stage.replay.play()
    stage.clock.now += 0.1
    stage.replay.set_speed(0.1)
    stage.pass_time(1.0)
    assert stage.replay.position == pytest.approx(0.2)
    stage.replay.pause()


@pytest.mark.parametrize("speed", [0.0, 0.05, 5.0, -1.0, float("nan")])
def test_other_speeds_are_refused(stage: Stage, speed: float) -> None:
    with pytest.raises(ValueError, match=r"0.1 to 4.0"):
        stage.replay.set_speed(speed)
    assert stage.replay.speed == 1.0


def test_every_way_to_a_position_shows_the_same(stage: Stage) -> None:
    for seconds in (0.3, 0.1, 0.25, 0.0, 9.0, 0.17, -3.0, 0.2):
        stage.replay.seek(seconds)
        assert stage.text == text_at(max(0.0, seconds))
        assert stage.view.is_finished() is (seconds > TIMES[-1])
    shown = len(stage.view.timeline.bars())
    assert stage.view.statistics().cycles == shown == len([at for at in TIMES[2:-1] if at <= 0.2])


def test_going_back_over_the_end_brings_figures_and_actions_back(stage: Stage) -> None:
    stage.replay.seek(9)
    figures, counts = stage.view._figures.text(), stage.view.counts.summary()
    stage.replay.seek(0.1)
    assert not stage.view._actions.isVisible()
    stage.replay.seek(9)
    assert stage.view._actions.isVisible()
    assert (stage.view._figures.text(), stage.view.counts.summary()) == (figures, counts)


def test_scrubbing_leaves_no_guess_fading(stage: Stage) -> None:
    stage.replay.seek(0.3)
    assert "was" not in stage.view.text.toPlainText() and not stage.view.text._timer.isActive()
    stage.view.set_keep_ghosts(True)
    stage.replay.seek(0.0)
    stage.replay.seek(0.3)
    assert " was" in stage.view.text.toPlainText()


def test_ghosts_of_what_is_taken_back_are_forgotten(stage: Stage) -> None:
    stage.view.set_keep_ghosts(True)
    stage.replay.seek(9)
    stage.replay.seek(0.0)
    stage.view.set_keep_ghosts(False)
    assert stage.view.text.toPlainText() == "" and not stage.view.text._ghosts.ticks
    stage.replay.seek(0.3)
    stage.view.set_keep_ghosts(True)
    assert " was" in stage.view.text.toPlainText()


def test_steps_go_from_cycle_to_cycle(stage: Stage) -> None:
    ends = [0.0, *TIMES[2:]]
    for end in ends[1:-1]:
        stage.replay.step(1)
        assert stage.replay.position == end
    stage.replay.step(99)
    assert stage.replay.position == TIMES[-1]
    stage.replay.seek(ends[3] + 0.001)
    stage.replay.step(-1)
    assert stage.replay.position == ends[3]
    stage.replay.step(-2)
    assert stage.replay.position == ends[1]
    stage.replay.step(-9)
    assert stage.replay.position == 0.0


def test_show_all_makes_the_reply_whole(stage: Stage) -> None:
    stage.replay.play()
    stage.pass_time(0.2)
    stage.replay.show_all()
    assert stage.text == text_at(9) and stage.view.is_finished() and not stage.replay.ticking


# The bar


@pytest.fixture
def bar(stage: Stage) -> ReplayBar:
    bar = ReplayBar(stage.replay, stage.view)
    stage.view.add_below(bar)
    bar.show()
    stage.view.adjustSize()
    return bar


def test_the_bar_says_replay_and_names_its_controls(bar: ReplayBar) -> None:
    assert bar.tag.text() == "Replay" and bar.tag.isVisible()
    assert bar.time.text() == "0.0 of 0.4 s"
    for control in (bar.play_button, bar.slider, bar.speed, bar.close_button):
        assert control.accessibleName()


def test_the_button_plays_and_pauses(bar: ReplayBar, stage: Stage) -> None:
    assert bar.play_button.accessibleName() == "Play"
    stage.qtbot.mouseClick(bar.play_button, Qt.MouseButton.LeftButton)
    assert stage.replay.playing and bar.play_button.accessibleName() == "Pause"
    stage.pass_time(0.2)
    assert bar.slider.value() == 200 and bar.time.text() == "0.2 of 0.4 s"
    stage.qtbot.mouseClick(bar.play_button, Qt.MouseButton.LeftButton)
    assert not stage.replay.playing and bar.slider.accessibleDescription() == "0.2 of 0.4 s"


def test_a_click_on_the_slider_goes_there_and_dragging_scrubs(bar: ReplayBar, stage: Stage) -> None:
    slider = bar.slider
    middle = QPointF(slider.width() / 2, slider.height() / 2).toPoint()
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=middle)
    assert stage.replay.position == pytest.approx(stage.replay.duration / 2, rel=0.1)
    assert stage.text == text_at(stage.replay.position) != ""
    QTest.mouseMove(slider, QPointF(2, middle.y()).toPoint())
    assert stage.replay.position == 0.0 and stage.text == ""
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=middle)


def test_keys_step_by_cycles(bar: ReplayBar, stage: Stage) -> None:
    stage.qtbot.keyClick(bar.slider, Qt.Key.Key_Right)
    stage.qtbot.keyClick(bar.slider, Qt.Key.Key_Right)
    assert stage.replay.position == TIMES[3]
    stage.qtbot.keyClick(bar.slider, Qt.Key.Key_Left)
    assert stage.replay.position == TIMES[2]
    stage.qtbot.keyClick(bar.slider, Qt.Key.Key_End)
    assert stage.view.is_finished()


def test_the_speed_box_offers_a_tenth_to_four_times(bar: ReplayBar, stage: Stage) -> None:
    offered = [bar.speed.itemText(i) for i in range(bar.speed.count())]
    assert offered == ["0.1×", "0.25×", "0.5×", "1×", "2×", "4×"]
    bar.speed.setCurrentIndex(0)
    assert stage.replay.speed == 0.1


# Long replies: C51


def test_twenty_thousand_tokens_are_scrubbed_without_a_gap(qapp: QApplication, qtbot: QtBot) -> None:
    theme.apply(qapp, "dark")
    events: list[Event] = [*long_reply(20_000), finished()]
    area, view = QScrollArea(), ReplyView()
    qtbot.addWidget(area)
    area.setWidgetResizable(True)
    area.setWidget(view)
    area.resize(740, 600)
    area.show()
    replay = Replay(events, event_times(events), view, view)
    longest, whole = 0.0, sum(len(event.record.emitted_ids) for event in events[:-1])  # type: ignore[union-attr]
    assert whole == 20_000
    for share in (1.0, 0.1, 0.9, 0.5, 0.45):
        replay.seek(replay.duration * share)
        while not replay.settled:
            began = time.thread_time()  # other programs may have the processor
            replay.tick()
            longest = max(longest, time.thread_time() - began)
    cycles = view.statistics().cycles
    assert cycles == pytest.approx(len(events) * 0.45, abs=5)
    assert view.source_text() == "".join(p for event in events[:cycles] for p in event.pieces)  # type: ignore[union-attr]
    assert longest < 0.3
    assert SLICE * 5 < 20_000 // 50  # a slice is a small part of it
    replay.show_all()
