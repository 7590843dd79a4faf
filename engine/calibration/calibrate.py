"""A calibration from end to end: own replies, costs, each ingredient alone, the best together, and the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from engine.calibration import plan
from engine.calibration.budget import Budget, Stage
from engine.calibration.choose import Choice, Trial, loss_in_words
from engine.calibration.costs import fitted
from engine.calibration.report import CalibrationProgress, CalibrationReport, Finding, Verdict, in_words
from engine.calibration.trials import Interrupted, Trials
from engine.errors import SpecularError, is_out_of_memory
from engine.files.config import ModelConfig
from engine.model.runner import Runner
from engine.recipe import Recipe
from engine.speculation.estimates import CostProfile

RANKED_TOKENS = 48  # for ranking blocks, of which there are many
CLOSE = 1.2  # times the S of another width: near enough for the ingredients to turn the order
LEAST_RANKED = 4  # blocks, for skipping some to be worth a try
LONG_CONTEXT, LONG_TOKENS = 2 * plan.KV_WINDOW, 64  # where a KV window is tried


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The report, and the costs to start the controller with; None where it was stopped."""

    report: CalibrationReport
    costs: CostProfile | None


@dataclass(frozen=True, slots=True)
class Subject:
    """What is calibrated: a runner, and of its model the names for the report, prompts as ids, and end tokens."""

    runner: Runner
    config: ModelConfig
    model: str
    device: str
    prompts: tuple[tuple[int, ...], ...]
    end_ids: frozenset[int]


def calibrate(
    subject: Subject,
    seconds: float,
    progress: Callable[[CalibrationProgress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
) -> Calibrated:
    """Measure within about `seconds` and choose a recipe, which is then in force in the runner.

    Where it is cancelled or raises, the recipe is the one it was before; what the KV cache held is gone in any case.
    Raises SpecularError where no prompt can be answered, or no draft be made in the memory there is.
    """
    before = subject.runner.recipe
    budget = Budget(seconds, clock, progress)
    work = _Calibration(subject, before, budget, Trials(subject.runner, budget, cancelled))
    try:
        return work.run()
    except Interrupted:
        subject.runner.use_recipe(before)
        return Calibrated(work.report(None), None)
    except BaseException as error:
        subject.runner.use_recipe(before)
        if is_out_of_memory(error):
            raise SpecularError("There is not enough memory to calibrate: the draft is made as before.") from error
        raise


@dataclass(slots=True)
class _Calibration:
    subject: Subject
    before: Recipe
    budget: Budget
    trials: Trials
    findings: tuple[Finding, ...] = ()
    untried: list[Finding] = field(default_factory=list)
    few_rows: tuple[tuple[int, float], ...] = ()

    def run(self) -> Calibrated:
        """All stages."""
        able, trials = self.subject.runner.ingredients, self.trials
        trials.answer(self.subject.prompts, self.subject.end_ids)
        trials.time_verify()
        weights = self._weights()
        choice = Choice(max(weights, key=lambda trial: trial.speed_up), trials.verify_cost)
        self._ingredients(choice)
        self._blocks(choice)
        choice.fill(trials.measuring(Stage.TOGETHER))
        final = self._final(choice, weights)
        best, window = self._window(final)
        lines = [_weights_line(trial, final, choice) for trial in weights]
        others = [*choice.findings(best), *window, *self.untried, *plan.unable(able)]
        self.findings = tuple(lines + self._as_before(final, choice, weights) + others)
        trials.use(best.recipe)
        trials.release(best.recipe)
        self.few_rows = trials.time_few_rows()
        report = self.report(best)
        costs = fitted(best.cost, trials.verify, self.few_rows)
        self.budget.tell(Stage.FEW_ROWS, 1.0)
        return Calibrated(report, costs)

    def _weights(self) -> list[Trial]:
        """Measure each width of weights; the best is what ingredients come on top of."""
        levels = plan.weights(self.subject.runner.ingredients, self.before.weight_bits).levels
        measured: list[Trial] = []
        for number, level in enumerate(levels):
            recipe = level.added_to(Recipe())
            if recipe.weight_bits == 16 and len(levels) > 1:
                self._leave(level.label, "alone they are the model itself, no faster", Verdict.OFF)
                continue
            self.trials.release(self.before)
            measure = self.trials.measuring(Stage.WEIGHTS, number / len(levels), forced=not measured)
            trial = measure(recipe, level.label)
            if trial is None:
                self._leave(level.label, self.trials.obstacle)
            else:
                measured.append(trial)
        if not measured:
            raise SpecularError(f"No draft can be made to calibrate: {self.trials.obstacle}.")
        return measured

    def _ingredients(self, choice: Choice) -> None:
        ladders = plan.ladders(self.subject.runner.ingredients, self.subject.config)
        for number, ladder in enumerate(ladders):
            self._climb(choice, ladder, Stage.INGREDIENTS, number / len(ladders))

    def _climb(self, choice: Choice, ladder: plan.Ladder, stage: Stage, done: float) -> None:
        choice.climb(ladder, self.trials.measuring(stage, done))
        if ladder.ingredient not in choice.singles:
            self._leave(ladder.ingredient, self.trials.obstacle)

    def _leave(self, ingredient: str, reason: str, verdict: Verdict = Verdict.UNTRIED) -> None:
        self.untried.append(Finding(ingredient, verdict, reason))

    def _blocks(self, choice: Choice) -> None:
        """Rank the blocks by what the draft loses without each, then measure leaving out more and more of them."""
        losses: dict[plan.Block, float] = {}
        candidates = plan.blocks(self.subject.config)
        base = choice.base.recipe
        usual = self.trials.loss(base, RANKED_TOKENS)
        for number, block in enumerate(candidates):
            self.budget.tell(Stage.BLOCKS, number / len(candidates) / 2, f"{number} of {len(candidates)} ranked")
            if not self.trials.time_for(Stage.BLOCKS, trials=3):
                break
            losses[block] = self.trials.loss(block.recipe(base), RANKED_TOKENS) - usual
        ladder = plan.skipping(self.subject.config, losses)
        if len(losses) < min(LEAST_RANKED, len(candidates)):
            self._leave(ladder.ingredient, self.trials.no_time)
        elif not ladder.levels:
            self._leave(ladder.ingredient, "the model has too few blocks", Verdict.OFF)
        else:
            self._climb(choice, ladder, Stage.BLOCKS, 0.5)

    def _window(self, best: Trial) -> tuple[Trial, list[Finding]]:
        """Try a KV window on top of the best where it would matter: far from the beginning of a long text."""
        able, name = self.subject.runner.ingredients, "KV window"
        if not able.kv_window or best.recipe.kv_window is not None:
            return best, []
        text, obstacle = self.trials.long_text(LONG_CONTEXT, LONG_TOKENS, self.subject.end_ids)
        if text is None:
            self._leave(name, obstacle)
            return best, []
        label = f"the last {plan.KV_WINDOW} positions attended to"
        without = self.trials.trial(best.recipe, label, (text,))
        trial = self.trials.trial(replace(best.recipe, kv_window=plan.KV_WINDOW), label, (text,))
        where = f"at {LONG_CONTEXT:,} positions"
        if not trial.gains_on(without):
            return best, [trial.finding(Verdict.OFF, f"{where} {loss_in_words(without, trial)}")]
        return replace(best, recipe=trial.recipe), [
            trial.finding(Verdict.ON, f"{where} S from {without.speed_up:.2f} to {trial.speed_up:.2f}")
        ]

    def _final(self, choice: Choice, weights: list[Trial]) -> Trial:
        """The best recipe of all, measured again over all texts.

        Beside what was found: the same with the next best width of weights, the weights alone, and the recipe before.
        """
        best, finalists = choice.best, [choice.best]
        close = [trial for trial in weights if trial.speed_up * CLOSE >= choice.base.speed_up]
        widths = [replace(best.recipe, weight_bits=trial.recipe.weight_bits) for trial in close]
        for recipe in (*widths, choice.base.recipe, self.before):
            if recipe not in [other.recipe for other in finalists]:
                finalists.append(replace(best, recipe=recipe, label=in_words(recipe)))
        again: list[Trial] = []
        for number, trial in enumerate(finalists):
            measure = self.trials.measuring(Stage.FINAL, number / len(finalists), texts=self.trials.texts)
            measured = measure(trial.recipe, trial.label)
            if measured is not None:
                again.append(measured)
        return max(again, key=lambda trial: trial.speed_up) if again else best

    def _as_before(self, best: Trial, choice: Choice, weights: list[Trial]) -> list[Finding]:
        """A line for the recipe used before, where that turned out best and has no line of its own."""
        if best.recipe != self.before or best.recipe in (choice.best.recipe, *(trial.recipe for trial in weights)):
            return []
        return [best.finding(Verdict.ON, f"as before: S {best.speed_up:.2f} is the best found")]

    def report(self, best: Trial | None) -> CalibrationReport:
        """What was found, and with `best` what was chosen."""
        subject, trials = self.subject, self.trials
        worth = None if best is None else best.worth
        return CalibrationReport(
            model=subject.model,
            device=subject.device,
            kernels=subject.runner.kernels,
            seconds=self.budget.elapsed,
            plain_seconds=trials.bench.plain_seconds,
            verify=tuple(sorted(trials.verify.items())),
            few_rows=self.few_rows,
            positions=sum(text.chosen for text in trials.texts),
            findings=self.findings if best is not None else tuple(trial.finding() for trial in trials.made),
            chosen=None if best is None else best.recipe,
            cost=None if best is None else best.cost,
            acceptance=None if best is None else best.agreement.acceptance,
            gamma=None if worth is None else worth.gamma,
            tokens=None if worth is None else worth.tokens,
            speed_up=None if worth is None else worth.speed_up,
        )


def _weights_line(trial: Trial, best: Trial, choice: Choice) -> Finding:
    if trial.recipe.weight_bits == best.recipe.weight_bits:
        return trial.finding(Verdict.ON, "")
    base = choice.base
    if trial is base:
        reason = (
            f"S {trial.speed_up:.2f}; {best.recipe.weight_bits} bits are better with all the rest, {best.speed_up:.2f}"
        )
        return trial.finding(Verdict.OFF, reason)
    return trial.finding(Verdict.OFF, f"S {trial.speed_up:.2f}, with {base.label} {base.speed_up:.2f}")
