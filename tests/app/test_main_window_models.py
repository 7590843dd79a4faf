"""Models as a user meets them in the window: loading, cancelling, replacing, fetching, dropping; over a fake engine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fake_engine import FakeEngine, paris, text_of
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QWidget
from window_bench import BenchMaker

from app.settings import AppSettings
from app.states import HostState
from engine.errors import ModelFileError

ANSWER = text_of(paris().events())


def drop(target: QWidget, path: Path) -> bool:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(target.rect().center(), Qt.DropAction.CopyAction, data, buttons, keys)
    QApplication.sendEvent(target, enter)
    event = QDropEvent(QPointF(target.rect().center()), Qt.DropAction.CopyAction, data, buttons, keys)
    event.ignore()
    QApplication.sendEvent(target, event)
    return event.isAccepted()


def test_the_chip_shows_load_progress_and_then_the_model(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(hold_load=True))
    chip = bench.window.top_bar.chip
    assert chip.text() == "Choose a model"
    bench.window.load_starter()
    assert "Starting the engine" in chip.text() and chip.cancel_button.isVisible()
    bench.held()
    bench.qtbot.waitUntil(lambda: "136 of 272 · 134 of 268 MB" in chip.text(), timeout=5000)
    bench.engine.go.set()
    bench.reach(HostState.READY)
    assert chip.text() == "SmolLM2 135M Instruct F16 · 8k context" and not chip.cancel_button.isVisible()
    assert bench.window.status.device_text == "CPU, 2 threads · fp16"


def test_a_load_can_be_cancelled_and_begun_again(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(hold_load=True))
    bench.window.load_starter()
    bench.held()
    bench.qtbot.mouseClick(bench.window.top_bar.chip.cancel_button, Qt.MouseButton.LeftButton)
    bench.reach(HostState.NO_MODEL)
    assert bench.banner == ""
    bench.engine.go.set()
    bench.ready()


def test_another_model_chosen_during_a_load_replaces_it(benches: BenchMaker, tmp_path: Path) -> None:
    bench = benches(FakeEngine(hold_load=True))
    bench.window.load_starter()
    bench.held()
    bench.engine.hold_load = False
    bench.window.models.load(str(tmp_path))
    bench.reach(HostState.READY)
    assert [model for model, _ in bench.engine.loads] == ["starter", str(tmp_path)]
    assert bench.settings.current.model == str(tmp_path)
    assert bench.settings.current.recent_models == (str(tmp_path),)


def test_another_model_chosen_during_a_reply_stops_it_and_keeps_its_text(benches: BenchMaker, tmp_path: Path) -> None:
    bench = benches(FakeEngine(hold_reply=True))
    bench.ready()
    bench.type_and_send("One?")
    bench.held()
    bench.window.models.load(str(tmp_path))
    bench.qtbot.waitUntil(lambda: bench.host.info is not None and bench.host.info.path == str(tmp_path), timeout=5000)
    bench.reach(HostState.READY)
    assert bench.said == ["One?", "The capital of France is"]


def test_a_failed_load_keeps_the_model_and_says_why(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.engine.load_error = ModelFileError("other.gguf is cut short.")
    bench.window.models.load("other.gguf")
    bench.qtbot.waitUntil(lambda: bench.banner == "other.gguf is cut short.", timeout=5000)
    assert bench.host.state is HostState.READY
    assert bench.window.top_bar.chip.text().startswith("SmolLM2")
    assert bench.settings.current.model == "starter"
    bench.ask("Still there?")
    assert bench.said[-1] == ANSWER


def test_a_failed_first_load_says_why_and_offers_the_starter_model(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(load_error=ModelFileError("gone: there is no such folder.")))
    bench.window.models.load("gone")
    bench.reach(HostState.FAILED)
    assert bench.banner == "gone: there is no such folder."
    assert bench.view.banner.action_button.text() == "Load the starter model"
    bench.engine.load_error = None
    bench.qtbot.mouseClick(bench.view.banner.action_button, Qt.MouseButton.LeftButton)
    bench.reach(HostState.READY)
    assert bench.banner == "" and bench.engine.loads[-1] == ("starter", None)


def test_the_starter_model_can_be_fetched_when_it_is_missing(benches: BenchMaker) -> None:
    bench = benches(starter=lambda: False)
    bench.window.load_starter()
    assert bench.host.state is HostState.NO_MODEL
    assert "not on this computer" in bench.banner
    assert bench.view.banner.action_button.text() == "Fetch the starter model"


def test_once_fetched_the_starter_model_is_loaded(benches: BenchMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[bool] = []
    monkeypatch.setattr("app.starter_fetch.COMMAND", (sys.executable, "-c", "pass"))
    bench = benches(starter=lambda: bool(there))
    bench.window.load_starter()
    bench.qtbot.mouseClick(bench.view.banner.action_button, Qt.MouseButton.LeftButton)
    assert bench.banner == "Fetching the starter model (98 MB)…"
    there.append(True)
    bench.reach(HostState.READY)
    assert bench.banner == ""


def test_a_fetch_can_be_cancelled(benches: BenchMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.starter_fetch.COMMAND", (sys.executable, "-c", "import time; time.sleep(60)"))
    bench = benches(starter=lambda: False)
    bench.window.load_starter()
    for words in ("Fetch the starter model", "Cancel"):
        assert bench.view.banner.action_button.text() == words
        bench.qtbot.mouseClick(bench.view.banner.action_button, Qt.MouseButton.LeftButton)
    assert not bench.window.fetch.running and "not on this computer" in bench.banner


def test_a_new_context_length_loads_the_model_again(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.settings.set("context", 2048)
    bench.reach(HostState.READY)
    assert bench.engine.loads == [("starter", None), ("starter", 2048)]


def test_virtual_memory_is_switched_off_and_on_by_loading_again(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    assert bench.engine.virtual_memory is True
    for wanted in (False, True):
        bench.settings.set("virtual_memory", wanted)
        bench.reach(HostState.READY)
        assert bench.engine.virtual_memory is wanted


def test_a_memory_budget_loads_the_model_within_it(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    assert bench.engine.budget_bytes is None
    for gigabytes, wanted in ((8.0, 8_000_000_000), (0.0, None)):
        bench.settings.set("budget_gb", gigabytes)
        bench.reach(HostState.READY)
        assert bench.engine.budget_bytes == wanted


def test_a_dropped_folder_or_gguf_file_is_loaded(benches: BenchMaker, tmp_path: Path) -> None:
    bench = benches()
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    assert drop(bench.window, file)
    bench.reach(HostState.READY)
    assert drop(bench.window.composer.input.viewport(), tmp_path)
    bench.reach(HostState.READY)
    assert [model for model, _ in bench.engine.loads] == [str(file), str(tmp_path)]
    assert bench.window.composer.text() == ""


def test_the_menu_of_the_chip_leads_to_every_kind_of_model(
    benches: BenchMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = benches(settings=AppSettings(recent_models=("/models/old", "/models/older.gguf")))
    chip = bench.window.top_bar.chip
    monkeypatch.setattr("app.ui.main_window.ask_folder", lambda _: str(tmp_path))
    monkeypatch.setattr("app.ui.main_window.ask_file", lambda _: "")
    chip.menu.aboutToShow.emit()
    actions = {action.text(): action for action in chip.menu.actions() if action.text()}
    models = ["Starter model", "old", "older.gguf", "Models…", "Open folder…", "Open GGUF file…"]
    assert list(actions) == [*models, "Demo", "Open replay…"]
    for words in ("older.gguf", "Open folder…", "Open GGUF file…"):
        actions[words].trigger()
        if words != "Open GGUF file…":
            bench.qtbot.waitUntil(lambda: bench.host.state is HostState.READY, timeout=5000)
    assert [model for model, _ in bench.engine.loads] == ["/models/older.gguf", str(tmp_path)]
    assert bench.settings.current.recent_models == (str(tmp_path), "/models/older.gguf", "/models/old")


def test_unload_gives_the_model_back_and_the_window_says_so(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    chip = bench.window.top_bar.chip
    chip.menu.aboutToShow.emit()
    next(action for action in chip.menu.actions() if action.text() == "Unload").trigger()
    bench.reach(HostState.NO_MODEL)
    assert chip.text() == "Choose a model" and bench.engine.info is None
    assert not bench.window.status.lossless.isVisible()


def test_other_dropped_files_are_not_taken_for_models(benches: BenchMaker, tmp_path: Path) -> None:
    bench = benches()
    other = tmp_path / "notes.txt"
    other.write_text("x")
    assert drop(bench.window, other), "it goes along with the next message"
    assert [file.text for file in bench.window.composer.attachments.files()] == ["x"]
    assert bench.engine.loads == []
