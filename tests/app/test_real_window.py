"""The real window with the real engine and the starter model: questions, answers, a picture, a report."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from app.main import Launcher, main, make_engine
from app.settings import AppSettings
from app.settings_store import Loaded, SettingsStore
from app.states import HostState
from app.ui.reply_view import ReplyView
from engine.recording import read_recording
from engine.records import StopReason

LOAD_MS = 100_000  # the first use on a machine compiles the kernels
REPLY_MS = 60_000


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_the_starter_model_names_paris_in_the_window(qtbot: QtBot, starter_by_name: str, tmp_path: Path) -> None:
    launcher = Launcher(make_engine, SettingsStore(tmp_path), Loaded(AppSettings()), starter_by_name)
    window, host = launcher.window, launcher.host
    steps: list[int] = []
    host.load_progress.connect(lambda progress: steps.append(progress.total))
    window.show()
    qtbot.waitUntil(lambda: host.state is HostState.READY, timeout=LOAD_MS)
    assert max(steps) > 100  # progress counts tensors
    window.chat.send("What is the capital of France?")
    qtbot.waitUntil(lambda: host.state is HostState.READY, timeout=REPLY_MS)
    reply = window.view.turns()[-1]
    assert isinstance(reply, ReplyView) and "Paris" in reply.source_text()
    kept = window.chat.chats.current.turns[-1].reply
    assert kept is not None and kept.finished is not None and kept.finished.reason is StopReason.END_TOKEN
    assert kept.text == reply.source_text()
    assert window.status.speed.isVisible() and window.status.lossless.isVisible()
    window.chat.send("Write a long story about a lighthouse.")
    qtbot.waitUntil(lambda: window.view.turns()[-1].source_text() != "", timeout=REPLY_MS)
    window.escape_action.trigger()
    qtbot.waitUntil(lambda: host.state is HostState.READY, timeout=5000)
    half = window.chat.chats.current.turns[-1].reply
    assert half is not None and half.finished is not None and half.finished.reason is StopReason.STOPPED
    launcher.dismiss()


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_real_reply_is_compared_replayed_and_reported(qtbot: QtBot, starter_by_name: str, tmp_path: Path) -> None:
    launcher = Launcher(make_engine, SettingsStore(tmp_path), Loaded(AppSettings(max_new_tokens=48)), starter_by_name)
    window, host = launcher.window, launcher.host
    window.show()
    qtbot.waitUntil(lambda: host.state is HostState.READY, timeout=LOAD_MS)
    window.chat.send("Why is the sky blue?")
    qtbot.waitUntil(lambda: host.state is HostState.READY, timeout=REPLY_MS)
    view, turn = window.view.turns()[-1], window.chat.chats.current.turns[-1]
    assert isinstance(view, ReplyView) and turn.reply is not None
    view.compare_requested.emit()
    qtbot.waitUntil(lambda: turn.comparison is not None, timeout=REPLY_MS)
    assert turn.comparison is not None and turn.comparison.identical and turn.comparison.compared == 48
    window.comparisons.pane.reject()
    window.reports.ask = lambda _, name: str(tmp_path / name)
    window.reports.export_last()
    written = read_recording(next(tmp_path.glob("*.json")))
    assert (written.text, written.comparison) == (turn.reply.text, turn.comparison)
    assert window.replays.start_last() and window.replays.replay is not None
    window.replays.replay.seek(window.replays.replay.duration)
    assert view.source_text() == written.text and view.is_finished()
    launcher.dismiss()


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_smoke_with_the_starter_model(qtbot: QtBot, starter_by_name: str, tmp_path: Path) -> None:
    target = tmp_path / "smoke.png"
    assert main(["--smoke", str(target)]) == 0
    assert QImage(str(target)).width() == 1440
