"""A calibration from end to end over a runner with known costs and mistakes, on a clock that only it moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibration_rig import EVERYTHING, Clock, RuledRunner, config, scattered, subject
from engine.calibration import measure, trials
from engine.calibration.calibrate import Calibrated, calibrate
from engine.calibration.report import CalibrationProgress, CalibrationReport, Finding, Verdict
from engine.errors import SpecularError
from engine.recipe import Ingredients, Recipe


@pytest.fixture(autouse=True)
def little_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer tokens and pairs of passes than on a real model."""
    monkeypatch.setattr(trials, "MOST_TOKENS", 240)
    monkeypatch.setattr(measure, "MOST_PAIRS", 6)


BEFORE = Recipe(weight_bits=16, neuron_share=0.9)
WIDTH_COST = {16: 1.0, 8: 0.55, 4: 0.32, 3: 0.28}
WIDTH_ERRORS = {16: 10**9, 8: 97, 4: 19, 3: 5}  # wrong at one position in so many


def cost(recipe: Recipe) -> float:
    """Four bits are the best width here; a smaller vocabulary saves a tenth; neurons cost more than they save."""
    value = WIDTH_COST[recipe.weight_bits]
    value *= 0.9 if recipe.reduced_vocabulary else 1.0
    value *= 1.05 if recipe.neuron_share < 1 else 1.0
    value *= 1.0 - 0.3 * recipe.input_sparsity
    return value * (1.0 - 0.02 * (len(recipe.skipped_attention) + len(recipe.skipped_mlp)))


def errs(recipe: Recipe, position: int) -> bool:
    """Sparse inputs err a lot; every block but layer 3's attention is sorely missed."""
    missed = {*recipe.skipped_attention} - {3} or recipe.skipped_mlp
    if scattered(WIDTH_ERRORS[recipe.weight_bits], position) or (recipe.input_sparsity and position % 3 == 0):
        return True
    return bool(missed) and position % 2 == 0


def runner_of(**options: object) -> RuledRunner:
    return RuledRunner(Clock(), **{"cost": cost, "errs": errs, "recipe": BEFORE, **options})  # type: ignore[arg-type]


def run(runner: RuledRunner, seconds: float = 1000.0, **options: object) -> Calibrated:
    return calibrate(subject(runner), seconds, clock=runner.clock, **options)  # type: ignore[arg-type]


def by_name(report: CalibrationReport) -> dict[str, Finding]:
    return {finding.ingredient: finding for finding in report.findings}


def test_the_best_recipe_is_found_and_put_in_force() -> None:
    runner = runner_of()
    done = run(runner)
    chosen = done.report.chosen
    assert chosen is not None and runner.recipe == chosen
    assert (chosen.weight_bits, chosen.input_sparsity, chosen.neuron_share) == (4, 0.0, 1.0)
    assert chosen.reduced_vocabulary == 128 and chosen.skipped_attention == (3,) and chosen.skipped_mlp == ()
    found = by_name(done.report)
    on = {name for name, finding in found.items() if finding.verdict is Verdict.ON}
    assert on == {"4-bit weights", "128 output tokens", "1 attention block skipped"}
    assert found["70 % of MLP neurons"].reason.startswith("a draft step gets no cheaper")
    dropped = next(finding for name, finding in found.items() if name.endswith("of channels dropped"))
    assert dropped.reason.startswith("c falls by 0.0") and "but α by 0.3" in dropped.reason
    assert found["3-bit weights"].reason.startswith("S ") and "with 4-bit weights" in found["3-bit weights"].reason


def test_the_figures_are_those_of_the_rules() -> None:
    done = run(runner_of())
    report, costs = done.report, done.costs
    expected = WIDTH_COST[4] * 0.9 * 0.98
    assert report.cost == pytest.approx(expected) and costs is not None and costs.draft == pytest.approx(expected)
    assert report.acceptance == pytest.approx(1 - 1 / 19, abs=0.02)
    assert report.positions == trials.MOST_TOKENS and report.plain_seconds == pytest.approx(0.01)
    assert dict(report.verify) == pytest.approx({rows: 1 + 0.02 * (rows - 1) for rows, _ in report.verify})
    assert (costs.verify_base, costs.verify_slope) == pytest.approx((1.0, 0.02))
    assert (costs.few_base, costs.few_slope) == pytest.approx((1.1, 0.1))
    assert report.gamma is not None and report.tokens is not None
    time = report.gamma * expected + 1 + 0.02 * report.gamma
    assert report.speed_up == pytest.approx(report.tokens / time)
    assert report.sentence.startswith("The draft now has 4-bit weights, 1 attention block skipped, 128 output tokens: ")


def test_ingredients_may_turn_the_order_of_the_widths() -> None:
    """Eight bits are the best by themselves; what is left out beside them weighs more with three."""

    def turning(recipe: Recipe) -> float:
        three = recipe.weight_bits == 3 and recipe.reduced_vocabulary
        return (
            0.1
            if three
            else {16: 1.0, 8: 0.3, 4: 0.5, 3: 0.31}[recipe.weight_bits] * (0.8 if recipe.reduced_vocabulary else 1.0)
        )

    report = run(runner_of(cost=turning, errs=lambda recipe, position: scattered(12, position))).report
    assert report.chosen == Recipe(weight_bits=3, reduced_vocabulary=128)
    found = by_name(report)
    assert found["3-bit weights"].verdict is Verdict.ON and found["8-bit weights"].verdict is Verdict.OFF
    assert "3 bits are better with all the rest" in found["8-bit weights"].reason
    assert found["128 output tokens"].verdict is Verdict.ON


def test_a_device_that_has_only_its_own_weights_is_calibrated_too() -> None:
    def skips(recipe: Recipe, position: int) -> bool:
        return bool(recipe.skipped_attention or recipe.skipped_mlp) and scattered(2, position)

    runner = runner_of(ingredients=Ingredients(), recipe=Recipe(weight_bits=16), errs=skips)
    done = run(runner)
    assert done.report.chosen is not None and done.report.chosen.weight_bits == 16
    assert done.report.speed_up is not None and done.report.speed_up < 1
    assert done.report.sentence.startswith("No draft pays on this machine")
    found = by_name(done.report)
    assert found["16-bit weights"].verdict is Verdict.ON
    assert {finding.verdict for name, finding in found.items() if "bits" in name} <= {Verdict.UNABLE}
    assert found["KV window"].verdict is Verdict.UNABLE


def test_what_was_used_before_stays_where_nothing_found_is_better() -> None:
    before = Recipe(weight_bits=8, skipped_mlp=(1, 2))

    def cheap(recipe: Recipe) -> float:
        return 0.05 if recipe == before else cost(recipe)

    runner = runner_of(recipe=before, cost=cheap, errs=lambda recipe, position: recipe != before and position % 5 == 0)
    report = run(runner).report
    assert report.chosen == before and runner.recipe == before
    found = by_name(report)
    assert found["8-bit weights, 2 MLP blocks skipped"].reason.startswith("as before: S ")
    assert [f.ingredient for f in report.findings if f.verdict is Verdict.ON].count("4-bit weights") == 0


def test_a_window_is_tried_far_into_a_text_and_taken_where_it_pays_there() -> None:
    def pays(recipe: Recipe) -> float:
        return cost(recipe) * (0.8 if recipe.kv_window else 1.0)

    report = run(runner_of(cost=pays)).report
    assert report.chosen is not None and report.chosen.kv_window == 512
    assert by_name(report)["the last 512 positions attended to"].reason.startswith("at 1,024 positions S from ")
    report = run(runner_of()).report
    assert report.chosen is not None and report.chosen.kv_window is None
    off = by_name(report)["the last 512 positions attended to"]
    assert off.verdict is Verdict.OFF and off.reason.startswith("at 1,024 positions a draft step gets no cheaper")
    short = by_name(run(runner_of(capacity=600)).report)["KV window"]
    assert short.verdict is Verdict.UNTRIED and short.reason == "the context is too short for it to matter"


def test_progress_never_falls_and_tells_every_trial() -> None:
    steps: list[CalibrationProgress] = []
    done = run(runner_of(), progress=steps.append)
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions) and fractions[0] >= 0 and fractions[-1] == 1.0
    told = [step.finding.ingredient for step in steps if step.finding is not None]
    assert told[:3] == ["4-bit weights", "8-bit weights", "3-bit weights"] and len(told) >= 12
    assert all(step.finding.verdict is Verdict.OPEN for step in steps if step.finding is not None)
    assert any(step.what.startswith("Answering prompts: ") for step in steps)
    assert done.report.seconds <= 1000


@pytest.mark.parametrize("plain_seconds", [0.01, 0.4, 1.5, 20.0])
def test_a_slow_model_takes_its_time_and_little_more(plain_seconds: float) -> None:
    runner = runner_of(plain_seconds=plain_seconds)
    done = run(runner, seconds=300.0)
    assert done.report.chosen is not None
    # The least that can be measured is 32 tokens, a few verify passes and one width of weights.
    assert done.report.seconds <= max(300.0 * 1.1, 200 * plain_seconds)
    untried = [finding for finding in done.report.findings if finding.verdict is Verdict.UNTRIED]
    assert bool(untried) == (plain_seconds > 0.1)
    assert all("no time was left" in finding.reason for finding in untried)


def test_copies_are_made_while_there_is_time_for_them() -> None:
    """Half as much time again, as long as copies on disk will save it next time."""
    runner = runner_of(making_seconds=60.0, recipe=Recipe(weight_bits=8))
    report = run(runner, seconds=200.0).report
    assert report.chosen is not None and report.chosen.weight_bits == 4
    assert by_name(report)["3-bit weights"].verdict is Verdict.UNTRIED
    assert report.seconds <= 300.0


def test_a_copy_that_would_take_too_long_is_given_up() -> None:
    runner = runner_of(making_seconds=3600.0, recipe=Recipe(weight_bits=8))
    report = run(runner, seconds=1000.0).report
    assert report.chosen is not None and report.chosen.weight_bits == 8
    given_up = by_name(report)["4-bit weights"]
    assert given_up.verdict is Verdict.UNTRIED and given_up.reason.startswith("no time was left for it")
    assert report.seconds <= 2000.0  # a quarter of the copy is the least that can be made of it


def test_the_only_width_is_waited_for() -> None:
    runner = runner_of(making_seconds=600.0, ingredients=Ingredients((16, 4)), recipe=Recipe(weight_bits=16))
    report = run(runner, seconds=120.0).report
    assert report.chosen is not None and report.chosen.weight_bits == 4


class Stop:
    """Says stop at the nth time of asking."""

    def __init__(self, after: int) -> None:
        self.after, self.asked = after, 0

    def __call__(self) -> bool:
        self.asked += 1
        return self.asked > self.after


def times_asked() -> int:
    stop = Stop(10**9)
    run(runner_of(), cancelled=stop)
    return stop.asked


def test_stopped_anywhere_the_old_recipe_stays() -> None:
    last = times_asked() - 1
    for after in sorted({0, 1, 2, *range(0, last, last // 12), last}):
        runner = runner_of()
        done = run(runner, cancelled=Stop(after))
        assert runner.recipe == BEFORE, f"stopped after {after} of {last}"
        assert done.costs is None and done.report.stopped and done.report.chosen is None
        assert done.report.sentence == "Stopped: the draft is made as before."
    assert len(done.report.findings) > 10 and done.report.findings[0].cost is not None


class Failing:
    """Raises at the nth pass or change of recipe, once."""

    def __init__(self, at: int, error: Exception) -> None:
        self.at, self.error, self.count, self.kind = at, error, 0, ""
        self.recipes: list[int] = []  # the changes of recipe among what it counts

    def __call__(self, kind: str) -> None:
        self.count += 1
        if kind == "recipe":
            self.recipes.append(self.count)
        if self.count == self.at:
            self.kind = kind
            raise self.error


def test_out_of_memory_anywhere_leaves_the_old_recipe_or_only_leaves_an_ingredient_out() -> None:
    counting = Failing(0, MemoryError())
    run(runner_of(before=counting))
    recipes = counting.recipes
    kinds = set()
    for at in sorted({1, 2, 3, *range(1, counting.count, counting.count // 20), *recipes[::9]}):
        failing = Failing(at, MemoryError())
        runner = runner_of(before=failing)
        try:
            done = run(runner)
        except SpecularError as error:
            assert str(error) == "There is not enough memory to calibrate: the draft is made as before."
            assert runner.recipe == BEFORE
        else:
            assert failing.kind == "recipe" and done.report.chosen == runner.recipe
        kinds.add(failing.kind)
    assert kinds == {"full", "draft", "recipe"}


def test_a_stop_while_a_copy_is_made_is_heard() -> None:
    """The copy of eight bits would take an hour."""
    steps: list[CalibrationProgress] = []
    runner = runner_of(making_seconds=3600.0)
    making = "Measuring weights: 8-bit weights, preparing the draft, 1 of 4"
    done = run(
        runner,
        seconds=50_000.0,
        progress=steps.append,
        cancelled=lambda: bool(steps) and steps[-1].what == making,
    )
    assert steps[-1].what == making and done.report.stopped
    assert runner.recipe == BEFORE and runner.clock.now < 2 * 3600


def test_a_width_that_does_not_fit_the_memory_is_left_out() -> None:
    class Small(RuledRunner):
        def use_recipe(self, recipe: Recipe, *watch: Any) -> None:
            if recipe.weight_bits in (4, 3):
                raise MemoryError
            super().use_recipe(recipe, *watch)

    runner = Small(Clock(), cost=cost, errs=errs, recipe=BEFORE)
    report = run(runner).report
    assert report.chosen is not None and report.chosen.weight_bits == 8
    assert by_name(report)["4-bit weights"] == Finding(
        "4-bit weights", Verdict.UNTRIED, "there is not enough memory for it"
    )


def test_no_width_that_fits_is_one_sentence_and_the_old_recipe() -> None:
    class Tiny(RuledRunner):
        def use_recipe(self, recipe: Recipe, *watch: Any) -> None:
            if recipe != BEFORE:
                raise MemoryError
            super().use_recipe(recipe, *watch)

    runner = Tiny(Clock(), cost=cost, errs=errs, recipe=BEFORE)
    with pytest.raises(SpecularError) as raised:
        run(runner)
    assert str(raised.value) == "No draft can be made to calibrate: there is not enough memory for it."
    assert runner.recipe == BEFORE


def test_a_fault_of_ours_leaves_the_old_recipe_and_is_not_hidden() -> None:
    failing = Failing(300, ZeroDivisionError("division by zero"))
    runner = runner_of(before=failing)
    with pytest.raises(ZeroDivisionError):
        run(runner)
    assert runner.recipe == BEFORE


def test_an_ingredient_refused_for_this_model_is_told_in_the_devices_words() -> None:
    class Refusing(RuledRunner):
        def use_recipe(self, recipe: Recipe, *watch: Any) -> None:
            super().use_recipe(replace(recipe, skipped_mlp=(100,)) if recipe.head_share < 1 else recipe, *watch)

    report = run(Refusing(Clock(), cost=cost, errs=errs, recipe=BEFORE)).report
    assert by_name(report)["attention heads"].reason == "There is no such layer"
    assert report.chosen is not None


def test_a_model_that_says_nothing_is_told_in_one_sentence() -> None:
    runner = runner_of(capacity=5)
    with pytest.raises(SpecularError, match="The model answered no prompt"):
        run(runner)
    assert runner.recipe == BEFORE


def test_a_model_that_ends_its_replies_at_once_is_calibrated_with_what_it_says() -> None:
    class Curt(RuledRunner):
        def _logits(self, tokens: Sequence[int], position: int, recipe: Recipe | None) -> np.ndarray:
            logits = super()._logits(tokens, position, recipe)
            logits[:, 0] = 20.0
            return logits

    report = run(Curt(Clock(), cost=cost, errs=errs, recipe=BEFORE, ingredients=EVERYTHING)).report
    assert report.positions == 8 and report.chosen is not None and report.acceptance == 1.0
    assert config().layers == 6
