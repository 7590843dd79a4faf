"""Whether to draft at all, and how far: measures costs and acceptance, and picks what yields most tokens per second.

Everything is counted in plain steps. With c the cost of a drafted token, v(g) that of a verify pass over g + 1 rows
and a_k the probability that proposal k is accepted when those before it were, a cycle of length g yields
E(g) = 1 + a_1 + a_1 a_2 + ... + a_1..a_g tokens for g c + v(g). `next_gamma` maximises the ratio, the speed-up S, and
answers 0, a plain step, where no S exceeds 1. Look-ups make drafted tokens cheaper, siblings add tokens: both enter as
recent cycles showed them. What is decided inside a cycle, token by token, is in cycle_plan.

Never slower: drafting lives on an allowance. Every token earns it a little, every cycle adds or takes what it won or
lost against plain steps; when it is spent there are plain steps only. Where drafting does not pay, short probes look
again after pauses that double while they fail.

Pure logic: times are arguments, nothing here reads a clock or draws a random number.
"""

from __future__ import annotations

from engine.settings import MAX_GAMMA
from engine.speculation.block import JudgedBlock
from engine.speculation.cycle_plan import CyclePlan
from engine.speculation.estimates import CostProfile, expected_tokens
from engine.speculation.measured import Measured
from engine.speculation.prompt_kind import UNKNOWN_PROMPT, PromptKind

_REFRESH_FIRST, _REFRESH_LAST = 4, 32  # cycles between the plain steps that keep the comparison honest
_ALLOWANCE_CAP = 5.0  # also what a controller starts with
_EARNED_PER_TOKEN = 0.02
_PROBE_GAMMA = 2
_PAUSE_FIRST, _PAUSE_LAST = 24, 384  # plain steps before a probe
_RATE_MEMORY = 0.95  # weight of older cycles in the rate reached
_RATE_STRENGTH = 3.0  # plain steps that the expected rate counts for beside the one reached


class GammaController:
    """Chooses gamma, cycle by cycle, for one model. Lives across replies; not thread-safe.

    max_gamma: longest draft. fixed: always this gamma, with rare plain steps to know their time; None adapts.
    costs: first guesses, say from the last session; measurements replace them.
    """

    def __init__(
        self, max_gamma: int = MAX_GAMMA, *, fixed: int | None = None, costs: CostProfile | None = None
    ) -> None:
        self._max, self._fixed = max_gamma, fixed
        self.measured = Measured(costs or CostProfile(), max_gamma)
        self._tokens = self._cost = 0.0  # of recent cycles, decayed: the rate they reach
        self._cycles = self._drafted = self._draft_cost = self._siblings = 0.0  # likewise
        self._allowance = _ALLOWANCE_CAP
        self._refresh_after, self._cycles_since_plain = _REFRESH_FIRST, 0
        self._pause, self._wait, self._probing = _PAUSE_FIRST, 0, False
        self._stops_early = False  # whether cycles are planned token by token
        self._gamma, self._why = 0, ""
        self._kind = UNKNOWN_PROMPT

    @property
    def plain_seconds(self) -> float | None:
        """Time of a plain step as last measured; None before the first."""
        return self.measured.plain_seconds

    def profile(self) -> CostProfile:
        """What was measured, as the guesses of the model's next controller."""
        return self.measured.profile()

    def start_reply(self, kind: PromptKind) -> None:
        """A reply to a new prompt begins."""
        self._kind = kind
        self.measured.start_reply(kind)

    def forget_costs(self, max_gamma: int) -> None:
        """Passes take other times from now on, and may be as wide as that; what is known of the text stays."""
        self._max = max_gamma
        self.measured.forget_costs(max_gamma)
        self._tokens = self._cost = 0.0
        self._pause, self._wait, self._probing = _PAUSE_FIRST, 0, False

    def strategy(self, block: JudgedBlock) -> str:
        """What was done in the last step and why, as cycle records say it."""
        if not block.chain:
            return f"plain: {self._why}" if not self._gamma else "plain: the block held a fault"
        words = "chain" + " + lookups" * bool(block.looked_up) + " + siblings" * bool(block.siblings)
        reason = self._why or self._kind.phrase
        return f"{words}: {reason}" if reason else words

    def speed_ups(self) -> list[float]:
        """S expected of cycles of length 1, 2, ... up to the limit."""
        measured, overall = self.measured, self.measured.overall.value()
        per_token = self._cost_of_token()
        rates = (rate.value(overall) for rate in measured.positions[: self._max])
        tokens = expected_tokens(rates, self._siblings / (self._cycles + 1.0))
        return [found / (gamma * per_token + measured.verify(gamma)) for gamma, found in enumerate(tokens, start=1)]

    def next_gamma(self) -> int:
        """How many tokens to draft now, at most; 0 asks for a plain step. Ask once a step."""
        self._gamma, self._why = self._decide()
        return self._gamma

    def plan(self, gamma: int, most: int) -> CyclePlan:
        """Decisions of a cycle that may draft `gamma` tokens one by one, and `most` in all."""
        self._stops_early = True
        if self._fixed is not None:
            return CyclePlan(self.measured, gamma, gamma, self._rate(), fixed=True)
        return CyclePlan(self.measured, gamma, most, self._rate(), self._allowance)

    def record(self, block: JudgedBlock) -> None:
        """A plain step (nothing proposed) or a cycle has ended."""
        if block.chain:
            self._record_cycle(block)
        else:
            self.record_plain(block.verify_seconds)

    def record_plain(self, seconds: float) -> None:
        """A plain step took this long."""
        self.measured.add_plain(seconds)
        self._cycles_since_plain = 0
        self._earn(_EARNED_PER_TOKEN)
        if self._wait:
            self._wait -= 1
            self._probing = self._wait == 0

    def _record_cycle(self, block: JudgedBlock) -> None:
        self.measured.add_block(block)
        self._cycles_since_plain += 1
        plain = self.plain_seconds
        if plain is None:
            return
        accepted = block.acceptance.accepted
        drafting = sum(self.measured.pass_cost(draft.rows) for draft in block.passes)
        # One hiccup of the machine must not cost minutes of drafting.
        usual = drafting + self.measured.verify(len(block.chain) + len(block.siblings))
        cost = min((block.draft_seconds + block.verify_seconds) / plain, 1.5 * usual)
        self._tokens = _RATE_MEMORY * self._tokens + accepted + 1
        self._cost = _RATE_MEMORY * self._cost + cost
        self._cycles = _RATE_MEMORY * self._cycles + 1
        self._drafted = _RATE_MEMORY * self._drafted + len(block.chain)
        self._draft_cost = _RATE_MEMORY * self._draft_cost + drafting
        self._siblings = _RATE_MEMORY * self._siblings + (block.acceptance.sibling is not None)
        self._earn(_EARNED_PER_TOKEN * (accepted + 1) + accepted + 1 - cost)
        self._after_cycle(accepted >= len(block.chain))

    def _decide(self) -> tuple[int, str]:
        if self.plain_seconds is None or self._cycles_since_plain >= self._refresh_after:
            rarer = max(2, min(8, int(self._rate())))  # the more a cycle brings, the dearer is a plain step
            self._refresh_after = min(rarer * self._refresh_after, _REFRESH_LAST * rarer // 2)
            return 0, "measuring"
        if self._fixed is not None:
            return self._fixed, "a fixed length"
        if self._wait:
            return 0, "drafting does not pay"
        most = self._affordable()
        if self._probing:
            return (min(_PROBE_GAMMA, most), "a probe") if most else (0, "drafting does not pay")
        gains = self.speed_ups()
        best = 1 + gains.index(max(gains))
        if gains[best - 1] > 1.0:
            # The best fixed length is too short a limit where unsure drafts end early and only sure ones reach it.
            wanted = best + 2 + best // 2 if self._stops_early else best
            return min(wanted, most), "" if most else "drafting has lost too much of late"
        self._give_up()
        return 0, "drafting does not pay"

    def _affordable(self) -> int:
        """The longest draft that, were all of it wrong, would cost no more than the allowance."""
        slope = self.measured.draft_cost + self.measured.verify.slope
        return min(max(0, int((self._allowance - self.measured.verify(0) + 1.0) / slope)), self._max)

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

    def _cost_of_token(self) -> float:
        """A drafted token in plain steps: a draft step, or less where recent cycles found tokens by look-ups."""
        own = self.measured.draft_cost
        return min(own, (self._draft_cost + 2 * own) / (self._drafted + 2))

    def _rate(self) -> float:
        """Tokens a plain step that cycles reach, the expected one in place of what was not seen yet."""
        expected = max(1.0, *self.speed_ups())
        return (self._tokens + _RATE_STRENGTH * expected) / (self._cost + _RATE_STRENGTH)
