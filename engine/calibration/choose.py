"""Choosing among measured ingredients: a knapsack, filled by what promises most and measured again at each step.

What an ingredient adds beside others is predicted from measures of each alone: a position is right if every one of
them leaves it right, and costs multiply. The most promising is measured together with what is chosen already, and kept
only if that makes text faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.calibration.expected import Worth, worth
from engine.calibration.measure import Agreement
from engine.calibration.plan import Ladder, Level
from engine.calibration.report import Finding, Verdict
from engine.recipe import Recipe

LEAST_GAIN = 1.01  # of S, to take an ingredient in: times and counts are known to about this
PATIENCE = 2  # levels of a ladder in a row that may be no better before the rest is left out


@dataclass(frozen=True, slots=True)
class Trial:
    """A recipe as measured. cost: c."""

    label: str
    recipe: Recipe
    cost: float
    agreement: Agreement
    worth: Worth

    @property
    def speed_up(self) -> float:
        """S at the best gamma."""
        return self.worth.speed_up

    def gains_on(self, other: Trial) -> bool:
        """Whether it makes text faster than the other does, by more than they are uncertain."""
        return self.speed_up >= other.speed_up * LEAST_GAIN

    def finding(self, verdict: Verdict = Verdict.OPEN, reason: str = "") -> Finding:
        """The trial as a line of the report."""
        return Finding(
            self.label,
            verdict,
            reason,
            self.recipe,
            self.cost,
            self.agreement.acceptance,
            self.worth.gamma,
            self.worth.tokens,
            self.worth.speed_up,
        )


Measure = Callable[[Recipe, str], Trial | None]
"""Measures a recipe called so; None where there is no time or memory for it."""


@dataclass(slots=True)
class Choice:
    """What is chosen so far and what was measured to find it.

    singles: every level measured alone upon `base`. together: what an ingredient made of the choice it was tried with
    (before, with it).
    """

    base: Trial
    verify: Callable[[int], float]
    best: Trial = field(init=False)
    singles: dict[str, list[tuple[Level, Trial]]] = field(default_factory=dict)
    together: dict[str, tuple[Trial, Trial]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.best = self.base

    def climb(self, ladder: Ladder, measure: Measure) -> None:
        """Measure the levels of an ingredient upon the base, milder first, for as long as that seems worth while."""
        worse = 0
        top = self.base.speed_up
        for level in ladder.levels:
            trial = measure(level.added_to(self.base.recipe), level.label)
            if trial is None:
                return
            self.singles.setdefault(ladder.ingredient, []).append((level, trial))
            worse = 0 if trial.speed_up > top else worse + 1
            top = max(top, trial.speed_up)
            if worse == PATIENCE:
                return

    def fill(self, measure: Measure) -> None:
        """Take in ingredient after ingredient while one promises a gain and, measured, keeps the promise."""
        open_ = dict(self.singles)
        while open_:
            name, level, promise = self._most_promising(open_)
            if promise < self.best.speed_up * LEAST_GAIN:
                return
            recipe = level.added_to(self.best.recipe)
            known = next((t for _, t in self.singles[name] if t.recipe == recipe), None)
            trial = known or measure(recipe, level.label)
            del open_[name]
            if trial is not None:
                self.consider(name, trial)

    def consider(self, name: str, trial: Trial) -> None:
        """Take in an ingredient that was measured together with all that is chosen, if it gains."""
        self.together[name] = (self.best, trial)
        if trial.gains_on(self.best):
            self.best = trial
            self.taken.add(name)

    def _most_promising(self, open_: Mapping[str, Sequence[tuple[Level, Trial]]]) -> tuple[str, Level, float]:
        options = [(name, level, self._promise(trial)) for name, levels in open_.items() for level, trial in levels]
        return max(options, key=lambda option: option[2])

    def _promise(self, trial: Trial) -> float:
        """S expected of the choice with what this trial has on top of the base."""
        matches = self.best.agreement.matches & trial.agreement.matches
        cost = self.best.cost * trial.cost / self.base.cost
        return worth(matches, cost, self.verify).speed_up

    def findings(self, final: Trial) -> list[Finding]:
        """A line for each ingredient that was measured: its level in force, else its best alone, and why.

        final: what the last measure, over more text, found best of all.
        """
        return [self._finding(name, [trial for _, trial in levels], final) for name, levels in self.singles.items()]

    def _finding(self, name: str, alone: Sequence[Trial], final: Trial) -> Finding:
        if name in self.together:
            before, trial = self.together[name]
            if name not in self.taken:
                return trial.finding(Verdict.OFF, loss_in_words(before, trial))
            fields = self.singles[name][0][0].fields
            if any(getattr(final.recipe, field) != getattr(trial.recipe, field) for field in fields):
                return trial.finding(Verdict.OFF, f"over more text S is better without it, {final.speed_up:.2f}")
            return trial.finding(Verdict.ON, f"S from {before.speed_up:.2f} to {trial.speed_up:.2f}")
        best = max(alone, key=lambda trial: trial.speed_up)
        if best.gains_on(self.base):
            return best.finding(Verdict.OFF, "promises nothing beside what was chosen")
        return best.finding(Verdict.OFF, loss_in_words(self.base, best))


def loss_in_words(without: Trial, trial: Trial) -> str:
    """Why a trial is not worth taking: what it saves, and what that costs."""
    speed = f"S {trial.speed_up:.2f}, without it {without.speed_up:.2f}"
    if trial.cost > without.cost * 0.995:
        return f"a draft step gets no cheaper ({speed})"
    fall = without.agreement.acceptance - trial.agreement.acceptance
    if fall < 0.0005:
        return f"it saves too little ({speed})"
    return f"c falls by {without.cost - trial.cost:.3f}, but α by {fall:.3f} ({speed})"
