"""Running estimates for the gamma controller: a success rate that forgets, and the cost of a verify pass."""

from __future__ import annotations

from dataclasses import dataclass

_RATE_MEMORY = 0.985  # weight of older tests at each new one: about the last 65 count
_COST_MEMORY = 0.95


@dataclass(frozen=True, slots=True)
class CostProfile:
    """Costs of one model in plain steps: a draft step, and a verify pass after gamma proposals as base + slope gamma.

    The defaults are guesses for a model never measured: low enough to let drafting show what it can do.
    """

    draft: float = 0.4
    verify_base: float = 1.02
    verify_slope: float = 0.02


class SuccessRate:
    """A probability from decayed counts, drawn to `prior` with the weight of `strength` observations."""

    def __init__(self, prior: float, strength: float) -> None:
        self._prior, self._strength = prior, strength
        self._hits = self._total = 0.0

    def add(self, hit: bool) -> None:
        """One more test."""
        self._hits = _RATE_MEMORY * self._hits + hit
        self._total = _RATE_MEMORY * self._total + 1.0

    def value(self, prior: float | None = None) -> float:
        """The estimate; `prior` replaces the one given at the start."""
        base = self._prior if prior is None else prior
        return (self._hits + self._strength * base) / (self._total + self._strength)


class VerifyCost:
    """v(gamma) = base + slope gamma, in plain steps: decayed least squares, drawn to a guess, outliers clipped."""

    def __init__(self, base: float, slope: float) -> None:
        self.base, self.slope = base, slope
        self._guess = (base, slope)
        self._sums = [0.0] * 5  # decayed sums of 1, g, g^2, y, g y, with y the excess over the guess

    def __call__(self, gamma: int) -> float:
        return max(0.1, self.base + self.slope * gamma)

    def add(self, gamma: int, cost: float) -> None:
        """A verify pass after `gamma` proposals took `cost` plain steps."""
        if self._sums[0] >= 3.0:
            cost = min(max(cost, 0.6 * self(gamma)), 1.6 * self(gamma))
        y = cost - self._guess[0] - self._guess[1] * gamma
        fresh = (1.0, gamma, gamma * gamma, y, gamma * y)
        self._sums = [_COST_MEMORY * old + new for old, new in zip(self._sums, fresh, strict=True)]
        n, g, gg, y, gy = self._sums
        n, gg = n + 0.5, gg + 8.0  # the pull to the guess: half an observation on the base, eight on the slope
        determinant = n * gg - g * g
        self.base = self._guess[0] + (gg * y - g * gy) / determinant
        self.slope = self._guess[1] + (n * gy - g * y) / determinant
