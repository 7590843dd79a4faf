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

_MANY_ROWS = 48  # as many as any full pass has
_RISKED = 0.3  # share of the allowance that a cycle may be expected to lose; all of it is the most it can lose
_AHEAD = 0.1  # the least that passes after the next one are taken to be worth in tokens: tuned on traces


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
    reach. allowance: what the cycle may lose against a plain step, were all of it wrong. fixed: draft exactly gamma.
    """

    def __init__(
        self, measured: Measured, gamma: int, most: int, rate: float, allowance: float = math.inf, fixed: bool = False
    ) -> None:
        self._measured, self._gamma, self._most = measured, gamma, most
        self._rate, self._allowance, self._fixed = max(1.0, rate), allowance, fixed
        self._spent = 0.0
        self._reaches = [1.0]  # probability that the first 0, 1, 2, ... of the block are right

    def next_pass(self, drafted: int, found: Found, widest: int) -> int | None:
        """How many looked-up tokens the next draft pass should check; None to draft no more.

        drafted: length of the block. widest: tokens a draft pass takes.
        """
        if drafted >= self._most or (self._fixed and drafted >= self._gamma):
            return None
        widest = min(widest, self._most - drafted, 1 + len(found.ids))
        counts = [0, *(count for count in range(1, widest) if self._loss(drafted, count) <= self._allowance)]
        net, best = max((self._net_of_pass(drafted, found, count), count) for count in counts)
        if self._fixed:
            return best
        # Going on keeps the chance of more tokens and of a tail later; ending takes the tail that there is now.
        later = self._later(drafted) if found.ids else _AHEAD
        ahead = net + self._reaches[-1] * self._own(drafted) * (later + self._measured.tail_gain)
        tail = self._net_of_tail(drafted, found)
        self._measured.saw_tail(tail / max(0.05, self._reaches[-1]))
        if not drafted:
            return None if tail > max(0.0, ahead) else best
        wasted = (1.0 - self._reaches[-1]) * (self._spent + self._measured.pass_cost(1 + best))
        bearable = wasted <= _RISKED * self._allowance and self._loss(drafted, best) <= self._allowance
        return best if bearable and (best or drafted < self._gamma) and ahead > tail else None

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
        price, rows = self._price_of_row, min(rows, self._bearable_rows(len(block)))
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

    @property
    def _price_of_row(self) -> float:
        """Tokens that a row of the full pass must bring."""
        return self._rate * self._measured.verify.slope

    def _own(self, drafted: int) -> float:
        """Probability that the draft's next token is right, the block being so."""
        positions = self._measured.positions
        return positions[min(drafted, len(positions) - 1)].value(self._measured.overall.value())

    def _later(self, drafted: int) -> float:
        """Net tokens that passes after the next one are worth, were all right until then, where a tail could end all.

        Near the point where steps just pay, blocks end early, and little of what they could bring comes.
        """
        own, step = self._own(drafted), self._rate * (self._measured.draft_cost + self._measured.verify.slope)
        if step >= own:
            return _AHEAD
        net = sum(max(0.0, own**k - step) for k in range(1, self._most - drafted))
        return max(_AHEAD, net * (1.0 - step / own) ** 2)

    def _loss(self, drafted: int, count: int) -> float:
        """What the cycle loses if nothing of it is right and the next pass checks `count` look-ups."""
        return self._spent + self._measured.pass_cost(1 + count) + self._measured.verify(drafted + count + 1) - 1.0

    def _bearable_rows(self, drafted: int) -> int:
        """Rows beside the block that the allowance bears."""
        left = self._allowance - (self._spent + self._measured.verify(drafted) - 1.0)
        slope = self._measured.verify.slope
        return max(0, int(left / slope)) if slope * _MANY_ROWS > left else _MANY_ROWS

    def _net_of_pass(self, drafted: int, found: Found, count: int) -> float:
        """Tokens of a draft pass that checks `count` looked-up tokens, less what its cost would bring elsewhere."""
        measured, reach = self._measured, self._reaches[-1]
        step = self._rate * (measured.draft_cost + measured.verify.slope)
        net = reach * self._own(drafted) - step - self._rate * (measured.pass_cost(1 + count) - measured.draft_cost)
        agrees = 1.0
        for place in range(count):
            agrees *= measured.lookup(found.length, place)
            reach *= measured.agreed.value()
            # A token the draft agrees with is worth the step it saves, or itself where no step would be made for it.
            net += agrees * min(reach, step)
        return net

    def _tail_gains(self, drafted: int, found: Found) -> list[float]:
        """Tokens that each of the look-up brings when nobody checks it."""
        reach, gains = self._reaches[-1], []
        for place in range(min(len(found.ids), self._most - drafted)):
            reach *= self._measured.lookup(found.length, place)
            gains.append(reach)
        return gains

    def _net_of_tail(self, drafted: int, found: Found) -> float:
        """The same as for a pass, for the best length of an unchecked tail."""
        price = self._price_of_row
        return sum(gain - price for gain in self._tail_gains(drafted, found) if gain > price)
