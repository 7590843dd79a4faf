"""The window as a user meets it: sending, stopping, switching, failing, closing; over a fake engine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_engine import FakeEngine, paris, text_of
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget
from pytestqt.qtbot import QtBot
from window_bench import Bench, BenchMaker, make_bench

from app.settings import AppSettings
from app.settings_store import SettingsStore
from app.states import HostState
from app.ui.reply_view import ReplyView
from engine.errors import ModelFileError, PromptTooLong
from engine.settings import Message

ANSWER = text_of(paris().events())
TOO_LONG = "The prompt has 9000 tokens, but the context holds 8192."


@pytest.fixture
def benches(qtbot: QtBot, tmp_path: Path) -> Iterator[BenchMaker]:
    made: list[Bench] = []

    def make(engine: FakeEngine | None = None, **options: object) -> Bench:
        made.append(make_bench(qtbot, tmp_path / "config", engine, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for bench in made:
        bench.engine.go.set()
        bench.window.close()
        bench.window.deleteLater()


def test_a_question_streams_into_the_conversation(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.ask("What is the capital of France?")
    assert bench.said == ["What is the capital of France?", ANSWER]
    assert bench.window.composer.text() == ""
    assert bench.engine.requests[0].messages == (Message("user", "What is the capital of France?"),)
    assert bench.window.status.speed.isVisible() and bench.window.status.acceptance.text() == "88 % acceptance"
    assert bench.window.side_bar.list.item(0).text() == "What is the capital of France?"


def test_the_second_question_carries_the_first(benches: BenchMaker) -> None:
    bench = benches(settings=AppSettings(system_prompt="Be brief."))
    bench.ready()
    bench.ask("One?")
    bench.ask("Two?")
    assert [message.role for message in bench.engine.requests[1].messages] == ["system", "user", "assistant", "user"]
    assert bench.engine.requests[1].messages[2].content == ANSWER


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


def test_escape_stops_and_the_half_reply_is_the_assistants_turn(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(hold_reply=True))
    bench.ready()
    bench.type_and_send("One?")
    bench.held()
    bench.window.escape_action.trigger()
    assert bench.host.state is HostState.STOPPING
    bench.reach(HostState.READY)
    assert bench.said == ["One?", "The capital of France is"]
    bench.engine.hold_reply = False
    bench.ask("Go on.")
    assert bench.engine.requests[1].messages[1] == Message("assistant", "The capital of France is")


def test_enter_during_a_reply_keeps_the_text(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(hold_reply=True))
    bench.ready()
    bench.type_and_send("One?")
    bench.held()
    bench.type_and_send("Two?")
    assert bench.window.composer.text() == "Two?" and len(bench.engine.requests) == 1
    bench.engine.go.set()
    bench.reach(HostState.READY)
    assert bench.window.composer.text() == "Two?"


def test_a_message_sent_during_a_load_goes_off_when_the_model_is_there(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(hold_load=True))
    bench.window.load_starter()
    bench.held()
    bench.type_and_send("Early?")
    assert bench.window.composer.text() == "Early?" and bench.chat_waits
    assert bench.window.status.state_text == "Loading, then your message is sent"
    bench.engine.go.set()
    bench.qtbot.waitUntil(lambda: bench.said == ["Early?", ANSWER], timeout=5000)
    assert bench.window.composer.text() == ""


def test_escape_takes_back_a_waiting_message(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(hold_load=True))
    bench.window.load_starter()
    bench.held()
    bench.type_and_send("Early?")
    bench.window.escape_action.trigger()
    assert not bench.chat_waits and bench.window.composer.text() == "Early?"
    bench.engine.go.set()
    bench.reach(HostState.READY)
    assert bench.said == [] and bench.window.composer.text() == "Early?"


def test_without_a_model_the_text_is_kept_and_the_way_out_offered(benches: BenchMaker) -> None:
    bench = benches()
    bench.type_and_send("Anyone?")
    assert bench.banner == "No model is loaded. Your text is kept."
    assert bench.window.composer.text() == "Anyone?"
    bench.qtbot.mouseClick(bench.view.banner.action_button, Qt.MouseButton.LeftButton)
    bench.reach(HostState.READY)
    assert bench.banner == ""


def test_a_prompt_that_is_too_long_comes_back_with_the_reason(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(refusal=PromptTooLong(TOO_LONG)))
    bench.ready()
    bench.type_and_send("Very long")
    bench.reach(HostState.READY)
    bench.qtbot.waitUntil(lambda: bench.banner == TOO_LONG, timeout=5000)
    assert bench.window.composer.text() == "Very long"
    assert bench.said == [] and bench.window.side_bar.list.count() == 0
    bench.engine.refusal = None
    bench.window.composer.clear_text()
    bench.ask("Short")
    assert bench.banner == "" and bench.said == ["Short", ANSWER]


def test_an_unexpected_fault_keeps_the_half_reply_and_shows_details(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(reply_error=ZeroDivisionError("division by zero")))
    bench.ready()
    bench.type_and_send("One?")
    bench.reach(HostState.FAILED)
    assert bench.banner == "Unexpected fault in the engine: division by zero."
    assert bench.view.banner.action_button.text() == "Details"
    assert bench.said == ["One?", "The capital of France is"]
    assert bench.window.top_bar.chip.text() == "Choose a model"
    bench.engine.reply_error = None
    bench.ready()
    bench.ask("Two?")
    assert bench.said[-1] == ANSWER


def test_a_reply_goes_on_in_its_own_chat_while_another_is_open(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(hold_reply=True))
    bench.ready()
    bench.type_and_send("One?")
    bench.held()
    bench.window.new_action.trigger()
    assert bench.said == []
    bench.engine.go.set()
    bench.reach(HostState.READY)
    assert bench.said == []
    bench.engine.hold_reply = False
    bench.ask("Two?")
    assert bench.said == ["Two?", ANSWER]
    assert bench.engine.requests[1].messages == (Message("user", "Two?"),)
    bench.window.chat.open_chat(bench.window.side_bar.list.item(1).data(Qt.ItemDataRole.UserRole))
    assert bench.said == ["One?", ANSWER]


def test_regenerating_the_last_reply_replaces_it(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.ask("One?")
    reply = bench.view.turns()[-1]
    assert isinstance(reply, ReplyView)
    reply.regenerate_requested.emit()
    assert bench.host.state is HostState.GENERATING
    bench.reach(HostState.READY)
    assert bench.said == ["One?", ANSWER]
    assert bench.engine.requests[1].messages == (Message("user", "One?"),)
    assert bench.window.side_bar.list.count() == 1


def test_regenerating_an_earlier_reply_opens_a_copy_so_that_nothing_is_lost(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.ask("One?")
    bench.ask("Two?")
    reply = bench.view.turns()[1]
    assert isinstance(reply, ReplyView)
    reply.regenerate_requested.emit()
    bench.reach(HostState.READY)
    assert bench.said == ["One?", ANSWER]
    assert [len(chat.turns) for chat in bench.window.chat.chats.chats] == [1, 2]


def test_a_suggestion_is_sent(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.view.suggestion_chosen.emit("Why is the sky blue?")
    bench.reach(HostState.READY)
    assert bench.said[0] == "Why is the sky blue?"


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


@pytest.mark.parametrize("moment", ["no model", "loading", "ready", "generating", "stopping", "failed"])
def test_the_window_closes_cleanly_at_every_moment(benches: BenchMaker, moment: str) -> None:
    engine = FakeEngine(hold_load=moment == "loading", hold_reply=moment in ("generating", "stopping"))
    engine.load_error = ModelFileError("bad file.") if moment == "failed" else None
    bench = benches(engine)
    if moment != "no model":
        bench.window.load_starter()
    if moment == "loading":
        bench.held()
    elif moment != "no model":
        bench.reach(HostState.FAILED if moment == "failed" else HostState.READY)
    if moment in ("generating", "stopping"):
        bench.type_and_send("One?")
        bench.held()
    if moment == "stopping":
        engine.deaf = True
        bench.window.escape_action.trigger()
        engine.go.set()
    assert bench.host.state.value == moment
    assert bench.window.close()
    assert bench.host.state is HostState.CLOSED
    assert engine.closed.is_set() is (moment != "no model")


def test_settings_open_and_close_by_key_and_count_for_the_next_reply(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.window.settings_action.trigger()
    assert bench.window.in_settings
    bench.window.settings_page.pane.row("temperature").changed.emit("temperature", 0.7)
    bench.window.escape_action.trigger()
    assert not bench.window.in_settings
    assert bench.window.composer.sampling_chip.text() == "Temperature 0.7"
    bench.ask("One?")
    assert bench.engine.requests[0].sampling.temperature == 0.7


def test_the_chips_of_the_composer_lead_to_their_settings(benches: BenchMaker) -> None:
    bench = benches()
    bench.window.composer.sampling_clicked.emit()
    assert bench.window.in_settings
    bench.qtbot.waitUntil(lambda: bench.window.settings_page.side.list.currentRow() == 2, timeout=3000)


def test_a_new_context_length_loads_the_model_again(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.settings.set("context", 2048)
    bench.reach(HostState.READY)
    assert bench.engine.loads == [("starter", None), ("starter", 2048)]


def test_the_theme_button_switches_and_is_kept(benches: BenchMaker, tmp_path: Path) -> None:
    bench = benches(settings=AppSettings(theme="light"))
    bench.settings.set("theme", "dark")
    bench.qtbot.mouseClick(bench.window.top_bar.theme_button, Qt.MouseButton.LeftButton)
    assert bench.settings.current.theme == "light"
    bench.window.close()
    assert SettingsStore(tmp_path / "config").load().settings.theme == "light"


def test_the_size_of_the_window_is_kept(benches: BenchMaker, tmp_path: Path) -> None:
    first = benches()
    first.window.resize(720, 560)
    first.window.close()
    kept = SettingsStore(tmp_path / "config").load().settings
    assert kept.window_geometry
    assert benches(settings=kept).restored == (720, 560)


@pytest.mark.parametrize(("width", "visible"), [(1440, True), (1000, True), (999, False), (700, False)])
def test_a_narrow_window_hides_the_chats(benches: BenchMaker, width: int, visible: bool) -> None:
    bench = benches()
    bench.window.resize(width, 700)
    assert bench.window.side_bar.isVisible() is visible
    bench.window.sidebar_action.trigger()
    assert bench.window.side_bar.isVisible() is not visible
    assert bench.settings.current.sidebar_visible is (not visible if width >= 1000 else True)


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
    assert list(actions) == ["Starter model", "old", "older.gguf", "Open folder…", "Open GGUF file…"]
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


@pytest.mark.parametrize(
    ("settings", "sampling", "speculation"),
    [
        (AppSettings(), "Greedy", "Speculation auto"),
        (AppSettings(temperature=0.7, gamma_fixed=True, gamma=5), "Temperature 0.7", "Speculation γ 5"),
        (AppSettings(temperature=0.7, top_k=1, speculation=False), "Greedy", "Speculation off"),
    ],
)
def test_the_chips_say_what_is_in_force(
    benches: BenchMaker, settings: AppSettings, sampling: str, speculation: str
) -> None:
    composer = benches(settings=settings).window.composer
    assert (composer.sampling_chip.text(), composer.speculation_chip.text()) == (sampling, speculation)


def test_other_dropped_files_are_not_taken_for_models(benches: BenchMaker, tmp_path: Path) -> None:
    bench = benches()
    other = tmp_path / "notes.txt"
    other.write_text("x")
    assert not drop(bench.window, other)
    assert bench.engine.loads == []


def test_notes_of_the_settings_are_told(benches: BenchMaker) -> None:
    bench = benches(notes=("Setting top_k is bad. The default is used.",))
    assert bench.banner == "Setting top_k is bad. The default is used."


def nameless(window: QWidget) -> list[str]:
    """The kinds of all shown buttons that a screen reader could not name."""
    shown = [button for button in window.findChildren(QAbstractButton) if button.isVisible()]
    assert len(shown) >= 8
    return [type(button).__name__ for button in shown if not (button.accessibleName() or button.text())]


def test_every_control_has_an_accessible_name(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.ask("One?")
    assert nameless(bench.window) == []
    bench.window.show_settings()
    assert nameless(bench.window) == []


def test_tab_goes_from_the_list_to_the_composer(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.ask("One?")
    order: list[QWidget] = []
    widget: QWidget | None = bench.window.side_bar.new_button
    for _ in range(200):
        widget = widget.nextInFocusChain() if widget is not None else None
        if widget is None or widget is bench.window.side_bar.new_button:
            break
        order.append(widget)
    places = [
        order.index(part)
        for part in (
            bench.window.side_bar.list,
            bench.window.top_bar.chip.button,
            bench.window.composer.input,
            bench.window.composer.button,
        )
    ]
    assert places == sorted(places)
