"""Forecasts of budgets from headers, and budgets that are asked for from another thread."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from builders import tiny_llama
from engine.bench.known_shapes import SHAPES, tensor_bytes
from engine.errors import BadSetting, ReloadNeeded, SpecularError
from engine.memory.peak import HIDDEN, PeakMeter
from engine.model.runner import Runner
from engine.offload.basis import Basis
from engine.offload.forecast import Forecaster, basis_of_headers
from engine.offload.rates import default_rates
from engine.probes.reading import CardReading, Measure, nothing_known
from engine.records import CycleEvent, Event, LoadProgress
from engine_rig import loaded_engine, no_end_tokens, random_prompts, reply, request, torch_runner

PROMPT = random_prompts(1, 290, seed=51)[0]
CONTEXT = 256
GB = 10**9


class Card:
    """12 GB, of which others hold 2 and this program 5."""

    own = Measure(5.0 * GB)
    lost = False

    def read(self, card: str, *, bus: bool) -> CardReading:
        if self.lost:
            return nothing_known(card, "The driver has lost the card.", lost=True)
        return replace(
            nothing_known(card, "", lost=False), total=Measure(12.0 * GB), used=Measure(7.0 * GB), own=self.own
        )

    def rest(self) -> None:
        pass


SEVEN = SHAPES["llama2-7b"].config
ON_CARD = Basis(SEVEN, tensor_bytes(SEVEN), "cuda", 4096, (4,), "GPU-1", held=4 * GB)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return no_end_tokens(tiny_llama(tmp_path / "m", layers=4, std=0.25, dtype="float16"))


def test_a_card_as_it_stands_counts_what_the_model_holds_as_its_own() -> None:
    card = Card()
    forecaster = Forecaster(card)
    memory = forecaster.memory(ON_CARD)
    assert (memory.total.value, memory.free.value) == (12 * GB, 10 * GB)
    card.own = Measure(None, "The driver does not tell.")
    assert forecaster.memory(ON_CARD).free.value == 9 * GB, "what the plan says it holds"
    outlook = forecaster.outlook(ON_CARD, 8 * GB)
    assert outlook.verdict == "fits streamed" and outlook.on_card and not outlook.measured_rates
    assert outlook.peak is not None and outlook.peak <= 8 * GB and outlook.streamed_parts > 10
    assert outlook.plain is not None and outlook.speculative is not None and outlook.speculative > 3 * outlook.plain
    assert {fix.remedy for fix in outlook.helps} <= {"context", "budget", "no draft", "other programs"}
    everything = forecaster.outlook(ON_CARD, None)
    assert everything.asked is None and everything.limit == 9 * GB


def test_the_minimum_that_is_named_fits() -> None:
    forecaster = Forecaster(Card())
    refused = forecaster.outlook(ON_CARD, GB)
    assert refused.verdict == "does not fit" and refused.peak is None and refused.plain is None
    assert forecaster.outlook(ON_CARD, refused.least).verdict == "fits streamed"
    budget = next(fix for fix in refused.helps if fix.remedy == "budget")
    assert budget.amount >= refused.least and forecaster.outlook(ON_CARD, budget.amount).verdict == budget.verdict


def test_more_memory_is_never_slower_and_it_takes_a_millisecond_or_few() -> None:
    forecaster = Forecaster(Card())
    least = forecaster.outlook(ON_CARD, GB).least
    budgets = [least + step * 400_000_000 for step in range(12)]
    began = time.thread_time()
    made = [forecaster.outlook(ON_CARD, budget) for budget in budgets]
    assert time.thread_time() - began < 0.05 * len(budgets)
    speeds = [max(outlook.plain or 0.0, outlook.speculative or 0.0) for outlook in made]
    assert speeds == sorted(speeds) and speeds[-1] > speeds[0]


def test_a_card_that_cannot_be_asked_needs_a_budget() -> None:
    card = Card()
    card.lost = True
    forecaster = Forecaster(card)
    with pytest.raises(BadSetting, match="cannot be told: The driver has lost the card"):
        forecaster.outlook(ON_CARD, None)
    assert forecaster.outlook(ON_CARD, 8 * GB).verdict == "fits streamed"


def test_a_model_is_forecast_from_its_headers_and_once_loaded_by_what_it_is(folder: Path) -> None:
    forecaster = Forecaster()
    forecaster._rates["cpu"] = default_rates("cpu")  # nothing is measured here
    basis = basis_of_headers(str(folder), CONTEXT)
    assert basis.held == 0 and basis.context == CONTEXT
    if basis.device == "cpu":
        unloaded = forecaster.outlook(replace(basis, widths=(4,)), 100 * 10**6)
        with loaded_engine(folder, context=CONTEXT) as engine:
            loaded = engine.basis()
            assert loaded is not None and loaded.held > 0 and loaded.widths == (4,)
            made = forecaster.outlook(loaded, 100 * 10**6)
            plan = engine.offload()
            assert plan is not None and made.verdict == "fits"
            assert made.resident == plan.plan.always + sum(part.nbytes for part in plan.plan.parts)
            assert (made.least, made.peak) == (unloaded.least, unloaded.peak)
            engine.use_budget(made.least)
            plan = engine.offload()
            assert plan is not None and plan.plan.peak <= made.least
    with pytest.raises(BadSetting):
        basis_of_headers(str(folder), 10**6)


# Asked for from another thread


def test_a_budget_asked_for_elsewhere_is_taken_up_between_cycles_and_told(folder: Path) -> None:
    answers: list[tuple[SpecularError | None, int]] = []
    steps: list[LoadProgress] = []
    with loaded_engine(folder, context=CONTEXT) as engine:
        expected = reply(engine, request(PROMPT, 40)).ids
        basis = engine.basis()
        assert basis is not None
        forecaster = Forecaster()
        forecaster._rates["cpu"] = default_rates("cpu")
        least = forecaster.outlook(basis, None).least

        def ask(budget: int | None) -> None:
            def done(error: SpecularError | None) -> None:
                answers.append((error, threading.get_ident()))

            asking = threading.Thread(target=lambda: engine.ask_budget(budget, steps.append, done))
            asking.start()
            asking.join()

        def change(event: Event) -> None:
            if isinstance(event, CycleEvent) and event.record.index in (2, 5):
                ask(least if event.record.index == 2 else 1000)

        made = reply(engine, request(PROMPT, 40), change)
        assert made.ids == expected
        here = threading.get_ident()
        assert [(type(error), thread) for error, thread in answers] == [(type(None), here), (BadSetting, here)]
        assert made.records[2].streamed_bytes == 0 < made.records[3].streamed_bytes == made.records[-1].streamed_bytes
        ask(None)
        assert len(answers) == 2, "without a reply it waits for the owner"
        engine.settle_budget()
        assert answers[2] == (None, here) and any("layer 2's MLP" in step.what for step in steps)
        offload = engine.offload()
        assert offload is not None and not offload.plan.streamed
        engine.settle_budget()
        assert len(answers) == 3


def test_only_the_newest_request_counts_and_none_outlives_the_model(folder: Path) -> None:
    answers: list[str] = []
    with loaded_engine(folder, context=CONTEXT) as engine:
        for name in ("first", "second"):
            engine.ask_budget(None, done=lambda _, name=name: answers.append(name))
        engine.settle_budget()
        assert answers == ["second"]
        engine.ask_budget(None, done=lambda _: answers.append("third"))
        engine.unload()
        engine.settle_budget()
        assert answers == ["second"] and engine.basis() is None
        assert engine.peak() == Measure(None, "No model is loaded.")


def test_a_model_that_cannot_move_says_that_a_load_helps(folder: Path) -> None:
    answers: list[SpecularError | None] = []
    with loaded_engine(folder, context=CONTEXT) as engine:
        assert engine._loaded is not None
        own: Runner = engine._loaded.runner
        engine._loaded.runner = torch_runner(folder, capacity=CONTEXT)
        try:
            engine.ask_budget(10**9, done=answers.append)
            engine.settle_budget()
        finally:
            engine._loaded.runner.close()
            engine._loaded.runner = own
    assert [type(error) for error in answers] == [ReloadNeeded]


# The peak


def test_the_peak_of_ram_is_what_a_load_has_added(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter([900.0, 900.0, 1700.0, None])
    monkeypatch.setattr("engine.memory.peak._peak_of_ram", lambda: next(peaks))
    meter = PeakMeter()
    meter._resident = 600.0
    assert meter.read() == Measure(None, HIDDEN)
    assert meter.read() == Measure(1100.0)
    assert meter.read().value is None


def test_the_peak_of_a_card_is_the_most_that_was_read() -> None:
    card = Card()
    meter = PeakMeter(card)
    meter.of_card("GPU-1")
    assert meter.read() == Measure(5.0 * GB)
    card.own = Measure(3.0 * GB)
    assert meter.read() == Measure(5.0 * GB)
    card.own = Measure(None, "The driver does not tell.")
    assert meter.read() == card.own


def test_a_loaded_model_has_a_peak(folder: Path) -> None:
    with loaded_engine(folder, context=CONTEXT) as engine:
        peak = engine.peak()
        assert (peak.value is None) == bool(peak.reason)
