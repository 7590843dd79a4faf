"""The calibration in the window: when it can be run, what it shows, and how it is left; over a scripted engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

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
from window_bench import Bench, BenchMaker

from app.states import HostState
from app.ui.calibration_pane import MINUTES
from engine.calibration.report import CalibrationProgress, CalibrationReport, Finding, Verdict
from engine.errors import SpecularError
from engine.recipe import Recipe

FOUND = Recipe(4, reduced_vocabulary=12288)
FOUR = Finding("4-bit weights", Verdict.OPEN, "", Recipe(4), 0.326, 0.904, 4, 3.5, 1.62)
EIGHT = Finding("8-bit weights", Verdict.OPEN, "", Recipe(8), 0.5, 0.99, 15, 13.2, 1.48)
TOKENS = Finding("12,288 output tokens", Verdict.OPEN, "", FOUND, 0.26, 0.9, 5, 3.9, 1.84)
FINDINGS = (
    replace(FOUR, verdict=Verdict.ON),
    replace(EIGHT, verdict=Verdict.OFF, reason="S 1.48, with 4-bit weights 1.62"),
    replace(TOKENS, verdict=Verdict.ON, reason="S from 1.62 to 1.84"),
    Finding("KV window", Verdict.UNTRIED, "no time was left for it: give it more minutes"),
    Finding("attention heads", Verdict.UNABLE, "this device has no draft with it"),
)


@dataclass(slots=True)
class CalibratingEngine(JobEngine):
    """Measures three drafts; `hold_job` waits for `go` or a stop after the first."""

    speed_up: float = 1.84
    note: str | None = None
    calibrations: list[float] = field(default_factory=list)

    def calibrate(
        self, minutes: float, *, progress: Callable[[CalibrationProgress], None], cancelled: Callable[[], bool]
    ) -> CalibrationReport:
        self.calibrations.append(minutes)
        self._halt.clear()
        info = self.info or model_info()
        made: list[Finding] = []
        for number, finding in enumerate((FOUR, EIGHT, TOKENS)):
            progress(CalibrationProgress(f"Measuring weights: {finding.ingredient}", 0.25 * number))
            if number == 1:
                self._middle()
            if cancelled():
                return self._report(tuple(made), None)
            made.append(finding)
            progress(CalibrationProgress("Measuring weights", 0.25 * number + 0.2, finding))
        self.info = replace(info, recipe=FOUND, calibrated=True)
        return self._report(FINDINGS, FOUND)

    def _report(self, findings: tuple[Finding, ...], chosen: Recipe | None) -> CalibrationReport:
        report = CalibrationReport("m", "d", "k", 9.0, 0.01, ((1, 1.0),), (), 320, findings, note=self.note)
        return replace(report, chosen=chosen, speed_up=self.speed_up) if chosen is not None else report


@pytest.fixture
def default_engine() -> type[FakeEngine]:
    return CalibratingEngine


def press(bench: Bench) -> None:
    """The button of the settings page, as a user presses it."""
    bench.window.show_settings()
    bench.qtbot.mouseClick(bench.window.settings_page.pane.calibration.button, Qt.MouseButton.LeftButton)


def test_the_button_starts_a_calibration_and_the_pane_tells_the_outcome(benches: BenchMaker) -> None:
    bench = started(benches(), press)
    assert bench.host.state is HostState.CALIBRATING
    pane = bench.window.jobs.calibration_pane
    assert runs(pane)
    bench.reach(HostState.READY)
    assert isinstance(bench.engine, CalibratingEngine) and bench.engine.calibrations == [MINUTES] == [2.0]
    assert pane.outcome.text() == (
        "The draft now has 4-bit weights, 12,288 output tokens: 1.84 times plain decoding is expected."
    )
    assert pane.table.rows == [
        ["4-bit weights", "0.33", "90.4 %", "3.50 (γ 4)", "1.62×", "On"],
        ["8-bit weights", "0.50", "99.0 %", "13.20 (γ 15)", "1.48×", "Off: S 1.48, with 4-bit weights 1.62"],
        ["12,288 output tokens", "0.26", "90.0 %", "3.90 (γ 5)", "1.84×", "On: S from 1.62 to 1.84"],
        ["KV window", *["n/a"] * 4, "Not tried: no time was left for it: give it more minutes"],
        ["attention heads", *["n/a"] * 4, "Not here: this device has no draft with it"],
    ]
    check_settled(pane)


def test_the_settings_page_tells_the_new_recipe(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.window.show_settings()
    row = bench.window.settings_page.pane.calibration
    assert row.help_words.endswith(" In use: 8-bit weights.")
    press(bench)
    bench.reach(HostState.READY)
    assert row.help_words.endswith(" In use, measured here: 4-bit weights, 12,288 output tokens.")
    bench.window.models.unload()
    bench.reach(HostState.NO_MODEL)
    assert row.help_words.endswith("in about two minutes.") and not row.button.isEnabled()


def test_progress_and_what_was_measured_so_far_are_shown(benches: BenchMaker) -> None:
    bench = held(benches(CalibratingEngine(hold_job=True)), press)
    pane = bench.window.jobs.calibration_pane
    bench.qtbot.waitUntil(lambda: pane.progress.text() == "Measuring weights: 8-bit weights", timeout=5000)
    assert pane.bar.value() == pane.bar.maximum() // 4
    assert pane.table.rows == [["4-bit weights", "0.33", "90.4 %", "3.50 (γ 4)", "1.62×", ""]]
    assert bench.window.status._words.text() == "Calibrating"
    assert not bench.window.top_bar.prove_button.isEnabled()
    assert not bench.window.settings_page.pane.calibration.button.isEnabled()


def test_it_can_only_be_begun_when_the_engine_is_ready(benches: BenchMaker) -> None:
    bench = benches(CalibratingEngine(hold_reply=True))
    bench.window.show_settings()
    button = bench.window.settings_page.pane.calibration.button
    assert not button.isEnabled() and "when a model is loaded" in button.toolTip()
    bench.window.jobs.calibrate()
    assert not bench.window.jobs.calibration_pane.isVisible() and bench.host.state is HostState.NO_MODEL
    bench.ready()
    assert button.isEnabled() and button.toolTip() == ""
    bench.window.show_chat()
    bench.type_and_send("Hello?")
    bench.held()
    assert not button.isEnabled()


@pytest.mark.parametrize("way", WAYS_TO_STOP)
def test_every_way_to_stop_ends_it_and_keeps_the_old_draft(benches: BenchMaker, way: str) -> None:
    bench = held(benches(CalibratingEngine(hold_job=True)), press)
    pane = bench.window.jobs.calibration_pane
    check_stopped(bench, pane, way, "Stopped: the draft is made as before.")
    assert [row[0] for row in pane.table.rows] == ["4-bit weights"]
    assert bench.host.info is not None and not bench.host.info.calibrated


def test_calibrate_again_starts_afresh(benches: BenchMaker) -> None:
    bench = over(benches(CalibratingEngine(speed_up=0.9)), press)
    pane = bench.window.jobs.calibration_pane
    assert pane.outcome.text().startswith("No draft pays on this machine")
    bench.qtbot.mouseClick(pane.again_button, Qt.MouseButton.LeftButton)
    assert pane.outcome.text() == "" and pane.table.rows == []
    bench.reach(HostState.READY)
    assert len(pane.table.rows) == 5


def test_a_recipe_that_cannot_be_kept_is_told_with_the_outcome(benches: BenchMaker) -> None:
    bench = over(
        benches(CalibratingEngine(note="The recipe is in use, but not kept for the next start: no space.")), press
    )
    assert bench.window.jobs.calibration_pane.outcome.text().endswith(" not kept for the next start: no space.")


def test_an_error_is_told_in_the_pane_and_the_model_stays(benches: BenchMaker) -> None:
    sentence = "There is not enough memory to calibrate: the draft is made as before."
    bench = over(benches(CalibratingEngine(job_error=SpecularError(sentence))), press)
    assert bench.window.jobs.calibration_pane.outcome.text() == sentence
    assert bench.host.info is not None


def test_a_fault_is_told_in_the_pane_and_ends_in_failed(benches: BenchMaker) -> None:
    bench = over(benches(CalibratingEngine(job_error=ZeroDivisionError("division by zero"))), press, HostState.FAILED)
    check_fault_is_told(bench.window.jobs.calibration_pane)


def test_closing_the_window_ends_a_running_calibration(benches: BenchMaker) -> None:
    bench = held(benches(CalibratingEngine(hold_job=True)), press)
    check_closing_the_window_ends_it(bench, bench.window.jobs.calibration_pane)


def test_a_message_sent_meanwhile_is_kept(benches: BenchMaker) -> None:
    bench = held(benches(CalibratingEngine(hold_job=True)), press)
    check_a_message_is_kept(bench)
