"""Replays in the window: a reply's own, the demo, files; switching, closing and asking while one plays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_engine import FakeEngine, paris, text_of
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot
from window_bench import Bench, BenchMaker

from app.conversation import Reply
from app.main import main
from app.recorded import DEMO, recording_of
from app.replay import Replay
from app.states import HostState
from app.ui.main_window import MainWindow
from app.ui.replay_bar import ReplayBar
from app.ui.reply_view import ReplyView
from engine.recording import read_recording, write_recording

ANSWER = text_of(paris().events())


def replies(bench: Bench) -> list[ReplyView]:
    return [turn for turn in bench.view.turns() if isinstance(turn, ReplyView)]


def choose(view: ReplyView, words: str) -> None:
    """Trigger an action of a reply's menu."""
    next(action for action in view._menu.actions() if action.text() == words).trigger()


def replaying(bench: Bench) -> Replay:
    replay = bench.window.replays.replay
    assert replay is not None
    return replay


def bar_of(bench: Bench) -> ReplayBar:
    bar = bench.window.replays.bar
    assert bar is not None
    return bar


def asked(benches: BenchMaker) -> Bench:
    bench = benches()
    bench.ready()
    bench.ask("What is the capital of France?")
    return bench


def test_the_demo_is_small_and_shows_every_state() -> None:
    assert DEMO.stat().st_size < 200_000
    recording = read_recording(DEMO)
    sums = recording.statistics
    assert min(sums.kept, sums.rejected, sums.corrections, sums.bonuses) >= 10
    assert recording.model.name == "SmolLM2 135M Instruct" and "/" not in recording.model.path
    assert sums.emitted == recording.finished.new_tokens and sums.speed_up is not None


def test_the_empty_page_offers_the_demo_while_there_is_no_model(benches: BenchMaker) -> None:
    bench = benches()
    assert bench.view.demo_button.isVisible()
    bench.qtbot.mouseClick(bench.view.demo_button, Qt.MouseButton.LeftButton)
    assert replaying(bench).playing and replaying(bench).speed == 0.25
    assert bench.host.state is HostState.NO_MODEL and bench.engine.loads == []
    bench.window.new_action.trigger()
    bench.ready()
    assert not bench.view.demo_button.isVisible()


def test_the_model_menu_opens_the_demo_which_plays_to_its_end(benches: BenchMaker) -> None:
    bench = benches()
    chip = bench.window.top_bar.chip
    chip._fill_menu()
    next(action for action in chip.menu.actions() if action.text() == "Demo").trigger()
    recording = read_recording(DEMO)
    replaying(bench).set_speed(4.0)
    bench.qtbot.waitUntil(lambda: not replaying(bench).playing, timeout=10_000)
    assert bench.said == [recording.prompt, recording.text]
    assert replies(bench)[0].statistics() == recording.statistics


def test_a_replay_is_called_one_wherever_it_is_named(benches: BenchMaker) -> None:
    bench = benches()
    bench.window.show_demo()
    assert bar_of(bench).tag.text() == "Replay"
    assert bench.titles[0].startswith("Replay: Why is the sky blue?")
    bar_of(bench).close_button.click()
    assert "recorded with SmolLM2 135M Instruct on CPU" in replies(bench)[0]._figures.text()


def test_any_reply_is_replayed_in_its_place(benches: BenchMaker) -> None:
    bench = asked(benches)
    view = replies(bench)[0]
    choose(view, "Replay")
    assert replaying(bench).playing and bench.said == ["What is the capital of France?", ""]
    replaying(bench).seek(0.2)
    assert ANSWER.startswith(bench.said[1]) and bench.said[1]
    bench.qtbot.mouseClick(bar_of(bench).close_button, Qt.MouseButton.LeftButton)
    assert bench.said[1] == ANSWER and bench.window.replays.replay is None and view.is_finished()
    assert not view.findChildren(ReplayBar)[0].isVisible()


def test_escape_ends_a_replay_but_first_leaves_the_settings(benches: BenchMaker) -> None:
    bench = asked(benches)
    choose(replies(bench)[0], "Replay")
    bench.window.show_settings()
    bench.window.escape_action.trigger()
    assert not bench.window.in_settings and bench.window.replays.replay is not None
    bench.window.escape_action.trigger()
    assert bench.window.replays.replay is None and bench.said[1] == ANSWER


def test_a_second_replay_ends_the_first(benches: BenchMaker) -> None:
    bench = asked(benches)
    bench.ask("And of Spain?")
    first, second = replies(bench)
    choose(first, "Replay")
    replaying(bench).seek(0.1)
    choose(second, "Replay")
    assert bench.said[1] == ANSWER and bench.said[3] == ""
    bench.window.replays.close()


def test_what_was_replayed_so_far_is_told_to_the_other_views(benches: BenchMaker) -> None:
    bench = asked(benches)
    told: list[Reply] = []
    ended: list[bool] = []
    bench.window.replays.moved.connect(told.append)
    bench.window.replays.ended.connect(lambda: ended.append(True))
    choose(replies(bench)[0], "Replay")
    replaying(bench).seek(0.3)
    assert told[-1].text == bench.said[1] and told[-1].finished is None
    assert told[-1].statistics == replies(bench)[0].statistics()
    bench.window.replays.close()
    assert told[-1].text == ANSWER and ended == [True]


def test_another_chat_ends_the_replay_and_the_reply_is_whole_later(benches: BenchMaker) -> None:
    bench = asked(benches)
    choose(replies(bench)[0], "Replay")
    bench.window.new_action.trigger()
    bench.qtbot.waitUntil(lambda: bench.window.replays.replay is None, timeout=5000)
    bench.window.chat.open_chat(bench.listed(0))
    assert bench.said == ["What is the capital of France?", ANSWER]


def test_a_replay_goes_on_while_a_reply_is_written(benches: BenchMaker) -> None:
    bench = asked(benches)
    choose(replies(bench)[0], "Replay")
    replaying(bench).pause()
    replaying(bench).seek(0.2)
    half = bench.said[1]
    bench.ask("And of Spain?")
    assert bench.said[1] == half and bench.said[3] == ANSWER
    assert bench.engine.requests[1].messages[1].content == ANSWER  # the chat itself is whole
    bench.window.replays.close()


def test_a_question_can_follow_a_replayed_chat(benches: BenchMaker) -> None:
    bench = benches()
    bench.window.show_demo()
    bench.ready()
    bench.ask("Go on.")
    recording = read_recording(DEMO)
    assert [message.content for message in bench.engine.requests[0].messages] == [
        recording.prompt,
        recording.text,
        "Go on.",
    ]
    assert not bench.titles[0].startswith("Replay")
    bench.window.replays.close()


def test_a_file_is_replayed_and_what_was_recorded_comes_back(benches: BenchMaker, tmp_path: Path) -> None:
    bench = asked(benches)
    made = recording_of(bench.window.chat.chats.current.turns[0])
    write_recording(tmp_path / "reply.json", made)
    assert bench.window.replays.open_file(tmp_path / "reply.json")
    bench.window.replays.close()
    assert bench.said == ["What is the capital of France?", ANSWER]
    again = recording_of(bench.window.chat.chats.current.turns[0])
    assert (again.events, again.sampling, again.speculation) == (made.events, made.sampling, made.speculation)
    assert again.times == pytest.approx(made.times, abs=1e-6)


@pytest.mark.parametrize("data", [b"", b'{"format": "specular-replay", "version": 9}', DEMO.read_bytes()[:9000]])
def test_a_bad_file_is_told_and_changes_nothing(benches: BenchMaker, tmp_path: Path, data: bytes) -> None:
    bench = asked(benches)
    (tmp_path / "bad.json").write_bytes(data)
    assert not bench.window.replays.open_file(tmp_path / "bad.json")
    assert bench.banner.startswith("bad.json is no replay that can be shown: ")
    assert bench.said == ["What is the capital of France?", ANSWER] and len(bench.titles) == 1


def playing(bench: Bench) -> None:
    choose(replies(bench)[0], "Replay")


def paused(bench: Bench) -> None:
    playing(bench)
    replaying(bench).pause()
    replaying(bench).seek(0.2)


def at_its_end(bench: Bench) -> None:
    playing(bench)
    replaying(bench).seek(99)


def ended(bench: Bench) -> None:
    playing(bench)
    bench.window.replays.close()


@pytest.mark.parametrize("state", [playing, paused, at_its_end, ended])
def test_the_window_closes_in_each_state(benches: BenchMaker, state: Callable[[Bench], None]) -> None:
    bench = asked(benches)
    state(bench)
    bench.window.close()
    assert bench.host.state is HostState.CLOSED
    replay = bench.window.replays.replay
    assert replay is None or not replay.playing


def test_only_finished_replies_are_replayed(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(hold_reply=True))
    bench.ready()
    bench.type_and_send("One?")
    bench.held()
    reply_id = bench.window.chat.chats.current.turns[0].reply.reply_id  # type: ignore[union-attr]
    assert not bench.window.replays.start(reply_id)
    bench.engine.go.set()
    bench.reach(HostState.READY)
    assert bench.window.replays.start(reply_id)
    bench.window.replays.close()


# specular --demo


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_smoke_of_the_demo_needs_no_model(qtbot: QtBot, tmp_path: Path, theme: str) -> None:
    made: list[FakeEngine] = []

    def factory() -> FakeEngine:
        made.append(FakeEngine())
        return made[-1]

    target = tmp_path / "out.png"
    assert main(["--smoke", str(target), "--demo", "--smoke-theme", theme], factory) == 0
    image = QImage(str(target))
    assert (image.width(), image.height()) == (1440, 900) and made == []
    assert (image.pixelColor(720, 600).lightness() > 128) is (theme == "light")
    assert len({image.pixel(x, 170) for x in range(480, 1200)}) > 20  # text and marks, not an empty page


def test_smoke_without_the_demo_file_fails_with_one_line(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.modules["app.replays"], "DEMO", tmp_path / "gone.json")
    assert main(["--smoke", str(tmp_path / "out.png"), "--demo"], FakeEngine) == 1
    assert "gone.json cannot be read" in capfd.readouterr().err


def test_the_demo_alone_loads_no_model(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, shown = FakeEngine(), MainWindow.show_demo

    def show_and_close(window: MainWindow) -> None:
        shown(window)
        assert window.replays.replay is not None
        window.close()

    monkeypatch.setattr(MainWindow, "show_demo", show_and_close)
    assert main(["--demo"], lambda: engine) == 0
    assert engine.loads == []


def test_the_top_bar_replays_the_last_reply_of_the_open_chat(benches: BenchMaker) -> None:
    bench = benches()
    button = bench.window.top_bar.replay_button
    assert not button.isEnabled()
    bench.ready()
    bench.ask("What is the capital of France?")
    bench.ask("And of Spain?")
    assert button.isEnabled()
    bench.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert replaying(bench).playing and bench.said[1] == ANSWER and bench.said[3] == ""
    bench.window.replays.close()
    bench.window.new_action.trigger()
    assert not button.isEnabled() and not bench.window.top_bar.report_button.isEnabled()


def test_an_old_reply_shows_its_marks_while_it_is_replayed(benches: BenchMaker) -> None:
    bench = asked(benches)
    bench.ask("And of Spain?")
    first = replies(bench)[0]
    assert not first.timeline.isVisible()
    choose(first, "Replay")
    replaying(bench).seek(0.2)
    assert first.timeline.isVisible() and first.text._tinted
    bench.window.replays.close()
