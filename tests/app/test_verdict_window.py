"""The verdict in the window: the budget, and what the public bug reports C25 and C49 ask of what is shown."""

from __future__ import annotations

import time
from dataclasses import replace

from fake_engine import FakeEngine, kv_memory, paris, text_of
from PySide6.QtCore import Qt
from window_bench import Bench, BenchMaker

from app.monitor import Sample
from app.states import HostState
from app.ui.reply_view import ReplyView
from app.ui.verdict_card import VerdictCard
from engine.probes.reading import HostReading, Measure
from engine.records import CycleEvent
from plan_builder import MIB, offload


def reading(free: float) -> Sample:
    """RAM of which `free` MiB are left, with a model of which two layers are streamed."""
    nothing = Measure(0.0)
    host = HostReading(Measure(4096.0 * MIB), Measure(free * MIB), nothing, nothing, nothing, nothing)
    return Sample(1.0, host, None, kv_memory(), offload(4, streamed=(2, 3)))


def verdict_of(bench: Bench) -> VerdictCard:
    bench.qtbot.waitUntil(lambda: bench.window.cockpit.cockpit is not None, timeout=5000)
    cockpit = bench.window.cockpit.cockpit
    assert cockpit is not None
    bench.qtbot.waitUntil(lambda: not cockpit.updating, timeout=5000)
    cockpit.settle()
    return cockpit.verdict


def waiting_engine() -> FakeEngine:
    """Cycles that wait for transfers for half of their time."""
    engine = FakeEngine()
    engine.recording.cycles.clear()
    for _ in range(12):
        engine.recording.cycle(accepted=" a b c", bonus=" d")
    cycles = engine.recording.cycles
    cycles[:] = [CycleEvent(replace(e.record, wait_seconds=0.05), e.pieces, e.ghosts) for e in cycles]
    return engine


def test_streaming_within_a_budget_leads_to_one_that_memory_allows(benches: BenchMaker) -> None:
    bench = benches(waiting_engine())
    bench.ready()
    bench.ask("One?")
    card = verdict_of(bench)
    assert "waits for streamed parts" in card.sentence.text() and not card.button.isVisible()
    verdicts = bench.window.cockpit.verdicts
    assert verdicts is not None
    verdicts.show_sample(reading(free=500))
    streaming = verdicts.situation().streaming
    assert streaming is not None
    assert (streaming.budget, streaming.parts) == (900 * MIB, (10 * MIB, 20 * MIB, 10 * MIB, 20 * MIB))
    card = verdict_of(bench)
    assert "1 GB keep 3 of 4" in card.sentence.text()
    assert card.button.text() == "Raise the budget to 1 GB"
    card.button.click()
    assert bench.settings.current.budget_gb == 1.0
    bench.reach(HostState.READY)
    assert bench.engine.budgets == [10**9] and len(bench.engine.loads) == 1, "the model is moved into it"


def test_without_streaming_nothing_is_known_of_a_budget(benches: BenchMaker) -> None:
    bench = benches(waiting_engine())
    bench.ready()
    bench.ask("One?")
    verdict_of(bench)
    verdicts = bench.window.cockpit.verdicts
    assert verdicts is not None
    verdicts.show_sample(reading(free=3000))
    verdicts.show_sample(replace(reading(free=3000), offload=None))
    assert verdicts.situation().streaming is None


def test_c25_where_speculation_loses_the_window_shows_it_and_the_way_out(benches: BenchMaker) -> None:
    engine = FakeEngine()
    engine.recording.draft_seconds = 0.02
    engine.recording.cycles.clear()
    for _ in range(20):
        engine.recording.cycle(accepted=" a", ghosts=" b c", correction=" d")
    bench = benches(engine)
    bench.ready()
    bench.ask("One?")
    view = bench.view.turns()[-1]
    assert isinstance(view, ReplyView)
    s = view.statistics()
    assert s.speed_up is not None and 0.9 < s.speed_up < 1 and s.acceptance == 0.5
    assert bench.window.status.speed_up.text().startswith("0.9× plain, slower than plain")
    assert bench.window.status.acceptance.text() == "50 % acceptance"
    card = verdict_of(bench)
    assert card.sentence.text().startswith("Slower than plain (0.9×): 50 % of drafts are right")
    assert card.button.text() == "Turn speculation off"


def test_c49_stop_ends_the_work_keeps_what_was_shown_and_the_next_message_goes_off(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(hold_reply=True))
    bench.ready()
    bench.type_and_send("One?")
    bench.held()
    view = bench.view.turns()[-1]
    assert isinstance(view, ReplyView)
    bench.qtbot.waitUntil(lambda: len(view.text.cycles) == 2)
    shown = view.source_text()
    began = time.monotonic()
    bench.qtbot.keyClick(bench.window, Qt.Key.Key_Escape)
    bench.reach(HostState.READY)
    assert time.monotonic() - began < 1.0
    assert view.source_text() == shown == text_of(paris().cycles[:2])
    bench.engine.hold_reply = False
    bench.ask("Two?")
    assert len(bench.engine.requests) == 2
    assert [message.content for message in bench.engine.requests[1].messages][1] == shown


def test_c49_stop_also_ends_what_a_card_has_asked_for(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(hold_look=True))
    bench.ready()
    bench.ask("One?")
    view = bench.view.turns()[-1]
    assert isinstance(view, ReplyView)
    view.pointer.hovered.emit(view.text.spans.span(3))
    bench.held()
    began = time.monotonic()
    bench.ask("Two?")
    assert time.monotonic() - began < 1.0
    assert len(bench.engine.requests) == 2
