"""What a draft is worth: the controller's formula over positions where the draft was compared with the model.

With c the cost of a draft step and v(g) that of a verify pass after g proposals, both in plain steps, cycles of length
g that yield E tokens each make text S = E / (g c + v(g)) times as fast as plain steps. E is counted by walking such
cycles along the compared text, so that easy and hard stretches weigh as they come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.settings import MAX_GAMMA


@dataclass(frozen=True, slots=True)
class Worth:
    """Of the best gamma: tokens a cycle yields, and S."""

    gamma: int
    tokens: float
    speed_up: float


def worth(matches: np.ndarray, cost: float, verify: Callable[[int], float]) -> Worth:
    """The best gamma for a draft that agrees with the model where `matches` (bool [positions]) says.

    cost: c. verify: v by gamma. Equal S goes to the shorter draft. One miss is thought at the end: what was never seen
    in a few positions need not be far.
    """
    options = []
    matches = np.append(matches, False)
    for gamma in range(1, MAX_GAMMA + 1):
        tokens = tokens_per_cycle(matches, gamma)
        options.append(Worth(gamma, tokens, tokens / (gamma * cost + verify(gamma))))
    return max(options, key=lambda option: option.speed_up)


def tokens_per_cycle(matches: np.ndarray, gamma: int) -> float:
    """Tokens that cycles of length `gamma` yield on the average, walking along `matches` from its beginning."""
    if not len(matches):
        return 1.0
    misses = np.append(np.flatnonzero(~matches), len(matches))
    place = cycles = 0
    while place < len(matches):
        run = misses[np.searchsorted(misses, place)] - place
        place += min(run, gamma) + 1
        cycles += 1
    return min(len(matches) / cycles, gamma + 1.0)
