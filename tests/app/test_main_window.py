"""The window as a user meets it: sending, stopping, switching, failing, closing; over a fake engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_engine import FakeEngine, paris, text_of
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QWidget
from window_bench import BenchMaker

from app.settings import AppSettings
from app.settings_store import SettingsStore
from app.states import HostState
from app.ui.reply_view import ReplyView
from engine.errors import ModelFileError, PromptTooLong
from engine.settings import Message

ANSWER = text_of(paris().events())
TOO_LONG = "The prompt has 9000 tokens, but the context holds 8192."


def test_a_question_streams_into_the_conversation(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.ask("What is the capital of France?")
    assert bench.said == ["What is the capital of France?", ANSWER]
    assert bench.window.composer.text() == ""
    assert bench.engine.requests[0].messages == (Message("user", "What is the capital of France?"),)
    assert bench.window.status.speed.isVisible() and bench.window.status.acceptance.text() == "88 % acceptance"
    assert bench.titles[0] == "What is the capital of France?"


def test_the_second_question_carries_the_first(benches: BenchMaker) -> None:
    bench = benches(settings=AppSettings(system_prompt="Be brief."))
    bench.ready()
    bench.ask("One?")
    bench.ask("Two?")
    assert [message.role for message in bench.engine.requests[1].messages] == ["system", "user", "assistant", "user"]
    assert bench.engine.requests[1].messages[2].content == ANSWER


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
    assert bench.said == [] and bench.titles == []
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
    bench.window.chat.open_chat(bench.listed(1))
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
    assert len(bench.titles) == 1


def test_regenerating_an_earlier_reply_is_a_branch_so_that_nothing_is_lost(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.ask("One?")
    bench.ask("Two?")
    reply = bench.view.turns()[1]
    assert isinstance(reply, ReplyView)
    reply.regenerate_requested.emit()
    bench.reach(HostState.READY)
    assert bench.said == ["One?", ANSWER]
    assert len(bench.titles) == 1
    again = bench.view.turns()[-1]
    assert isinstance(again, ReplyView) and again.pager.place() == "2/2"
    again.pager.earlier.click()
    assert bench.said == ["One?", ANSWER, "Two?", ANSWER]


def test_a_suggestion_is_sent(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.view.suggestion_chosen.emit("Why is the sky blue?")
    bench.reach(HostState.READY)
    assert bench.said[0] == "Why is the sky blue?"


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
