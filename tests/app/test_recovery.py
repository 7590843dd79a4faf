"""The start after a run that did not end well, and an engine that is restarted in the window."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_engine import FakeEngine, paris, text_of
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot
from window_bench import Bench, BenchMaker

from app.launcher import Launcher
from app.run_marker import LOADING, Crash
from app.settings import AppSettings
from app.settings_store import Loaded, SettingsStore
from app.states import HostState
from app.ui.main_window import MainWindow

Starter = Callable[[str], tuple[Launcher, FakeEngine]]
ANSWER = text_of(paris().events())


@pytest.fixture
def started(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Starter]:
    """Starts a window after a crash of which this is left."""
    monkeypatch.setitem(MainWindow.__init__.__kwdefaults__, "starter_installed", lambda: True)
    made: list[Launcher] = []

    def start(text: str) -> tuple[Launcher, FakeEngine]:
        engine = FakeEngine()
        crash = Crash(tmp_path / "crash-20261201-120000.log", text)
        launcher = Launcher(lambda: engine, SettingsStore(tmp_path), Loaded(AppSettings()), None, crash=crash)
        made.append(launcher)
        launcher.window.show()
        qtbot.waitUntil(lambda: launcher.window.history.is_open, timeout=10_000)
        return launcher, engine

    yield start
    for launcher in made:
        launcher.dismiss()


def killed(bench: Bench) -> None:
    """The window goes as it goes when the process is killed: nobody says goodbye to the history."""
    bench.qtbot.waitUntil(lambda: bench.window.history.idle, timeout=10_000)
    bench.window.chat.keeper.closed = lambda: None  # type: ignore[method-assign]
    bench.window.close()


def test_the_chat_that_was_open_is_back_and_the_report_is_offered(benches: BenchMaker, started, qtbot: QtBot) -> None:
    bench = benches()
    bench.ready()
    bench.ask("First?")
    bench.window.new_action.trigger()
    bench.ask("Second?")
    bench.window.side_bar.chat_chosen.emit(bench.listed(1))
    killed(bench)
    home = str(Path.home())
    launcher, _ = started(
        f'[2026-12-01 12:00:00] ready\nFatal Python error: Segmentation fault\n  File "{home}/x/app/y.py"'
    )
    window = launcher.window
    shown = [turn.text() for turn in window.view.turns()[:1]]
    assert shown == ["First?"], "the one that was open, not the last one written"
    qtbot.waitUntil(lambda: "did not end as it should" in window.view.banner.sentence(), timeout=5000)
    qtbot.waitUntil(lambda: launcher.host.state is HostState.READY, timeout=5000)
    window.view.banner.action_button.click()
    pane = launcher.recovery.pane
    assert pane is not None and pane.isVisible() and window.view.banner.isHidden()
    text = pane.view.toPlainText()
    assert "Segmentation fault" in text and "app/y.py" in text and "Qt:" in text and home not in text
    pane.copy_button.click()
    assert QGuiApplication.clipboard().text() == text
    assert "Report of the last run" in [command.action.text() for command in window.commands.possible()]


def test_after_a_proper_end_a_new_chat_is_open(benches: BenchMaker, started) -> None:
    bench = benches()
    bench.ready()
    bench.ask("First?")
    bench.window.close()
    launcher, _ = started("[x] ready")
    assert launcher.window.view.turns() == [] and "is back" not in launcher.window.view.banner.sentence(), (
        "that run ended well: what crashed was one without a chat"
    )


def test_a_model_that_brought_the_program_down_is_not_loaded_again(started, qtbot: QtBot) -> None:
    launcher, engine = started(f"[x] Specular begins\n[x] {LOADING}/models/bad.gguf\n")
    qtbot.waitUntil(lambda: "while it loaded bad.gguf" in launcher.window.view.banner.sentence(), timeout=5000)
    assert engine.loads == [] and launcher.host.state is HostState.NO_MODEL
    launcher.window.models.load("/models/bad.gguf")
    qtbot.waitUntil(lambda: launcher.host.state is HostState.READY, timeout=5000)


def test_a_faulty_engine_is_restarted_from_the_details_with_its_model(
    benches: BenchMaker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    bench = benches()
    bench.ready()
    bench.engine.reply_error = RuntimeError("kernel fault")
    bench.type_and_send("One?")
    bench.reach(HostState.FAILED)
    assert "kernel fault" in bench.banner
    bench.engine.reply_error = None
    bench.window.notices.restart_wanted.emit()
    bench.reach(HostState.READY)
    assert bench.engine.closed.is_set() and [path for path, _ in bench.engine.loads] == ["starter", "starter"]
    bench.ask("Two?")
    assert bench.said[-2:] == ["Two?", ANSWER]


def test_the_engine_is_restarted_in_mid_reply_by_the_command(benches: BenchMaker) -> None:
    bench = benches(engine=FakeEngine(hold_reply=True))
    bench.ready()
    bench.type_and_send("One?")
    bench.held()
    bench.engine.hold_reply = False
    bench.window.models.restart()
    bench.qtbot.waitUntil(lambda: len(bench.engine.loads) == 2, timeout=10_000)
    bench.reach(HostState.READY)
    assert bench.said == ["One?", "The capital of France is"], "what had come is kept"
    bench.ask("Two?")
    assert bench.said[-1] == ANSWER
