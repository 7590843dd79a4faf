"""Measuring one recipe after another within the time and memory there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from engine.calibration.budget import Budget, Stage
from engine.calibration.choose import Measure, Trial
from engine.calibration.costs import interpolated
from engine.calibration.expected import worth
from engine.calibration.measure import FEW_ROWS, Bench, widths_within
from engine.calibration.replies import OwnText, Reader, own_replies
from engine.calibration.timing import times_of
from engine.errors import BadSetting, LoadCancelled, SpecularError, is_out_of_memory
from engine.model.runner import Runner
from engine.recipe import Recipe
from engine.records import LoadProgress

LEAST_TOKENS, MOST_TOKENS = 32, 480  # that the model chooses, and its drafts are compared with
REPLIES_SHARE = 0.1  # of the time, for choosing them
SCREENED = 0.6  # of them, for the first look at every ingredient; the last look is at all
READING_COST = 0.3  # of a plain step, at most, that a token of a prompt takes


class Interrupted(Exception):
    """The caller wants no more."""


class _NoTime(Exception):
    """A copy of the weights would take more time than there is."""


class Trials:
    """Measures recipes of a runner. `obstacle`: why the last one asked for was not measured."""

    no_time = "no time was left for it: give it more minutes"
    no_memory = "there is not enough memory for it"

    def __init__(self, runner: Runner, budget: Budget, cancelled: Callable[[], bool]) -> None:
        self._runner, self._budget, self._cancelled = runner, budget, cancelled
        self._reader = Reader(runner, self.check)
        self.bench = Bench(runner, self._reader, times_of(runner, budget.clock), self.check)
        self.texts: tuple[OwnText, ...] = ()
        self.verify: dict[int, float] = {1: 1.0}
        self.made: list[Trial] = []
        self.obstacle = ""
        self._usual = 0.0  # seconds of the last trial
        self._at = Stage.REPLIES, 0.0, ""  # the trial that was begun last

    def check(self) -> None:
        """Raise Interrupted when the caller wants no more."""
        if self._cancelled():
            raise Interrupted

    def verify_cost(self, gamma: int) -> float:
        """v, from what was measured so far."""
        return interpolated(self.verify)(gamma)

    def answer(self, prompts: Sequence[Sequence[int]], end_ids: frozenset[int]) -> None:
        """Let the model answer prompts, as many as a tenth of the time allows."""
        budget, texts, seconds = self._budget, [], []
        goal = budget.seconds * REPLIES_SHARE

        def enough(made: int) -> bool:
            done = max(made / MOST_TOKENS, budget.spent / goal if made >= LEAST_TOKENS else 0.0)
            budget.tell(Stage.REPLIES, done, f"{made} tokens")
            return done >= 1.0

        for text, times in own_replies(self._runner, self._reader, prompts, end_ids, self.check, enough, budget.clock):
            texts.append(text)
            seconds += times
        self.texts = tuple(texts)
        if not texts:
            raise SpecularError("The model answered no prompt: there is nothing to calibrate with.")
        self.bench.plain_seconds = median(seconds)

    def time_verify(self) -> None:
        """Measure v by rows."""
        text = self._longest
        widths = widths_within(len(text.ids))
        for number, rows in enumerate(widths):
            self._budget.tell(Stage.VERIFY, number / len(widths), f"{rows} rows")
            self.verify[rows] = self.bench.verify(text, rows)
            if not self._budget.allows(Stage.VERIFY):
                return

    def time_few_rows(self) -> tuple[tuple[int, float], ...]:
        """Measure draft passes of the recipe in force over several rows, in draft steps."""
        text = self._longest
        measured: dict[int, float] = {}
        for rows in FEW_ROWS:
            if rows <= len(text.ids) and (not measured or self._budget.allows(Stage.FEW_ROWS)):
                self._budget.tell(Stage.FEW_ROWS, len(measured) / len(FEW_ROWS), f"{rows} rows")
                measured[rows] = self.bench.few_rows(text, rows)
        return tuple(sorted(measured.items()))

    def measuring(
        self, stage: Stage, done: float = 0.0, *, forced: bool = False, texts: Sequence[OwnText] | None = None
    ) -> Measure:
        """Measures recipes while the stage's time lasts. forced: also beyond it. texts: all of these, else the first
        tokens of the usual ones."""

        def measure(recipe: Recipe, label: str) -> Trial | None:
            self._at = stage, done, label
            self._budget.tell(stage, done, label)
            if not forced and not self.time_for(stage):
                self.obstacle = self.no_time
                return None
            try:
                self.use(recipe, hurried=not forced)
            except _NoTime:
                self.obstacle = self.no_time
                return None
            except BadSetting as error:  # the device has the ingredient, but not for this model
                self.obstacle = str(error).rstrip(".")
                return None
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                self.obstacle = self.no_memory
                return None
            trial = self.trial(recipe, label, texts)
            self._budget.tell(stage, done, label, trial.finding())
            return trial

        return measure

    def time_for(self, stage: Stage, trials: int = 1) -> bool:
        """Whether so many trials, each as long as the last one, would end within the stage's time."""
        return self._budget.allows(stage, trials * self._usual)

    def trial(self, recipe: Recipe, label: str, texts: Sequence[OwnText] | None = None) -> Trial:
        """Measure a recipe now."""
        began = self._budget.clock()
        self.use(recipe)
        most = None if texts is not None else round(SCREENED * sum(text.chosen for text in self.texts))
        texts = self.texts if texts is None else texts
        agreement = self.bench.agreement(texts, most)
        cost = self.bench.draft_cost(texts[0] if len(texts) == 1 else self._longest)
        trial = Trial(label, recipe, cost, agreement, worth(agreement.matches, cost, self.verify_cost))
        self.made.append(trial)
        self._usual = self._budget.clock() - began
        return trial

    def loss(self, recipe: Recipe, tokens: int) -> float:
        """How sure the draft by this recipe is of the model's token over a few tokens, as Agreement.loss."""
        self.check()
        self.use(recipe)
        return self.bench.agreement((self._longest,), tokens).loss

    def use(self, recipe: Recipe, *, hurried: bool = False) -> None:
        """Draft by this recipe. hurried: raise _NoTime where making what it needs would take all the time there is."""
        if self._runner.recipe != recipe:
            began = self._budget.clock()
            try:
                until = began + self._budget.making_left
                self._runner.use_recipe(
                    recipe,
                    self._tell_making,
                    lambda: self._cancelled() or (hurried and self._budget.clock() > until),
                )
            except LoadCancelled as error:
                raise (Interrupted if self._cancelled() else _NoTime) from error
            finally:
                self._budget.made(self._budget.clock() - began)
            if recipe.reduced_vocabulary is not None:
                self._reader.forget()

    def _tell_making(self, step: LoadProgress) -> None:
        stage, done, label = self._at
        what = f"{step.what[:1].lower()}{step.what[1:]}"
        self._budget.tell(stage, done, f"{label}, {what}, {step.done} of {step.total}")

    def release(self, kept: Recipe) -> None:
        """Give back copies of the weights that neither this recipe nor the one in force needs."""
        self._runner.release_copies({kept.weight_bits})

    def long_text(self, context: int, tokens: int, end_ids: frozenset[int]) -> tuple[OwnText | None, str]:
        """A reply after `context` tokens of the usual texts, or None and why there is none."""
        if self._runner.capacity < context + tokens:
            return None, "the context is too short for it to matter"
        seconds = ((context + tokens) * READING_COST + tokens) * self.bench.plain_seconds + 2 * self._usual
        if not self._budget.allows(Stage.WINDOW, seconds):
            return None, self.no_time
        self._budget.tell(Stage.WINDOW, 0.0)
        joined = [token for text in self.texts for token in text.ids]
        prompt = (joined * (context // len(joined) + 1))[:context]
        made = own_replies(
            self._runner,
            self._reader,
            [prompt],
            end_ids,
            self.check,
            lambda count: count >= tokens,
            self._budget.clock,
        )
        text = next((text for text, _ in made), None)
        return (text, "") if text is not None else (None, "the model has nothing to say there")

    @property
    def _longest(self) -> OwnText:
        return max(self.texts, key=lambda text: len(text.ids))
