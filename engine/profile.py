"""How far drafts get: acceptance by position in the draft, tokens by cycle, and from where on drafting pays."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from engine.records import CycleRecord
from engine.statistics import ReplyStatistics

Z_95 = 1.96


@dataclass(frozen=True, slots=True)
class PositionShare:
    """Of the cycles that drafted `position` tokens (from 1) or more, in how many the first `position` were accepted."""

    position: int
    cycles: int
    accepted: int

    @property
    def share(self) -> float:
        """accepted / cycles."""
        return self.accepted / self.cycles

    @property
    def band(self) -> tuple[float, float]:
        """The 95 % band of the share (Wilson's, which stays within 0 and 1 and is right for few cycles too)."""
        n, p, z = self.cycles, self.share, Z_95
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, slots=True)
class Profile:
    """Sums over the cycles of a reply. `drafted[i]` and `accepted[i]` are of position i + 1; `tokens[k]`: cycles that
    added k tokens to the reply. `widest`: tokens that the longest draft could have added."""

    drafted: tuple[int, ...] = ()
    accepted: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    widest: int = 1

    def with_cycle(self, record: CycleRecord) -> Profile:
        """These figures plus one more cycle."""
        length = len(record.drafted_ids)
        return replace(
            self,
            drafted=_raised(self.drafted, length),
            accepted=_raised(self.accepted, min(record.accepted, length), at_least=length),
            tokens=_counted(self.tokens, len(record.emitted_ids)),
            widest=max(self.widest, length + 1),
        )

    @property
    def positions(self) -> tuple[PositionShare, ...]:
        """Every position that was ever drafted, from 1 on."""
        pairs = zip(self.drafted, self.accepted, strict=True)
        return tuple(PositionShare(i, cycles, kept) for i, (cycles, kept) in enumerate(pairs, 1))

    @property
    def token_shares(self) -> tuple[float, ...]:
        """Share of the cycles that added 1, 2, ... `widest` tokens; empty before the first cycle."""
        cycles = sum(self.tokens)
        if not cycles:
            return ()
        counts = self.tokens + (0,) * (self.widest + 1)
        return tuple(count / cycles for count in counts[1 : self.widest + 1])


def _raised(counts: tuple[int, ...], upto: int, at_least: int = 0) -> tuple[int, ...]:
    """The first `upto` counts one higher; there are at least so many, and `at_least`."""
    size = max(len(counts), upto, at_least)
    filled = counts + (0,) * (size - len(counts))
    return tuple(count + (i < upto) for i, count in enumerate(filled))


def _counted(counts: tuple[int, ...], value: int) -> tuple[int, ...]:
    filled = counts + (0,) * (value + 1 - len(counts))
    return tuple(count + (i == value) for i, count in enumerate(filled))


def break_even_acceptance(statistics: ReplyStatistics) -> float | None:
    """The acceptance at which cycles of this reply's mean length would be just as fast as plain decoding.

    With g drafts of cost c and a verify pass of cost v, and every draft accepted with the same chance a, a cycle makes
    1 + a + ... + a^g tokens in g c + v plain steps. None before it was measured, and where no acceptance would pay.
    """
    cost, verify = statistics.draft_cost, statistics.verify_cost
    if cost is None or verify is None:
        return None
    drafts = statistics.drafted / statistics.drafting_cycles
    needed = drafts * cost + verify
    if needed > drafts + 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _tokens(middle, drafts) < needed else (low, middle)
    return high


def _tokens(acceptance: float, drafts: float) -> float:
    """Tokens of a cycle of `drafts` drafts, of which there may be a fraction."""
    if acceptance >= 1:
        return drafts + 1
    return float((1 - acceptance ** (drafts + 1)) / (1 - acceptance))


def break_even_share(statistics: ReplyStatistics) -> float | None:
    """c S: a draft pays while its chance of being kept is above its cost at the speed reached. None until measured."""
    cost, speed_up = statistics.draft_cost, statistics.speed_up
    return None if cost is None or speed_up is None else cost * speed_up
