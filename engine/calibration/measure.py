"""Measures of one loaded model: what passes cost, in turns with plain steps, and how often a draft is right.

Costs are ratios of two passes made one after the other, so that whatever else the machine does meets both; the median
of many such ratios is taken. Drafts are compared along text that the model chose itself: the tokens before a position
are the true ones, as they are in a cycle whose earlier proposals were accepted, and the draft's own rows of the block
are in the cache, as there. A full pass over the block overwrites them before anything else reads the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from engine.calibration.replies import OwnText, Reader
from engine.calibration.timing import PassTimes
from engine.errors import NumericFault
from engine.model.runner import MAX_DECODE_ROWS, MAX_DRAFT_ROWS, Runner
from engine.recipe import Recipe

LEAST_PAIRS, MOST_PAIRS = 5, 41  # passes compared for one ratio
RATIO_SECONDS = 0.5  # of comparing passes for one ratio, within those
VERIFY_ROWS = (2, 16, 5, 8, 3, 11, 4, 6)  # the order tells what to do without where time is short
FEW_ROWS = (4, 8, 2)  # likewise
WORST_LOSS = 20.0  # nats, where the draft computes nonsense or has no row for the token
REFRESH_POSITIONS = 32  # between two choices of MLP neurons by moving average, about as in a reply


@dataclass(frozen=True, slots=True)
class Agreement:
    """matches: bool [positions], whether the draft's best token is the model's. loss: mean nats it gives that token."""

    matches: np.ndarray
    loss: float

    @property
    def acceptance(self) -> float:
        """alpha; 0 where nothing was compared."""
        return float(self.matches.mean()) if len(self.matches) else 0.0


class Bench:
    """Measures a runner. check: asked before every pass, raises to stop."""

    def __init__(self, runner: Runner, reader: Reader, times: PassTimes, check: Callable[[], None]) -> None:
        self._runner, self._reader, self._times, self._check = runner, reader, times, check
        self.plain_seconds = 0.0

    def verify(self, text: OwnText, rows: int) -> float:
        """v: a full pass over so many rows, in plain steps."""
        return self._in_plain_steps(text, lambda at: self._times.full(text.ids[at : at + rows], at), rows)

    def draft_cost(self, text: OwnText) -> float:
        """c: a draft step by the recipe in force, in plain steps."""
        return self._in_plain_steps(text, lambda at: self._times.draft(text.ids[at : at + 1], at), 1)

    def few_rows(self, text: OwnText, rows: int) -> float:
        """A draft pass over so many rows, in draft steps of one row."""

        def pair(at: int) -> tuple[float, float]:
            times = [self._times.draft(text.ids[at : at + width], at) for width in (rows, 1)]
            self._runner.full(text.ids[at : at + rows], at, 0)
            return times[0], times[1]

        return self._ratio(text, rows, pair)

    def agreement(self, texts: Sequence[OwnText], most: int | None = None) -> Agreement:
        """The draft by the recipe in force against the model, over the first `most` chosen tokens of the texts.

        Tokens are compared in their order, and read by the full model only after that: a draft may learn from what
        full passes read.
        """
        compared: list[tuple[bool, float]] = []
        for text in texts:
            left = text.chosen if most is None else most - len(compared)
            compared += self._compared(text, text.first + min(left, text.chosen))
        if not compared:
            return Agreement(np.zeros(0, bool), 0.0)
        matches, losses = zip(*compared, strict=True)
        return Agreement(np.array(matches, bool), float(np.mean(losses)))

    def _compared(self, text: OwnText, end: int) -> list[tuple[bool, float]]:
        """Match and loss at each chosen token of a text before position `end`."""
        compared: list[tuple[bool, float]] = []
        width = block_width(self._runner.recipe)
        for at in range(text.first - 1, end - 1, MAX_DRAFT_ROWS):
            self._check()
            self._reader.hold(text.ids[:at])
            if self._runner.recipe.neuron_share < 1 and len(compared) % REFRESH_POSITIONS == 0:
                self._runner.refresh_neurons()
            block = text.ids[at : min(at + MAX_DRAFT_ROWS, end - 1)]
            for i in range(0, len(block), width):
                rows = self._runner.draft(block[i : i + width], at + i)
                compared += [self._compare(row, text.ids[at + i + 1 + k]) for k, row in enumerate(rows)]
            self._reader.hold(text.ids[: at + len(block)])
        return compared

    def _compare(self, row: np.ndarray, token: int) -> tuple[bool, float]:
        try:
            best, top, total = self._runner.peak(row, None)
        except NumericFault:
            return False, WORST_LOSS
        loss = float(top) - float(row[token]) + float(np.log(total))
        return best == token, min(loss, WORST_LOSS)

    def _in_plain_steps(self, text: OwnText, measured: Callable[[int], float], rows: int) -> float:
        """What a pass takes that may leave a draft's row at its first position: the plain step after it mends that."""
        plains: list[float] = []

        def pair(at: int) -> tuple[float, float]:
            seconds = measured(at)
            plains.append(self._times.full(text.ids[at : at + 1], at))
            return seconds, plains[-1]

        ratio = self._ratio(text, rows, pair)
        self.plain_seconds = median(plains[1:])
        return ratio

    def _ratio(self, text: OwnText, rows: int, pair: Callable[[int], tuple[float, float]]) -> float:
        """Median ratio of the two times of `pair` at positions of the text from which `rows` tokens can be read."""
        self._reader.hold(text.ids)
        places = _places(text, rows)
        ratios: list[float] = []
        spent = 0.0
        while len(ratios) <= LEAST_PAIRS or (spent < RATIO_SECONDS and len(ratios) <= MOST_PAIRS):
            self._check()
            over, under = pair(places[len(ratios) % len(places)])
            ratios.append(over / under if under > 0 else 1.0)
            spent += over + under
        return median(ratios[1:])  # the first pair may meet cold code


def block_width(recipe: Recipe) -> int:
    """Rows that may be drafted in one pass to compare them: 1 where a row's weights are chosen for the row."""
    chosen = recipe.neuron_share < 1 or recipe.head_share < 1 or recipe.input_sparsity > 0
    return 1 if chosen else MAX_DRAFT_ROWS


def _places(text: OwnText, rows: int) -> range:
    """Positions from which `rows` tokens of the text can be read, its reply's where they fit there."""
    last = max(0, len(text.ids) - rows)
    return range(min(text.first, last), last + 1)


def widths_within(limit: int) -> tuple[int, ...]:
    """Rows of verify passes to time in a text of `limit` tokens."""
    return tuple(rows for rows in VERIFY_ROWS if rows <= min(limit, MAX_DECODE_ROWS))
