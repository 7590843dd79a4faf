"""Positions of the budget's slider and what they stand for: GB up to a bit more than the model needs, then all."""

from __future__ import annotations

from dataclasses import dataclass

STEPS = 200
BELOW, ABOVE = 0.85, 1.15  # of the least and of the most that the model could use
UNKNOWN = (0.5, 24.0)  # GB, before anything is known of the model
SMALLEST = 0.001


@dataclass(frozen=True, slots=True)
class BudgetScale:
    """low, high: GB of the first position and of the last but one; the last is "what is free", a budget of 0."""

    low: float = UNKNOWN[0]
    high: float = UNKNOWN[1]

    @classmethod
    def of(cls, least: int, whole: int, total: float | None, present: float) -> BudgetScale:
        """For a model that needs `least` bytes and has use for `whole`, of `total` where that is known.

        present: the budget in GB that must have a place on the scale too; 0 has one.
        """
        low, high = least * BELOW / 1e9, whole * ABOVE / 1e9
        if total is not None:
            high = min(high, total / 1e9)
        high = max(high, least * ABOVE / 1e9)
        if present:
            low, high = min(low, present), max(high, present)
        return cls(max(low, SMALLEST), high)

    @property
    def decimals(self) -> int:
        """Digits after the point that tell neighbours apart."""
        return 3 if self.high < 2 else 2 if self.high < 30 else 1

    def budget_at(self, position: int) -> float:
        """GB at a position, 0 at the last."""
        if position >= STEPS:
            return 0.0
        return round(self.low + (self.high - self.low) * position / (STEPS - 1), self.decimals)

    def position_of(self, budget: float) -> int:
        """Where a budget in GB stands."""
        if not budget:
            return STEPS
        share = (budget - self.low) / (self.high - self.low)
        return min(STEPS - 1, max(0, round(share * (STEPS - 1))))
