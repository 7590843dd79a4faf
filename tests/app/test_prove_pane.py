"""The proof in the window: when it can be run, what it shows, and how it is left; over a scripted engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from fake_engine import FakeEngine, model_info
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
from PySide6.QtCore import Qt
from PySide6.QtGui import QIcon
from window_bench import Bench, BenchMaker

from app.states import HostState
from app.ui.prove_pane import TOKENS
from engine.errors import SpecularError
from engine.proof import Difference, PromptProof, ProofProgress, ProofReport

NAMES = ("chat", "code", "maths")
FOUND = Difference("code", 1, 16, 345, 99, 0.0021, 3, 2, 4)


@dataclass(slots=True)
class ProvingEngine(JobEngine):
    """Proves three prompts of a third of the tokens each; `hold_job` waits for `go` or a stop after the first."""

    difference: Difference | None = None
    proofs: list[int] = field(default_factory=list)

    def prove(
        self, tokens: int, *, progress: Callable[[ProofProgress], None], cancelled: Callable[[], bool]
    ) -> ProofReport:
        self.proofs.append(tokens)
        self._halt.clear()
        results: list[PromptProof] = []
        stopped = False
        share = tokens // len(NAMES)
        for number, name in enumerate(NAMES):
            progress(ProofProgress(name, 2 * number * share + 1, 2 * tokens))
            if number == 1:
                self._middle()
            if stopped := cancelled():
                break
            found = self.difference if self.difference and self.difference.prompt == name else None
            results.append(PromptProof(name, share, 2, 40, (1, 5), 90, 80, 1.0, 0.8, found))
            progress(ProofProgress(name, 2 * (number + 1) * share, 2 * tokens, results[-1]))
        info = self.info or model_info()
        return ProofReport(info.name, info.device, info.kernels, tokens, 0.0, None, 1.0, stopped, tuple(results))


@pytest.fixture
def default_engine() -> type[FakeEngine]:
    return ProvingEngine


def press(bench: Bench) -> None:
    """The button of the top bar, as a user presses it."""
    bench.qtbot.mouseClick(bench.window.top_bar.prove_button, Qt.MouseButton.LeftButton)


def test_the_button_starts_a_proof_and_the_pane_says_identical(benches: BenchMaker) -> None:
    bench = started(benches(), press)
    assert bench.host.state is HostState.PROVING
    pane = bench.window.jobs.prove_pane
    assert runs(pane)
    bench.reach(HostState.READY)
    assert bench.engine.proofs == [TOKENS] == [1024]
    assert pane.outcome.text() == "Identical: 1,023 tokens, ids and logits, over 3 prompts"
    assert pane.result_lines == ["chat: 341 equal", "code: 341 equal", "maths: 341 equal"]
    check_settled(pane)


def test_progress_is_shown_and_the_status_line_says_so(benches: BenchMaker) -> None:
    bench = held(benches(ProvingEngine(hold_job=True)), press)
    pane = bench.window.jobs.prove_pane
    bench.qtbot.waitUntil(lambda: pane.progress.text().startswith("code: 683 of 2,048 tokens made"), timeout=5000)
    assert (pane.bar.value(), pane.bar.maximum()) == (683, 2048)
    assert pane.result_lines == ["chat: 341 equal"]
    assert bench.window.status._words.text() == "Proving"
    assert not bench.window.top_bar.prove_button.isEnabled()


def test_it_can_only_be_begun_when_the_engine_is_ready(benches: BenchMaker) -> None:
    bench = benches(ProvingEngine(hold_reply=True))
    button = bench.window.top_bar.prove_button
    assert not button.isEnabled() and "when a model is loaded" in button.toolTip()
    bench.window.jobs.prove()
    assert bench.host.state is HostState.NO_MODEL and not bench.window.jobs.prove_pane.isVisible()
    bench.ready()
    assert button.isEnabled() and "bit for bit" in button.toolTip()
    bench.type_and_send("Hello?")
    bench.held()
    assert not button.isEnabled()
    bench.window.jobs.prove()
    assert bench.host.state is HostState.GENERATING and bench.engine.proofs == []
    bench.engine.go.set()
    bench.reach(HostState.READY)
    assert button.isEnabled()


def test_a_message_cannot_be_sent_into_a_proof_and_is_kept(benches: BenchMaker) -> None:
    bench = held(benches(ProvingEngine(hold_job=True)), press)
    check_a_message_is_kept(bench)
    bench.engine.go.set()
    bench.reach(HostState.READY)
    assert bench.engine.requests == []
    bench.window.chat.send("Hello?")
    assert bench.host.state is HostState.GENERATING
    bench.reach(HostState.READY)
    assert len(bench.engine.requests) == 1


def test_a_difference_is_told_in_full(benches: BenchMaker) -> None:
    bench = over(benches(ProvingEngine(difference=FOUND)), press)
    pane = bench.window.jobs.prove_pane
    assert pane.outcome.text() == (
        "The tokens differ at token 17 of reply 2 to “code”: plain decoding chooses 345, speculation chooses 99; "
        "the plain run's two best logits are 0.0021 apart."
    )
    assert pane.result_lines[1] == "code: different after 341"


@pytest.mark.parametrize("way", WAYS_TO_STOP)
def test_every_way_to_stop_ends_the_proof_and_keeps_the_model(benches: BenchMaker, way: str) -> None:
    bench = held(benches(ProvingEngine(hold_job=True)), press)
    pane = bench.window.jobs.prove_pane
    check_stopped(bench, pane, way, "Stopped. Identical so far: 341 tokens, ids and logits, over 1 prompts")
    bench.engine.hold_job = False
    bench.ask("Hello?")
    assert len(bench.engine.requests) == 1


def test_prove_again_starts_afresh(benches: BenchMaker) -> None:
    engine = ProvingEngine(difference=FOUND)
    bench = over(benches(engine), press)
    engine.difference = None
    pane = bench.window.jobs.prove_pane
    bench.qtbot.mouseClick(pane.again_button, Qt.MouseButton.LeftButton)
    assert pane.outcome.text() == "" and pane.result_lines == []
    bench.reach(HostState.READY)
    assert pane.outcome.text().startswith("Identical") and len(pane.result_lines) == 3


def test_an_error_is_told_in_the_pane_and_the_model_stays(benches: BenchMaker) -> None:
    bench = over(
        benches(ProvingEngine(job_error=SpecularError("Plain decoding failed at the prompt “code”: NaN."))), press
    )
    assert bench.window.jobs.prove_pane.outcome.text() == "Plain decoding failed at the prompt “code”: NaN."
    assert bench.host.info is not None


def test_a_fault_is_told_in_the_pane_and_ends_in_failed(benches: BenchMaker) -> None:
    bench = over(benches(ProvingEngine(job_error=ZeroDivisionError("division by zero"))), press, HostState.FAILED)
    check_fault_is_told(bench.window.jobs.prove_pane)


def test_another_model_can_be_loaded_in_the_middle(benches: BenchMaker) -> None:
    bench = held(benches(ProvingEngine(hold_job=True)), press)
    bench.window.models.load("/models/other")
    bench.qtbot.waitUntil(lambda: len(bench.engine.loads) == 2, timeout=5000)
    bench.reach(HostState.READY)
    assert bench.host.info is not None and bench.host.info.path == "/models/other"


def test_closing_the_window_ends_a_running_proof(benches: BenchMaker) -> None:
    bench = held(benches(ProvingEngine(hold_job=True)), press)
    check_closing_the_window_ends_it(bench, bench.window.jobs.prove_pane)


def test_the_button_has_icon_and_words_and_gives_way_in_a_narrow_window(benches: BenchMaker) -> None:
    bench = benches()
    bar = bench.window.top_bar
    assert bar.prove_button.text() == "Prove it" and not bar.prove_button.icon().isNull()
    assert not bar.prove_button.icon().pixmap(16, QIcon.Mode.Normal).isNull()
    assert bar.prove_button.isVisible()
    bar.resize(500, bar.height())
    assert not bar.prove_button.isVisible()
