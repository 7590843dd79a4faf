"""The manager of models as a user meets it: rows, loading, removing, adding, downloading; over a stand-in command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from models_command import ModelsCommand, row
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from shown_words import shown_words
from window_bench import BenchMaker

from app.known_model import HubName, known_model
from app.model_library import Download, ModelLibrary, Phase
from app.theme import apply
from app.ui.model_manager import ModelManager
from app.ui.model_row import ModelRow

STARTER = row("starter", path="starter", origin="starter", dtype="Q4_1", bytes=98_400_000, context=8192)
DOWNLOADED = row("someone/tiny", path="/data/someone--tiny", origin="downloaded", verdict="fits streamed")
CACHED = row("a/b", path="/hub/x", origin="hub cache", verdict="does not fit", advice="The budget is 5.00 GB.")
BROKEN = row("broken", problem="It is cut short.", family=None, dtype=None, context=None, verdict=None, bytes=None)
PARTLY = row(
    "c/d", path="/part", origin="download, not complete", problem="The download is not complete.", verdict=None
)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelsCommand:
    made = ModelsCommand(tmp_path, monkeypatch)
    made.lists(STARTER, row("mine"), DOWNLOADED, CACHED, BROKEN, PARTLY)
    return made


@pytest.fixture
def manager(qtbot: QtBot, command: ModelsCommand) -> Iterator[ModelManager]:
    """Shown, with its list read."""
    library = ModelLibrary()
    made = ModelManager(library)
    made.open_list()
    qtbot.waitUntil(lambda: len(made.rows) == 6, timeout=10_000)
    yield made
    library.close()
    made.close()
    made.deleteLater()


def named(manager: ModelManager, name: str) -> ModelRow:
    return next(shown for shown in manager.rows if shown.model.name == name)


def drop(target: QWidget, path: Path) -> bool:
    """Drop a file as a desktop does; whether it was taken."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(target, QDragEnterEvent(QPoint(5, 5), Qt.DropAction.CopyAction, data, buttons, keys))
    event = QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, buttons, keys)
    event.ignore()
    QApplication.sendEvent(target, event)
    return event.isAccepted()


def idle(qtbot: QtBot, manager: ModelManager) -> None:
    library = manager._library
    qtbot.waitUntil(lambda: not library.busy and library.download.phase is not Phase.RUNNING, timeout=10_000)


def press(qtbot: QtBot, button: object) -> None:
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def test_each_row_says_what_it_is_and_how_it_fits(manager: ModelManager) -> None:
    words = {shown.model.name: shown_words(shown) for shown in manager.rows}
    assert {"Starter model", "98.4 MB · llama · Q4_1 · context 8,192", "Fits this computer"} <= words["starter"]
    assert {"mine", "added", "1.50 GB · llama · BF16 · context 4,096"} <= words["mine"]
    assert {"downloaded", "Fits streamed: parts are brought in for every pass"} <= words["someone/tiny"]
    assert {"hub cache", "Does not fit this computer", "The budget is 5.00 GB."} <= words["a/b"]
    assert {"Cannot be loaded", "It is cut short."} <= words["broken"]
    assert {"not complete", "The download is not complete", "Resume"} <= words["c/d"]
    assert not named(manager, "broken").load_button.isEnabled()


def test_what_cannot_be_told_is_not_available(qtbot: QtBot) -> None:
    made = ModelRow(known_model(row(verdict=None)))
    qtbot.addWidget(made)
    assert "n/a: this computer's memory could not be asked" in shown_words(made)


@pytest.mark.parametrize(("name", "path"), [("starter", "starter"), ("mine", "/models/mine")])
def test_load_asks_for_the_model_and_closes(qtbot: QtBot, manager: ModelManager, name: str, path: str) -> None:
    with qtbot.waitSignal(manager.load, timeout=5000) as asked:
        press(qtbot, named(manager, name).load_button)
    assert asked.args == [path] and not manager.isVisible()


def test_the_loaded_model_is_neither_loaded_again_nor_removed(manager: ModelManager) -> None:
    manager.set_loaded("/models/mine")
    mine = named(manager, "mine")
    assert not mine.load_button.isEnabled() and not mine.remove_button.isEnabled()
    assert "unload it first" in mine.remove_button.toolTip() and "loaded" in shown_words(mine)
    assert named(manager, "starter").load_button.isEnabled()
    manager.set_loaded("starter")
    assert mine.load_button.isEnabled() and not named(manager, "starter").remove_button.isEnabled()


def test_the_hub_s_cache_is_not_ours_to_delete(manager: ModelManager) -> None:
    button = named(manager, "a/b").remove_button
    assert not button.isEnabled() and "hf cache" in button.toolTip()


@pytest.mark.parametrize(
    ("name", "path", "question", "verb"),
    [
        ("mine", "/models/mine", "Take it off the list? Its files stay where they are.", "Take off"),
        ("someone/tiny", "/data/someone--tiny", "Delete 1.50 GB from this computer?", "Delete"),
        ("starter", "starter", "Delete 98.4 MB from this computer?", "Delete"),
        ("c/d", "/part", "Delete 1.50 GB from this computer?", "Delete"),
    ],
)
def test_removing_asks_first_and_says_what_it_does(
    qtbot: QtBot, manager: ModelManager, command: ModelsCommand, name: str, path: str, question: str, verb: str
) -> None:
    asked = named(manager, name)
    press(qtbot, asked.remove_button)
    assert asked.question.isVisible() and question in shown_words(asked.question) and asked.yes_button.text() == verb
    assert asked.no_button.hasFocus() and not asked.load_button.isVisible()
    press(qtbot, asked.no_button)
    assert not asked.question.isVisible() and asked.load_button.isVisible() and len(command.calls) == 1
    press(qtbot, asked.remove_button)
    command.lists(STARTER)
    press(qtbot, asked.yes_button)
    idle(qtbot, manager)
    assert command.calls[1:] == [["remove", path, "--yes", "--json"], ["list", "--json"]]
    assert [shown.model.name for shown in manager.rows] == ["starter"]


def test_a_refusal_is_shown_and_the_rows_are_as_they_were(
    qtbot: QtBot, manager: ModelManager, command: ModelsCommand
) -> None:
    command.lay_out(remove={"status": 2, "error": "specular-cli: mine cannot be deleted: Permission denied."})
    press(qtbot, named(manager, "mine").remove_button)
    press(qtbot, named(manager, "mine").yes_button)
    idle(qtbot, manager)
    assert manager.outcome.isVisible() and manager.outcome.text() == "mine cannot be deleted: Permission denied."
    assert named(manager, "mine").load_button.isVisible() and len(manager.rows) == 6


def test_a_folder_or_file_is_added(
    qtbot: QtBot, manager: ModelManager, command: ModelsCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.ui.model_manager.ask_folder", lambda _: "/models/new")
    monkeypatch.setattr("app.ui.model_manager.ask_file", lambda _: "")
    press(qtbot, manager.file_button)
    press(qtbot, manager.folder_button)
    idle(qtbot, manager)
    assert command.calls[1:] == [["add", "/models/new", "--json"], ["list", "--json"]]


def test_a_dropped_model_is_added(qtbot: QtBot, manager: ModelManager, command: ModelsCommand, tmp_path: Path) -> None:
    assert drop(manager, tmp_path) and not drop(manager, tmp_path / "answers")
    idle(qtbot, manager)
    assert command.calls[1:] == [["add", str(tmp_path), "--json"], ["list", "--json"]]


def test_converted_copies_are_cleared(qtbot: QtBot, manager: ModelManager, command: ModelsCommand) -> None:
    command.lay_out(clear_cache={"out": [{"freed_bytes": 271_000_000}]})
    press(qtbot, manager.clear_button)
    idle(qtbot, manager)
    assert manager.outcome.text() == "271 MB were freed."


def test_an_empty_list_says_how_it_is_filled(qtbot: QtBot, manager: ModelManager, command: ModelsCommand) -> None:
    command.lists()
    manager.open_list()
    qtbot.waitUntil(lambda: manager.rows == [], timeout=10_000)
    assert manager.empty.isVisible() and manager.empty.text().startswith("No model is known yet")


class TestDownload:
    STEPS = (
        {"download": "x/y", "files": 2, "bytes": 400_000_000},
        {"what": "Downloading model.safetensors", "done_bytes": 300_000_000, "bytes": 400_000_000},
    )

    def test_only_a_name_can_be_asked_for(self, qtbot: QtBot, manager: ModelManager) -> None:
        box = manager.box
        for text, ready in (("", False), ("owner", False), ("owner/name", True), ("owner/name/x.bin", False)):
            box.field.setText(text)
            assert box.start_button.isEnabled() is ready

    def test_from_the_name_to_the_list(self, qtbot: QtBot, manager: ModelManager, command: ModelsCommand) -> None:
        command.lay_out(add={"out": [*self.STEPS, row()], "hold": True}, list={"out": [STARTER, row("x/y")]})
        box = manager.box
        qtbot.keyClicks(box.field, "x/y")
        qtbot.keyClick(box.field, Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: box.bar.value() == 750, timeout=10_000)
        assert (box.title.text(), box.progress.text().split(" · ")[0]) == ("x/y", "300.0 MB of 400.0 MB")
        assert box.pause_button.isVisible() and not box.resume_button.isVisible() and not box.start_button.isEnabled()
        press(qtbot, box.pause_button)
        assert box.progress.text() == "300.0 MB of 400.0 MB · paused" and box.resume_button.isVisible()
        idle(qtbot, manager)
        command.lay_out(add={"out": [row("x/y")]})
        press(qtbot, box.resume_button)
        idle(qtbot, manager)
        qtbot.waitUntil(lambda: any(shown.model.name == "x/y" for shown in manager.rows), timeout=10_000)
        assert not box.bar.isVisible() and box.field.text() == ""

    def test_a_failure_is_one_sentence_with_a_way_on(
        self, qtbot: QtBot, manager: ModelManager, command: ModelsCommand
    ) -> None:
        command.lay_out(add={"status": 2, "error": "specular-cli: The hub cannot be reached (x); models on this"})
        manager._library.fetch(HubName("x/y"))
        idle(qtbot, manager)
        box = manager.box
        assert box.sentence.isVisible() and box.sentence.text() == "The hub cannot be reached (x); models on this"
        assert box.resume_button.isVisible() and box.cancel_button.isVisible()
        press(qtbot, box.cancel_button)
        idle(qtbot, manager)
        assert ["remove", "x/y", "--yes", "--json"] in command.calls and not box.sentence.isVisible()

    def test_an_unfinished_one_goes_on_from_its_row(
        self, qtbot: QtBot, manager: ModelManager, command: ModelsCommand
    ) -> None:
        command.lay_out(add={"out": list(self.STEPS), "hold": True})
        press(qtbot, named(manager, "c/d").load_button)
        qtbot.waitUntil(lambda: ["add", "c/d", "--json"] in command.calls, timeout=10_000)
        manager.open_list()
        qtbot.waitUntil(lambda: len(manager.rows) == 5, timeout=10_000)
        assert all(shown.model.name != "c/d" for shown in manager.rows)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [(480, 420), (760, 620)])
def test_it_fits_narrow_windows_and_both_themes(
    qapp: QApplication, manager: ModelManager, theme: str, size: tuple[int, int]
) -> None:
    apply(qapp, theme)
    manager.box.show_download(Download(HubName("x/y"), Phase.FAILED, "", 1, 9, None, "A sentence. " * 12))
    manager.resize(*size)
    QApplication.processEvents()
    assert manager.width() <= size[0] + 60
    for shown in manager.rows:
        assert shown.load_button.geometry().right() <= shown.width() <= manager.width()


def test_every_control_has_a_name(manager: ModelManager) -> None:
    for shown in manager.rows:
        name = "Starter model" if shown.model.origin == "starter" else shown.model.name
        assert shown.remove_button.accessibleName() == f"Remove {name}"
        assert shown.load_button.accessibleName().endswith(f": {name}")
    assert manager.box.field.accessibleName() and manager.box.bar.accessibleName()


class TestInTheWindow:
    def test_the_chip_s_menu_opens_it_and_load_loads(
        self, qtbot: QtBot, command: ModelsCommand, benches: BenchMaker, tmp_path: Path
    ) -> None:
        command.lists(STARTER, row("mine", path=str(tmp_path)))
        bench = benches()
        bench.ready()
        chip = bench.window.top_bar.chip
        chip.menu.aboutToShow.emit()
        next(action for action in chip.menu.actions() if action.text() == "Models…").trigger()
        manager = bench.window.model_management.manager
        qtbot.waitUntil(lambda: len(manager.rows) == 2, timeout=10_000)
        assert manager.isVisible() and not named(manager, "starter").load_button.isEnabled()
        press(qtbot, named(manager, "mine").load_button)
        qtbot.waitUntil(lambda: bench.engine.loads[-1][0] == str(tmp_path), timeout=5000)
        qtbot.waitUntil(lambda: not named(manager, "mine").load_button.isEnabled(), timeout=5000)
        assert named(manager, "starter").load_button.isEnabled()

    def test_closing_the_window_ends_a_download(
        self, qtbot: QtBot, command: ModelsCommand, benches: BenchMaker
    ) -> None:
        command.lay_out(add={"out": list(TestDownload.STEPS), "hold": True})
        bench = benches()
        management = bench.window.model_management
        management.show()
        management.library.fetch(HubName("x/y"))
        qtbot.waitUntil(lambda: management.library.download.done_bytes > 0, timeout=10_000)
        bench.window.close()
        assert not management.library._fetch.running and not management.manager.isVisible()

    def test_nothing_is_asked_before_it_is_opened(self, command: ModelsCommand, benches: BenchMaker) -> None:
        bench = benches()
        bench.ready()
        assert command.calls == [] and bench.window.model_management._manager is None
