"""Decisions inside one cycle: go on drafting or not, over how many rows, and what else the full pass should try.

What a move brings is counted in tokens, what it costs in plain steps. It is worth making while tokens exceed cost
times the rate that cycles reach anyway: the stopping rule of a renewal-reward process. `reach` is the probability that
all of the block so far is right, from the draft's confidence, calibrated against what verification found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.speculation.drafter import Proposal, SiblingPlan
from engine.speculation.lookup import Found
from engine.speculation.measured import Measured


@dataclass(frozen=True, slots=True)
class Extras:
    """What the full pass tries beside the block: a tail of look-ups behind it, and siblings of its tokens.

    The tail's probabilities are those that such look-ups are right with.
    """

    tail: tuple[Proposal, ...]
    siblings: tuple[SiblingPlan, ...]


class CyclePlan:
    """One cycle's decisions.

    gamma: most tokens to draft one by one. most: tokens of the whole chain. rate: tokens a plain step that cycles
    reach. risk: what drafting may be expected to waste, in plain steps. fixed: draft exactly gamma.
    """

    def __init__(
        self, measured: Measured, gamma: int, most: int, rate: float, risk: float = math.inf, fixed: bool = False
    ) -> None:
        self._measured, self._gamma, self._most = measured, gamma, most
        self._rate, self._risk, self._fixed = max(1.0, rate), risk, fixed
        self._spent = 0.0
        self._reaches = [1.0]  # probability that the first 0, 1, 2, ... of the block are right

    def next_pass(self, drafted: int, found: Found, widest: int) -> int | None:
        """How many looked-up tokens the next draft pass should check; None to draft no more.

        drafted: length of the block. widest: tokens a draft pass takes.
        """
        if drafted >= self._most or (self._fixed and drafted >= self._gamma):
            return None
        room = min(self._most - drafted, widest) - 1
        nets = [self._net_of_pass(drafted, found, count) for count in range(min(room, len(found.ids)) + 1)]
        best = max(range(len(nets)), key=nets.__getitem__)
        if self._fixed or not drafted:
            return best
        wasted = (1.0 - self._reaches[-1]) * (self._spent + self._measured.pass_cost(1 + best))
        if (best == 0 and drafted >= self._gamma) or wasted > self._risk:
            return None
        return best if nets[best] > self._net_of_tail(drafted, found) else None

    def added(self, proposals: Sequence[Proposal], checked: int, found: Found) -> None:
        """The block has grown by these proposals, in a pass that checked `checked` tokens of the look-up."""
        for place in range(min(len(found.ids), len(proposals), max(checked, 1))):
            hit = proposals[place].id == found.ids[place]
            self._measured.saw_lookup(found.length, place, hit)
            if not hit:
                break
        self._spent += self._measured.pass_cost(1 + checked)
        for proposal in proposals:
            self._reaches.append(self._reaches[-1] * self._measured.confidence(proposal))

    def extras(self, block: Sequence[Proposal], found: Found, rows: int, most_siblings: int) -> Extras:
        """What to try beside the block in the `rows` rows that are left. found: what may follow the block."""
        price = self._rate * self._measured.verify.slope
        seconds = [
            (self._reaches[place] * self._measured.second(proposal), place)
            for place, proposal in enumerate(block)
            if proposal.second_id is not None
        ]
        chosen = sorted((gain, place) for gain, place in seconds if gain > price)[::-1][: min(most_siblings, rows)]
        tail = 0
        for gain in [] if self._fixed else self._tail_gains(len(block), found):
            full = tail + len(chosen) >= rows
            if gain <= price or (full and not (chosen and chosen[-1][0] < gain)):
                break
            if full:
                chosen.pop()  # a sibling gives way to what brings more
            tail += 1
        siblings = []
        for place in sorted(place for _, place in chosen):
            second = block[place].second_id
            assert second is not None  # only places with one were chosen
            siblings.append(SiblingPlan(place, second, block[place].second_prob))
        return Extras(tuple(self._looked_up(found, place) for place in range(tail)), tuple(siblings))

    def _looked_up(self, found: Found, place: int) -> Proposal:
        return Proposal(found.ids[place], self._measured.lookup(found.length, place))

    def _net_of_pass(self, drafted: int, found: Found, count: int) -> float:
        """Tokens of a draft pass that checks `count` looked-up tokens, less what its cost would bring elsewhere."""
        measured, reach = self._measured, self._reaches[-1]
        own = measured.positions[min(drafted, len(measured.positions) - 1)].value(measured.overall.value())
        step = self._rate * (measured.draft_cost + measured.verify.slope)
        net = reach * own - step - self._rate * (measured.pass_cost(1 + count) - measured.draft_cost)
        agrees = 1.0
        for place in range(count):
            agrees *= measured.lookup(found.length, place)
            reach *= measured.agreed.value()
            # A token the draft agrees with is worth the step it saves, or itself where no step would be made for it.
            net += agrees * min(reach, step)
        return net

    def _tail_gains(self, drafted: int, found: Found) -> list[float]:
        reach, gains = self._reaches[-1], []
        for place in range(min(len(found.ids), self._most - drafted)):
            reach *= self._measured.lookup(found.length, place)
            gains.append(reach)
        return gains

    def _net_of_tail(self, drafted: int, found: Found) -> float:
        """The same for the best length of an unchecked tail."""
        price = self._rate * self._measured.verify.slope
        return sum(gain - price for gain in self._tail_gains(drafted, found) if gain > price)
