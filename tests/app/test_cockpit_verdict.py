"""The verdict in the cockpit: on which reply it is, and what its button does."""

from __future__ import annotations

import pytest
from cockpit_rig import settled
from fake_engine import FakeEngine
from window_bench import BenchMaker

from app.verdict import CALIBRATE


def slow_engine() -> FakeEngine:
    """Speculation that costs more than it brings: two drafts as dear as a plain step each, never right."""
    engine = FakeEngine()
    engine.recording.draft_seconds = 0.05
    engine.recording.cycles.clear()
    for _ in range(12):
        engine.recording.cycle(ghosts=" a b", correction=" c")
    return engine


def test_the_verdict_is_on_the_reply_and_its_button_does_what_it_says(benches: BenchMaker) -> None:
    bench = benches(slow_engine())
    bench.ready()
    cockpit = settled(bench)
    assert cockpit.verdict.sentence.text().startswith("No reply yet")
    bench.ask("One?")
    settled(bench).settle()
    assert cockpit.verdict.sentence.text().startswith("Slower than plain (0.3×)")
    assert cockpit.verdict.button.isVisible()
    cockpit.verdict.button.click()
    assert bench.settings.current.speculation is False
    assert bench.window.composer.speculation_chip.text() == "Speculation off"
    cockpit.settle()
    assert "Speculation is off from now on" in cockpit.verdict.sentence.text()


def test_the_verdict_on_a_stored_reply_proposes_nothing(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.window.show_demo()
    replay = bench.window.replays.replay
    assert replay is not None
    replay.show_all()
    cockpit = settled(bench)
    cockpit.settle()
    assert cockpit.figures.statistics.cycles > 8 and cockpit.verdict.verdict is not None
    assert cockpit.verdict.verdict.facts and cockpit.verdict.verdict.action is None


def test_a_verdict_may_lead_to_calibration(benches: BenchMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benches()
    cockpit, asked = settled(bench), []
    bench.window.cockpit.calibration_asked.connect(lambda: asked.append(True))
    monkeypatch.setattr(bench.window.jobs, "calibrate", lambda: None)
    cockpit.verdict.applied.emit(CALIBRATE)
    assert asked == [True]


def test_an_earlier_reply_by_the_models_own_recipe_is_known(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.ask("One?")
    verdicts = bench.window.cockpit.verdicts
    first = settled(bench).figures.statistics
    assert verdicts.situation().earlier is None and verdicts.situation().speculated
    bench.settings.set("speculation", False)
    bench.ask("Two?")
    settled(bench)
    situation = verdicts.situation()
    assert situation.earlier == first.speed_up is not None
    assert not situation.speculated and situation.info == bench.host.info
    assert len(situation.recent) == situation.statistics.cycles
