"""What another draft length would have made of the cycles that were measured. No guesses beyond what was drafted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.profile import PositionShare


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Cycles of `gamma` drafts: tokens that each would have yielded, and how many times as fast as plain they are."""

    gamma: int
    tokens: float
    speed_up: float


def what_if(positions: Sequence[PositionShare], cost: float, verify: float) -> tuple[WhatIf, ...]:
    """S for every draft length that was reached, from 1 on.

    positions: how often the first i drafts were all accepted, i from 1 without gaps. cost, verify: c and v, in plain
    steps; the v of longer drafts is taken for shorter ones too, so their S is rather too low than too high.
    """
    found, tokens = [], 1.0
    for share in positions:
        tokens += share.share
        spent = share.position * cost + verify
        if spent > 0:
            found.append(WhatIf(share.position, tokens, tokens / spent))
    return tuple(found)


def best_length(positions: Sequence[PositionShare], cost: float, verify: float) -> WhatIf | None:
    """The length of highest S, the shortest of equals; None where nothing was drafted."""
    return max(what_if(positions, cost, verify), key=lambda option: option.speed_up, default=None)
