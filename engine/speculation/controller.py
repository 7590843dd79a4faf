"""How far to draft: measures costs and acceptance as a reply runs, and picks what yields most tokens per second.

Everything is counted in plain steps. With c the cost of a draft step, v(g) that of a verify pass over g + 1 rows and
a_k the probability that proposal k is accepted when those before it were, a cycle of length g yields
E(g) = 1 + a_1 + a_1 a_2 + ... + a_1..a_g tokens for g c + v(g). `next_gamma` maximises the ratio, the speed-up S, and
answers 0, a plain step, where no S exceeds 1.

Within a cycle one more proposal is worth drafting while (tokens it adds) / (cost it adds) exceeds the rate the cycles
reach anyway: the stopping rule of a renewal-reward process. The probability that all proposals so far are right comes
from the draft's own confidence, calibrated against what verification found.

Never slower: drafting lives on an allowance. Every token earns it a little, every cycle adds or takes what it won or
lost against plain steps; when it is spent there are plain steps only. Where drafting does not pay, short probes look
again after pauses that double while they fail.

Pure logic: times are arguments, nothing here reads a clock or draws a random number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from engine.settings import MAX_GAMMA
from engine.speculation.estimates import CostProfile, SuccessRate, VerifyCost

_POSITION_STRENGTH = 12.0  # tests a position needs before it outweighs the acceptance over all positions
_CONFIDENCE_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
_REFRESH_FIRST, _REFRESH_LAST = 4, 32  # cycles between the plain steps that keep the comparison honest
_ALLOWANCE_CAP = 5.0  # also what a controller starts with
_EARNED_PER_TOKEN = 0.02
_PROBE_GAMMA = 2
_PAUSE_FIRST, _PAUSE_LAST = 24, 384  # plain steps before a probe
_RATE_MEMORY = 0.95  # weight of older cycles in the rate reached


class GammaController:
    """Chooses gamma, cycle by cycle, for one model. Lives across replies; not thread-safe.

    max_gamma: longest draft. fixed: always this gamma, with rare plain steps to know their time; None adapts.
    costs: first guesses of c and v, say from the last session; measurements replace them.
    """

    def __init__(
        self, max_gamma: int = MAX_GAMMA, *, fixed: int | None = None, costs: CostProfile | None = None
    ) -> None:
        costs = costs or CostProfile()
        self._max, self._fixed = max_gamma, fixed
        self._draft_guess = costs.draft
        self._verify = VerifyCost(costs.verify_base, costs.verify_slope)
        self._plain_times: deque[float] = deque(maxlen=9)
        self._draft_times: deque[float] = deque(maxlen=15)
        self._overall = SuccessRate(0.7, 4.0)
        self._positions = [SuccessRate(0.7, _POSITION_STRENGTH) for _ in range(max(max_gamma, fixed or 0))]
        edges = _CONFIDENCE_EDGES
        # Two variants of one model agree on their best token more often than either is sure of it.
        self._confidence = [SuccessRate(((a + b) / 2) ** 0.5, 2.0) for a, b in pairwise(edges)]
        self._tokens = self._cost = 0.0  # of recent cycles, decayed: the rate they reach
        self._allowance = _ALLOWANCE_CAP
        self._refresh_after, self._cycles_since_plain = _REFRESH_FIRST, 0
        self._pause, self._wait, self._probing = _PAUSE_FIRST, 0, False
        self._gamma, self._step_cost, self._reach = 0, costs.draft, 1.0
        self._stops_early = False  # whether the caller asks keep_drafting

    @property
    def plain_seconds(self) -> float | None:
        """Time of a plain step: the median of the last measured; None before the first."""
        return median(self._plain_times) if self._plain_times else None

    @property
    def draft_cost(self) -> float:
        """c, a draft step in plain steps: measured, else the guess."""
        plain = self.plain_seconds
        return median(self._draft_times) / plain if plain and self._draft_times else self._draft_guess

    def verify_cost(self, gamma: int) -> float:
        """v(gamma), a verify pass over gamma + 1 rows in plain steps."""
        return self._verify(gamma)

    def profile(self) -> CostProfile:
        """What was measured, as the guesses of the model's next controller."""
        return CostProfile(self.draft_cost, self._verify.base, self._verify.slope)

    def speed_ups(self) -> list[float]:
        """S expected of cycles of length 1, 2, ... up to the limit."""
        draft_cost, overall = self.draft_cost, self._overall.value()
        reach, expected, gains = 1.0, 1.0, []
        for gamma, rate in enumerate(self._positions[: self._max], start=1):
            reach *= rate.value(overall)
            expected += reach
            gains.append(expected / (gamma * draft_cost + self._verify(gamma)))
        return gains

    def next_gamma(self) -> int:
        """How many tokens to draft now, at most; 0 asks for a plain step. Ask once a step."""
        self._gamma, self._step_cost = self._decide(), self.draft_cost
        return self._gamma

    def keep_drafting(self, drafted: int, probability: float) -> bool:
        """Whether to draft another token, after the `drafted`-th (from 1) was proposed with this probability."""
        self._stops_early = True
        if drafted >= self._gamma:
            return False
        if self._fixed is not None:
            return True
        self._reach = (1.0 if drafted == 1 else self._reach) * self._bucket(probability).value()
        tokens = self._reach * self._positions[drafted].value(self._overall.value())
        cost = self._step_cost + self._verify(drafted + 1) - self._verify(drafted)
        return tokens > cost * max(1.0, self._reached_rate())

    def record_plain(self, seconds: float) -> None:
        """A plain step took this long."""
        self._plain_times.append(seconds)
        self._cycles_since_plain = 0
        self._earn(_EARNED_PER_TOKEN)
        if self._wait:
            self._wait -= 1
            self._probing = self._wait == 0

    def record_cycle(
        self,
        gamma: int,
        accepted: int,
        tested: int,
        drafted_probs: Sequence[float],
        draft_seconds: float,
        verify_seconds: float,
    ) -> None:
        """A cycle drafted `gamma` >= 1 tokens, with these probabilities, of which `tested` were judged."""
        for i in range(tested):
            for rate in (self._overall, self._positions[i], self._bucket(drafted_probs[i])):
                rate.add(i < accepted)
        self._draft_times.append(draft_seconds / gamma)
        self._cycles_since_plain += 1
        plain = self.plain_seconds
        if plain is None:
            return
        self._verify.add(gamma, verify_seconds / plain)
        # One hiccup of the machine must not cost minutes of drafting.
        usual = gamma * self.draft_cost + self._verify(gamma)
        cost = min((draft_seconds + verify_seconds) / plain, 1.5 * usual)
        self._tokens = _RATE_MEMORY * self._tokens + accepted + 1
        self._cost = _RATE_MEMORY * self._cost + cost
        self._earn(_EARNED_PER_TOKEN * (accepted + 1) + accepted + 1 - cost)
        self._after_cycle(accepted == gamma)

    def _decide(self) -> int:
        if not self._plain_times or self._cycles_since_plain >= self._refresh_after:
            self._refresh_after = min(2 * self._refresh_after, _REFRESH_LAST)
            return 0
        if self._fixed is not None:
            return self._fixed
        if self._wait:
            return 0
        if self._probing:
            return min(_PROBE_GAMMA, self._max) if self._allowance > 0 else 0
        gains = self.speed_ups()
        best = 1 + gains.index(max(gains))
        if self._allowance > 0 and gains[best - 1] > 1.0:
            # The best fixed length is too short a limit where unsure drafts end early and only sure ones reach it.
            return min(best + 2 + best // 2, self._max) if self._stops_early else best
        self._give_up()
        return 0

    def _after_cycle(self, all_right: bool) -> None:
        if self._allowance >= _ALLOWANCE_CAP:
            self._pause = _PAUSE_FIRST  # drafting has won back all it lost
        if self._probing:
            self._probing = False
            if not all_right:
                self._give_up()
            elif max(self.speed_ups()) <= 1.0 and self._allowance > 0:
                self._probing = True  # promising: look once more

    def _give_up(self) -> None:
        self._wait, self._pause = self._pause, min(2 * self._pause, _PAUSE_LAST)

    def _earn(self, amount: float) -> None:
        self._allowance = min(max(self._allowance + amount, -_ALLOWANCE_CAP), _ALLOWANCE_CAP)

    def _reached_rate(self) -> float:
        return self._tokens / self._cost if self._cost else 1.0

    def _bucket(self, probability: float) -> SuccessRate:
        return self._confidence[min(bisect_right(_CONFIDENCE_EDGES, probability), len(self._confidence)) - 1]
