"""What cycles have shown of one model and its draft: costs in plain steps, and how often which proposals are right."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from statistics import median

from engine.settings import MAX_GAMMA
from engine.speculation.block import JudgedBlock
from engine.speculation.drafter import Proposal
from engine.speculation.estimates import BandedRate, CostProfile, RowCost, SuccessRate
from engine.speculation.prompt_kind import UNKNOWN_PROMPT, PromptKind

_POSITION_STRENGTH = 12.0  # tests a position needs before it outweighs the acceptance over all positions
_CONFIDENCE_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
# Share of the runner-up in the probability of both, and how often the first and the second are right where all before
# is: as measured on the starter model with a 4-bit draft. It tells better than the probability of the first alone.
_SHARE_EDGES = (0.0, 0.01, 0.03, 0.06, 0.12, 0.2, 0.3, 0.4, 0.45, 1.0)
_FIRST_BY_SHARE = (0.998, 0.995, 0.99, 0.985, 0.96, 0.87, 0.73, 0.58, 0.46)
_SECOND_BY_SHARE = (0.0005, 0.001, 0.003, 0.008, 0.03, 0.09, 0.19, 0.32, 0.4)
# Length of the suffix a look-up was found by; how often its first token, and each later one, is what the draft chooses.
_LENGTH_EDGES = (2, 3, 4, 6, 9, 100)
_FIRST_PRIORS = (0.25, 0.4, 0.55, 0.75, 0.9)
_LATER_PRIORS = (0.7, 0.75, 0.8, 0.9, 0.95)
_AGREED_PRIOR = 0.97  # a token that was looked up and is the draft's choice too
_WEIGHT_OF_A_PROMPT = 12.0  # tests that all look-ups of a prompt in itself count for
_MEMORY_OF_A_REPLY = 12.0  # tests that an earlier reply's acceptance counts for at the start of the next


class Measured:
    """Estimates for one model, recipe and device. Lives across replies; no clock, no chance.

    plain_seconds: a plain step, the median of the last measured; None before the first.
    draft_cost: c, a draft step over one token in plain steps: measured, else the guess.
    """

    def __init__(self, costs: CostProfile, longest: int = MAX_GAMMA) -> None:
        self._guess = costs
        self.verify = RowCost(costs.verify_base, costs.verify_slope)
        self._few = RowCost(costs.few_base, costs.few_slope)  # in draft steps
        self._plain_times: deque[float] = deque(maxlen=9)
        self._draft_times: deque[float] = deque(maxlen=15)
        # Medians of the two: asked for many times a cycle, while the card waits.
        self.plain_seconds: float | None = None
        self.draft_cost = costs.draft
        self.overall = SuccessRate(0.7, 4.0)
        self.positions = [SuccessRate(0.7, _POSITION_STRENGTH) for _ in range(longest)]
        edges = _CONFIDENCE_EDGES
        # Two variants of one model agree on their best token more often than either is sure of it.
        self._confidence = BandedRate(edges, [((a + b) / 2) ** 0.5 for a, b in pairwise(edges)], 2.0)
        self._first_by_share = BandedRate(_SHARE_EDGES, _FIRST_BY_SHARE, 4.0)
        self._second_by_share = BandedRate(_SHARE_EDGES, _SECOND_BY_SHARE, 6.0)
        self.tail_gain = 0.15
        self.agreed = SuccessRate(_AGREED_PRIOR, 8.0)
        self.start_reply()

    def start_reply(self, kind: PromptKind = UNKNOWN_PROMPT) -> None:
        """A new prompt: what was learnt of other texts counts for less, and look-ups start from the prompt's own."""
        for rate in (self.overall, *self.positions):
            rate.loosen(_MEMORY_OF_A_REPLY)
        self._first = BandedRate(_LENGTH_EDGES, _FIRST_PRIORS, 4.0)
        self._later = BandedRate(_LENGTH_EDGES, _LATER_PRIORS, 4.0)
        total = sum(count for _, _, count in kind.outcomes)
        for length, hit, count in kind.outcomes:
            self._first.at(length).add(hit, count * min(1.0, _WEIGHT_OF_A_PROMPT / total))

    def pass_cost(self, rows: int) -> float:
        """A draft pass over `rows` tokens, in plain steps."""
        return self.draft_cost * (1.0 if rows == 1 else max(1.0, self._few(rows - 2)))

    def profile(self) -> CostProfile:
        """What was measured, as the guesses of the model's next session."""
        return CostProfile(self.draft_cost, self.verify.base, self.verify.slope, self._few.base, self._few.slope)

    def confidence(self, proposal: Proposal) -> float:
        """Probability that a proposal is right, those before it being so."""
        return self._confidence_rate(proposal).value()

    def second(self, proposal: Proposal) -> float:
        """Probability that the runner-up is right, the proposals before it being so."""
        return self._second_by_share.at(_share(proposal)).value()

    def lookup(self, length: int, place: int) -> float:
        """Probability that the draft chooses a looked-up token, given that it chose those before it in the look-up."""
        return (self._later if place else self._first).at(length).value()

    def saw_lookup(self, length: int, place: int, hit: bool, weight: float = 1.0) -> None:
        """The draft (or the full model) chose, or did not choose, a looked-up token."""
        (self._later if place else self._first).at(length).add(hit, weight)

    def saw_tail(self, gain: float) -> None:
        """What the tail of a block is expected to bring, were all of the block right."""
        self.tail_gain += 0.05 * (gain - self.tail_gain)

    def add_plain(self, seconds: float) -> None:
        """A plain step took this long."""
        self._plain_times.append(seconds)
        self.plain_seconds = median(self._plain_times)
        self._compare()

    def add_block(self, block: JudgedBlock) -> None:
        """Learn from a cycle with at least one proposal."""
        self._add_outcomes(block)
        single = [draft.seconds for draft in block.passes if draft.rows == 1]
        if single:  # one figure a cycle, so that a hiccup of the machine is one of many
            self._draft_times.append(median(single))
            self._compare()
        plain = self.plain_seconds
        if plain is None:
            return
        self.verify.add(len(block.chain) + len(block.siblings), block.verify_seconds / plain)
        for draft in block.passes:
            if draft.rows > 1:
                self._few.add(draft.rows - 2, draft.seconds / plain / self.draft_cost)

    def forget_costs(self, longest: int) -> None:
        """Passes take other times from now on, and drafts may be as long as that: the model's parts lie elsewhere."""
        new = range(len(self.positions), longest)
        self.positions.extend(SuccessRate(0.7, _POSITION_STRENGTH) for _ in new)
        self._plain_times.clear()
        self.plain_seconds = None
        self.verify = RowCost(self._guess.verify_base, self._guess.verify_slope)
        self._few = RowCost(self._guess.few_base, self._guess.few_slope)

    def _compare(self) -> None:
        if self.plain_seconds and self._draft_times:
            self.draft_cost = median(self._draft_times) / self.plain_seconds

    def _add_outcomes(self, block: JudgedBlock) -> None:
        found = {place for draft in block.passes for place in draft.agreed}
        for place in range(min(block.acceptance.agreed + 1, len(block.chain))):
            proposal, right = block.chain[place], place < block.acceptance.agreed
            if place >= block.checked:
                self.saw_lookup(block.tail_length, place - block.checked, right)
                continue
            for rate in (self.overall, self.positions[place], self._confidence_rate(proposal)):
                rate.add(right)
            if place in found:
                self.agreed.add(right)
            if proposal.second_id is not None:
                self._second_by_share.at(_share(proposal)).add(block.chosen_ids[place] == proposal.second_id)

    def _confidence_rate(self, proposal: Proposal) -> SuccessRate:
        known = proposal.second_id is not None
        return self._first_by_share.at(_share(proposal)) if known else self._confidence.at(proposal.prob)


def _share(proposal: Proposal) -> float:
    both = proposal.prob + proposal.second_prob
    return proposal.second_prob / both if both > 0 else 0.5
