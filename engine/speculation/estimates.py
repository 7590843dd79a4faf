"""Running estimates: a success rate that forgets, success rates by band of a value, and costs that grow by rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_RATE_MEMORY = 0.985  # weight of older tests at each new one: about the last 65 count
_COST_MEMORY = 0.95


@dataclass(frozen=True, slots=True)
class CostProfile:
    """Costs of one model with one recipe on one device, in plain steps unless said otherwise.

    draft: a draft step. verify_base, verify_slope: a verify pass over g rows beside the first costs base + slope g.
    few_base, few_slope: a draft pass over r >= 2 rows costs base + slope (r - 2), in draft steps.
    The defaults are guesses for a model never measured: low enough to let drafting show what it can do.
    """

    draft: float = 0.4
    verify_base: float = 1.02
    verify_slope: float = 0.02
    few_base: float = 1.15
    few_slope: float = 0.04


def expected_tokens(rates: Iterable[float], extra: float = 0.0) -> Iterator[float]:
    """Tokens that cycles of 1, 2, ... proposals yield, where proposal k is right with probability rates[k] if those
    before it were. extra: that each cycle yields beside them, say by siblings."""
    reach, expected = 1.0, 1.0 + extra
    for rate in rates:
        reach *= rate
        expected += reach
        yield expected


class SuccessRate:
    """A probability from decayed counts, drawn to `prior` with the weight of `strength` observations."""

    def __init__(self, prior: float, strength: float) -> None:
        self._prior, self._strength = prior, strength
        self._hits = self._total = 0.0

    def add(self, hit: bool, weight: float = 1.0) -> None:
        """One more test."""
        self._hits = _RATE_MEMORY * self._hits + hit * weight
        self._total = _RATE_MEMORY * self._total + weight

    def value(self, prior: float | None = None) -> float:
        """The estimate; `prior` replaces the one given at the start."""
        base = self._prior if prior is None else prior
        return (self._hits + self._strength * base) / (self._total + self._strength)

    def loosen(self, weight: float) -> None:
        """Let what was seen so far count as at most `weight` tests from now on."""
        if self._total > weight:
            self._hits, self._total = self._hits * weight / self._total, weight


class BandedRate:
    """A success rate for each band of a value: bands[i] covers edges[i] to edges[i + 1]."""

    def __init__(self, edges: Sequence[float], priors: Sequence[float], strength: float) -> None:
        """priors: one a band, so one fewer than edges."""
        self._edges = tuple(edges)
        self._rates = [SuccessRate(prior, strength) for prior in priors]

    def at(self, value: float) -> SuccessRate:
        """The rate of a value's band; values beyond the edges belong to the outermost bands."""
        return self._rates[min(max(bisect_right(self._edges, value) - 1, 0), len(self._rates) - 1)]


class RowCost:
    """cost(n) = base + slope n: decayed least squares, drawn to a guess, outliers clipped."""

    def __init__(self, base: float, slope: float) -> None:
        self.base, self.slope = base, slope
        self._guess = (base, slope)
        self._sums = [0.0] * 5  # decayed sums of 1, n, n^2, y, n y, with y the excess over the guess

    def __call__(self, n: int) -> float:
        return max(0.1, self.base + self.slope * n)

    def add(self, n: int, cost: float) -> None:
        """A pass with `n` more rows cost this much."""
        usual, trust = self(n), self._sums[0] >= 3.0
        cost = min(max(cost, 0.6 * usual), 1.6 * usual) if trust else min(cost, 3.0 * usual)
        y = cost - self._guess[0] - self._guess[1] * n
        fresh = (1.0, n, n * n, y, n * y)
        self._sums = [_COST_MEMORY * old + new for old, new in zip(self._sums, fresh, strict=True)]
        count, s, ss, y, sy = self._sums
        count, ss = count + 0.5, ss + 8.0  # the pull to the guess: half an observation on the base, eight on the slope
        determinant = count * ss - s * s
        self.base = self._guess[0] + (ss * y - s * sy) / determinant
        self.slope = max(0.0, self._guess[1] + (count * sy - s * y) / determinant)
