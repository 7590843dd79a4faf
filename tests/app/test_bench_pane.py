"""The benchmark in the window: when it can be run, what it shows, and how it is left; over a scripted engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from job_pane_rig import (
    WAYS_TO_STOP,
    JobEngine,
    check_a_message_is_kept,
    check_closing_the_window_ends_it,
    check_fault_is_told,
    check_settled,
    check_stopped,
    held,
    over,
    runs,
    started,
)
from window_bench import Bench, BenchMaker

from app.states import HostState
from engine.bench.questions.measured import Turn
from engine.bench.questions.small import BenchProgress, BenchReport
from engine.bench.questions.summary import summarise
from engine.errors import SpecularError


def turn(way: str, question: str, seconds: float, digest: str = "same") -> Turn:
    values: dict[str, Any] = {"prompt": 9, "reused": 0, "prefill_seconds": 0.1, "reason": "length limit", "tokens": 20}
    values |= {"cycles": 5, "drafting_cycles": 4, "drafted": 16, "tested": 10, "accepted": 9, "plain_seconds": 0.4}
    return Turn("gsm8k", question, "", 0, way, decode_seconds=seconds, digest=digest, **values)


FIRST = (turn("plain", "1", 2.0), turn("speculative", "1", 1.0))
BOTH = (*FIRST, turn("plain", "2", 2.0), turn("speculative", "2", 1.0))


@dataclass(slots=True)
class BenchmarkedEngine(JobEngine):
    """Answers two questions; `hold_job` waits for `go` or a stop after the first."""

    turns: tuple[Turn, ...] = BOTH

    def benchmark(self, *, progress: Callable[[BenchProgress], None], cancelled: Callable[[], bool]) -> BenchReport:
        progress(BenchProgress(0, 2, "", None, ()))
        progress(BenchProgress(1, 2, "gsm8k 2, plain", 7.4, summarise(FIRST)))
        self._middle()
        if cancelled():
            return BenchReport(summarise(FIRST), (), True)
        progress(BenchProgress(2, 2, "gsm8k 2, speculative", 0.0, summarise(self.turns)))
        return BenchReport(summarise(self.turns), (), False)


def press(bench: Bench) -> None:
    bench.window.jobs.bench()


def bench_of(benches: BenchMaker, **engine: Any) -> Bench:
    return benches(BenchmarkedEngine(**engine))


def test_the_table_grows_and_the_outcome_is_a_sentence(benches: BenchMaker) -> None:
    bench = held(bench_of(benches, hold_job=True), press)
    pane = bench.window.jobs.bench_pane
    bench.qtbot.waitUntil(lambda: pane.table.rows != [], timeout=5000)
    assert runs(pane) and bench.host.state is HostState.BENCHMARKING
    assert pane.table.rows == [["GSM8K", "10.0", "20.0", "2.00×", "90 %", "4.00", "1 / 1"]]
    assert pane.progress.text() == "Question 2 of 2: gsm8k 2, plain · about 7 s left"
    assert (pane.bar.value(), pane.bar.maximum()) == (1, 2)
    bench.engine.go.set()
    bench.reach(HostState.READY)
    assert pane.table.rows == [["GSM8K", "10.0", "20.0", "2.00× (2.00–2.00)", "90 %", "4.00", "2 / 2"]]
    assert pane.outcome.text() == "2.00× the speed of plain decoding, and the same text in all 2 answers."
    check_settled(pane)


def test_another_text_is_an_error_that_names_the_question(benches: BenchMaker) -> None:
    turns = (*FIRST, turn("plain", "2", 2.0), turn("speculative", "2", 1.0, "other"))
    bench = over(bench_of(benches, turns=turns), press)
    assert bench.window.jobs.bench_pane.outcome.text() == "Another text with speculation: gsm8k/2"


def test_all_sets_get_a_row_and_so_does_their_sum(benches: BenchMaker) -> None:
    other = tuple(replace(made, set="alpaca") for made in FIRST)
    bench = over(bench_of(benches, turns=(*BOTH, *other)), press)
    assert [row[0] for row in bench.window.jobs.bench_pane.table.rows] == ["GSM8K", "Alpaca", "All"]


@pytest.mark.parametrize("way", WAYS_TO_STOP)
def test_it_can_be_stopped(benches: BenchMaker, way: str) -> None:
    bench = held(bench_of(benches, hold_job=True), press)
    outcome = "Stopped. So far 2.00× the speed of plain decoding, and the same text in 1 answers."
    check_stopped(bench, bench.window.jobs.bench_pane, way, outcome)


def test_an_error_is_told(benches: BenchMaker) -> None:
    bench = started(bench_of(benches, job_error=SpecularError("This model has no tokenizer.")), press)
    bench.reach(HostState.READY)
    assert bench.window.jobs.bench_pane.outcome.text() == "This model has no tokenizer."


def test_a_fault_is_told(benches: BenchMaker) -> None:
    bench = over(bench_of(benches, job_error=ZeroDivisionError("division by zero")), press, HostState.FAILED)
    check_fault_is_told(bench.window.jobs.bench_pane)


def test_closing_the_window_ends_it(benches: BenchMaker) -> None:
    bench = held(bench_of(benches, hold_job=True), press)
    check_closing_the_window_ends_it(bench, bench.window.jobs.bench_pane)


def test_a_message_is_kept_meanwhile(benches: BenchMaker) -> None:
    check_a_message_is_kept(held(bench_of(benches, hold_job=True), press))


def test_without_a_model_nothing_begins(benches: BenchMaker) -> None:
    bench = bench_of(benches)
    press(bench)
    assert not bench.window.jobs.bench_pane.isVisible()
