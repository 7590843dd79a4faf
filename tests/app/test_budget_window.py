"""A budget chosen in the window moves the loaded model, also during a reply, and goes back where that fails."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from fake_engine import FakeEngine
from test_budget_editor import outlook
from window_bench import Bench, BenchMaker

from app.settings import AppSettings
from app.states import HostState
from app.ui.budget_editor import BudgetEditor
from engine.errors import BadSetting, ReloadNeeded
from engine.offload.basis import Basis
from engine.offload.outlook import Outlook
from plan_builder import offload

GB = 10**9


class Forecaster:
    """Answers with the budget it was asked about."""

    def outlook(self, basis: Basis, budget: int | None) -> Outlook:
        return outlook(asked=budget, limit=budget or 11 * GB)


def settings_of(bench: Bench) -> BudgetEditor:
    """The editor on the shown settings page, with forecasts that need no model."""
    outlooks = bench.window.budget.outlooks
    outlooks._make = Forecaster
    outlooks._headers = lambda model, context: basis()
    bench.settings.set("expert", True)
    bench.window.show_settings()
    return bench.window.settings_page.pane.budget


def basis() -> Basis:
    return Basis(config=None, sizes={}, device="cpu", context=512, widths=())  # type: ignore[arg-type]


def choose(editor: BudgetEditor, budget_gb: float) -> None:
    editor._move(budget_gb)
    editor._choose()


def moved(bench: Bench) -> None:
    bench.qtbot.waitUntil(lambda: not bench.host.draining, timeout=10_000)


def test_a_budget_moves_the_model_without_loading_it_again(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    editor = settings_of(bench)
    choose(editor, 8.0)
    moved(bench)
    assert bench.engine.budgets == [8 * GB] and len(bench.engine.loads) == 1
    assert bench.settings.current.budget_gb == 8.0 and not editor.note.isVisible()
    choose(editor, 0.0)
    moved(bench)
    assert bench.engine.budgets == [8 * GB, None]


def test_it_moves_while_a_reply_runs_and_tells_how_far(benches: BenchMaker) -> None:
    engine = FakeEngine(hold_reply=True, hold_move=True)
    bench = benches(engine)
    bench.ready()
    bench.type_and_send("One?")
    bench.held()
    editor = settings_of(bench)
    engine.held.clear()
    choose(editor, 6.0)
    engine.hold_reply = False
    engine.go.set()  # the reply goes on to its next cycle, before which the move begins
    bench.qtbot.waitUntil(lambda: bench.settings.current.budget_gb == 6.0)
    bench.reach(HostState.READY)
    moved(bench)
    assert engine.budgets == [6 * GB] and len(engine.loads) == 1
    last = bench.window.chat.last_finished
    assert last is not None and last.reply is not None and "Paris" in last.reply.text
    assert not editor.progress.isVisible()


def test_progress_is_shown_part_by_part(benches: BenchMaker) -> None:
    engine = FakeEngine(hold_move=True)
    bench = benches(engine)
    bench.ready()
    editor = settings_of(bench)
    choose(editor, 6.0)
    bench.held()
    bench.qtbot.waitUntil(editor.progress.isVisible, timeout=5000)
    assert editor.progress_words.text() == "Bringing in layer 1's MLP, 1/2"
    engine.go.set()
    moved(bench)
    assert not editor.progress.isVisible()


def test_a_move_that_fails_goes_back_and_says_so(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(move_error=BadSetting("The budget is 1.00 GB, but at least 5.00 GB are needed.")))
    bench.ready()
    editor = settings_of(bench)
    choose(editor, 1.0)
    moved(bench)
    assert bench.settings.current.budget_gb == 0.0 and editor.field.text() == "What is free"
    assert editor.note.text().startswith("The budget has stayed as it was: The budget is 1.00 GB")
    assert bench.engine.budgets == [1 * GB], "going back moves nothing"


def test_a_move_that_fails_is_told_in_the_chat_where_the_page_is_not_shown(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(move_error=BadSetting("The budget is 1.00 GB, but at least 5.00 GB are needed.")))
    bench.ready()
    bench.settings.set("budget_gb", 1.0)
    moved(bench)
    assert "at least 5.00 GB" in bench.banner and bench.settings.current.budget_gb == 0.0


def test_parts_that_gave_way_to_other_programs_are_told_of_once(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(offloaded=offload(30, streamed=(28, 29))))
    bench.ready()
    said: list[str] = []
    bench.window.budget.told.connect(lambda sentence, reload: said.append(sentence))
    bench.ask("Hello")
    assert not said
    assert bench.engine.offloaded is not None
    words = "Other programs need memory: 1.20 GB of the model are brought in for every pass now."
    bench.engine.offloaded = replace(bench.engine.offloaded, yielded=words)
    bench.ask("And now?")
    assert words in bench.banner
    bench.ask("And again?")
    assert said == [words]


def test_where_only_a_load_helps_it_is_offered(benches: BenchMaker) -> None:
    engine = FakeEngine(move_error=ReloadNeeded("Here the budget can only change by loading the model again."))
    bench = benches(engine)
    bench.ready()
    editor = settings_of(bench)
    choose(editor, 7.0)
    moved(bench)
    assert bench.settings.current.budget_gb == 7.0 and editor.again.isVisible()
    engine.move_error = None
    editor.again.click()
    bench.qtbot.waitUntil(lambda: len(engine.loads) == 2, timeout=5000)
    bench.reach(HostState.READY)
    assert engine.budget_bytes == 7 * GB and not editor.note.isVisible()
    assert len(engine.budgets) == 1, "the load has it already"


def test_from_the_chat_a_load_is_offered_too(benches: BenchMaker) -> None:
    engine = FakeEngine(move_error=ReloadNeeded("Here the budget can only change by loading the model again."))
    bench = benches(engine)
    bench.ready()
    bench.settings.set("budget_gb", 7.0)
    moved(bench)
    assert bench.banner == "Here the budget can only change by loading the model again."
    bench.window.notices._on_action()
    bench.qtbot.waitUntil(lambda: len(engine.loads) == 2, timeout=5000)
    bench.reach(HostState.READY)
    assert engine.budget_bytes == 7 * GB and bench.banner == ""


def test_a_budget_chosen_during_a_load_counts_after_it(benches: BenchMaker) -> None:
    engine = FakeEngine(hold_load=True)
    bench = benches(engine)
    bench.window.load_starter()
    bench.held()
    bench.settings.set("budget_gb", 4.0)
    assert engine.budgets == []
    engine.go.set()
    bench.reach(HostState.READY)
    moved(bench)
    assert engine.budgets == [4 * GB] and len(engine.loads) == 1


@pytest.mark.parametrize("during", [HostState.GENERATING, HostState.READY])
def test_the_window_closes_in_the_middle_of_a_move(benches: BenchMaker, during: HostState) -> None:
    engine = FakeEngine(hold_move=True, hold_reply=during is HostState.GENERATING)
    bench = benches(engine)
    bench.ready()
    if during is HostState.GENERATING:
        bench.type_and_send("One?")
    bench.settings.set("budget_gb", 4.0)
    bench.held()
    closing = threading.Timer(0.2, engine.go.set)  # the move's next part is there
    closing.start()
    bench.window.close()
    closing.join()
    assert engine.closed.is_set()


def test_the_slider_is_answered_while_it_moves(benches: BenchMaker) -> None:
    engine = FakeEngine(based=basis())
    bench = benches(engine, settings=AppSettings(expert=True))
    bench.ready()
    editor = settings_of(bench)
    bench.qtbot.waitUntil(lambda: editor.verdict.isVisible(), timeout=10_000)
    editor.slider.setSliderDown(True)
    with bench.qtbot.waitSignal(bench.window.budget.outlooks.answered, timeout=5000) as answered:
        editor.slider.setValue(50)
    assert answered.args is not None
    assert answered.args[0].outlook.limit == int(editor.scale.budget_at(50) * GB)
    assert editor.bar.budget_at() is not None and editor.peak.isHidden()
    assert engine.budgets == [], "nothing moves before the slider is let go"
