"""From costs measured at a few widths of passes to costs at any width."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from engine.speculation.estimates import CostProfile


def interpolated(verify: Mapping[int, float]) -> Callable[[int], float]:
    """v by gamma, from costs by rows (gamma + 1): straight lines between them, and the last one on beyond.

    verify: at least the cost of one row.
    """
    rows = sorted(verify)
    costs = [verify[row] for row in rows]
    slope = (costs[-1] - costs[-2]) / (rows[-1] - rows[-2]) if len(rows) > 1 else 0.0

    def cost(gamma: int) -> float:
        beyond = max(0, gamma + 1 - rows[-1])
        return float(np.interp(gamma + 1, rows, costs)) + max(0.0, slope) * beyond

    return cost


def fitted(draft: float, verify: Mapping[int, float], few_rows: Sequence[tuple[int, float]]) -> CostProfile:
    """The controller's profile: straight lines through the measured costs, its own guesses where there are none."""
    guess = CostProfile()
    passes = [(rows - 1, cost) for rows, cost in verify.items() if rows > 1]
    base, slope = _line(passes, guess.verify_base, guess.verify_slope)
    few_base, few_slope = _line([(rows - 2, cost) for rows, cost in few_rows], guess.few_base, guess.few_slope)
    return CostProfile(draft, base, slope, few_base, few_slope)


def _line(points: Sequence[tuple[int, float]], base: float, slope: float) -> tuple[float, float]:
    """Base and slope of the line nearest to the points, not falling; one point only moves the base."""
    if not points:
        return base, slope
    x, y = (np.array(values, float) for values in zip(*points, strict=True))
    if len(points) > 1:
        slope = max(0.0, float(np.polyfit(x, y, 1)[0]))
    return float((y - slope * x).mean()), slope
