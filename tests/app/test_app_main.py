"""Starting the program: what is imported before the first paint, the smoke run, faults in the event loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from PySide6.QtCore import QTimer
from PySide6.QtGui import QCloseEvent, QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.launcher import Launcher
from app.main import main
from app.settings import AppSettings
from app.settings_store import Loaded, SettingsStore
from app.states import HostState
from app.ui.main_window import MainWindow
from engine.errors import ModelFileError
from engine.files import starter

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window believes that the starter model is there."""
    monkeypatch.setitem(MainWindow.__init__.__kwdefaults__, "starter_installed", lambda: True)


def test_neither_torch_nor_the_engine_is_imported_for_the_window() -> None:
    heavy = "[name for name in ('torch', 'numpy', 'transformers', 'numba', 'engine.engine') if name in sys.modules]"
    code = f"import sys; import app.main; print({heavy})"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_smoke_saves_a_picture_of_the_whole_window(qtbot: QtBot, installed: None, tmp_path: Path, theme: str) -> None:
    engine, target = FakeEngine(), tmp_path / "out.png"
    assert main(["--smoke", str(target), "--smoke-theme", theme], lambda: engine) == 0
    image = QImage(str(target))
    assert (image.width(), image.height()) == (1440, 900)
    assert (image.pixelColor(720, 400).lightness() > 128) is (theme == "light")
    assert engine.requests[0].messages[-1].content == "What is the capital of France?"
    assert engine.closed.is_set()


def test_smoke_asks_what_it_is_told_in_one_chat(qtbot: QtBot, installed: None, tmp_path: Path) -> None:
    engine, target = FakeEngine(), str(tmp_path / "out.png")
    assert main(["--smoke", target, "--smoke-prompt=Why?", "--smoke-prompt=How?"], lambda: engine) == 0
    first, second = engine.requests
    assert [message.content for message in first.messages] == ["Why?"]
    assert [message.content for message in second.messages[::2]] == ["Why?", "How?"]


def test_smoke_of_a_model_that_cannot_be_loaded_fails_with_one_line(
    qtbot: QtBot, installed: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    engine = FakeEngine(load_error=ModelFileError("m.gguf is cut short."))
    assert main(["--smoke", str(tmp_path / "out.png"), "--model", "m.gguf"], lambda: engine) == 1
    assert capfd.readouterr().err.splitlines() == ["m.gguf is cut short."]
    assert not (tmp_path / "out.png").exists()


def test_smoke_without_the_starter_model_fails_with_one_line(
    qtbot: QtBot, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not starter.is_installed()
    assert main(["--smoke", str(tmp_path / "out.png")], FakeEngine) == 1
    assert "The starter model is not installed" in capfd.readouterr().err


def test_smoke_to_a_place_that_cannot_be_written_fails(
    qtbot: QtBot, installed: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--smoke", str(tmp_path / "no" / "out.png")], FakeEngine) == 1
    assert "cannot be written" in capfd.readouterr().err


def test_the_engine_is_made_only_after_the_first_paint(qtbot: QtBot, installed: None, tmp_path: Path) -> None:
    order: list[str] = []

    def factory() -> FakeEngine:
        order.append("engine")
        return FakeEngine()

    launcher = Launcher(factory, SettingsStore(tmp_path), Loaded(AppSettings()), None)
    launcher.window.painted.connect(lambda: order.append("painted"))
    launcher.window.show()
    qtbot.waitUntil(lambda: launcher.host.state is HostState.READY, timeout=5000)
    assert order == ["painted", "engine"]
    launcher.dismiss()


def test_the_program_ends_with_the_window_and_keeps_its_settings(qtbot: QtBot, installed: None, tmp_path: Path) -> None:
    engine = FakeEngine()

    def close_when_ready() -> None:
        windows = [widget for widget in QApplication.topLevelWidgets() if hasattr(widget, "models")]
        if windows and engine.info is not None:
            windows[0].close()
        else:
            QTimer.singleShot(10, close_when_ready)

    QTimer.singleShot(10, close_when_ready)
    interrupt = signal.getsignal(signal.SIGINT)
    assert main(["--model", str(tmp_path)], lambda: engine) == 0
    assert signal.getsignal(signal.SIGINT) is interrupt
    assert engine.loads == [(str(tmp_path), None)] and engine.closed.is_set()
    assert SettingsStore().path.exists()


def closing_when(condition: Callable[[MainWindow], bool]) -> None:
    """Close the window of `main` as soon as a condition of it holds."""

    def look() -> None:
        windows = [widget for widget in QApplication.topLevelWidgets() if isinstance(widget, MainWindow)]
        if windows and condition(windows[0]):
            windows[0].close()
        else:
            QTimer.singleShot(10, look)

    QTimer.singleShot(10, look)


def test_safe_mode_neither_reads_nor_writes_settings_and_loads_nothing(qtbot: QtBot, installed: None) -> None:
    SettingsStore().save(AppSettings(top_k=7, theme="light", model="/models/bad"))
    before = SettingsStore().path.read_bytes()
    engine, seen = FakeEngine(), []
    closing_when(lambda window: window.history.is_open)
    original = MainWindow.closeEvent

    def see(self: MainWindow, event: QCloseEvent) -> None:
        seen.append((self._settings.current.top_k, self.view.banner.sentence(), self.view.turns()))
        self._settings.set("top_k", 9)
        original(self, event)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MainWindow, "closeEvent", see)
        assert main(["--safe-mode"], lambda: engine) == 0
    (top_k, banner, turns), *_ = seen
    assert top_k == 0 and "Safe mode" in banner and turns == [] and engine.loads == []
    assert SettingsStore().path.read_bytes() == before


def test_all_files_are_in_the_folder_that_was_given(
    qtbot: QtBot, installed: None, tmp_path: Path, own_data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECULAR_DATA_DIR", str(own_data_folder))  # put back afterwards
    closing_when(lambda window: window.history.is_open and window._host.state is HostState.READY)
    assert main(["--data-dir", str(tmp_path / "mine"), "--model", str(tmp_path)], FakeEngine) == 0
    found = {path.relative_to(tmp_path / "mine").as_posix() for path in (tmp_path / "mine").rglob("*.*")}
    assert {"config/settings.json", "data/history.db", "data/logs/specular.log"} <= found
    assert list(own_data_folder.iterdir()) == []
