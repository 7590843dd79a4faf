"""Traces replayed through the engine's own stepper and controller, by a drafter that knows the outcome beforehand.

Only the passes are stood in for: a clock says what each would cost, by a table here, by real kernels in a benchmark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.bench.traces import Trace
from engine.model.runner import MAX_DECODE_ROWS, MAX_DRAFT_ROWS
from engine.sampling.accept import cut
from engine.speculation.block import JudgedBlock
from engine.speculation.controller import GammaController
from engine.speculation.drafter import Proposal, SiblingPlan, Verdict
from engine.speculation.prompt_kind import analyse
from engine.speculation.stepper import CycleStepper


class Clock(Protocol):
    """What passes cost, in seconds; it may do the work to find out."""

    def draft(self, rows: int) -> float:
        """A draft pass over so many tokens."""
        ...

    def verify(self, rows: int, siblings: int) -> float:
        """A full pass over so many rows, of which the last few are siblings; one row is a plain step."""
        ...


@dataclass(frozen=True, slots=True)
class TableClock:
    """Costs in plain steps. few_rows: a pass over 2 rows, in draft steps; each further row adds few_slope of one.
    verify_slope: each row of a full pass beyond the first."""

    draft_cost: float
    few_rows: float = 1.1
    few_slope: float = 0.01
    verify_slope: float = 0.0018

    def draft(self, rows: int) -> float:
        """See Clock.draft."""
        return self.draft_cost * (1.0 if rows == 1 else self.few_rows + self.few_slope * (rows - 2))

    def verify(self, rows: int, siblings: int) -> float:
        """See Clock.verify."""
        return 1.0 + self.verify_slope * (rows - 1)


@dataclass(frozen=True, slots=True)
class Replayed:
    """Sums over the replies. seconds: by the clock. plain_seconds: of a plain step, the mean of those made.

    plain: tokens of plain steps. taken: siblings that came into the reply."""

    tokens: int = 0
    cycles: int = 0
    plain: int = 0
    drafted: int = 0
    tested: int = 0
    accepted: int = 0
    taken: int = 0
    looked_up: int = 0
    passes: int = 0
    seconds: float = 0.0
    plain_seconds: float = 0.0

    @property
    def speed_up(self) -> float:
        """S: the time of as many plain steps over the time taken."""
        return self.tokens * self.plain_seconds / self.seconds

    @property
    def tokens_per_cycle(self) -> float:
        """Tokens of a cycle that drafted."""
        return (self.tokens - self.plain) / max(1, self.cycles - self.plain)

    @property
    def acceptance(self) -> float:
        """Accepted over tested."""
        return self.accepted / max(1, self.tested)


class TraceDrafter:
    """Implements engine.speculation.drafter.Drafter by a trace. Behind a wrong token it goes on with what the trace
    has at those places, which no verdict will look at."""

    def __init__(self, trace: Trace, clock: Clock, most_siblings: int, draft_rows: int, rows: int) -> None:
        self._trace, self._clock = trace, clock
        self.most_siblings, self.draft_rows, self.rows = most_siblings, draft_rows, rows
        self._at = 0
        self._block: list[int] = []
        self._seconds: list[float] = []

    def begin(self, ids: Sequence[int]) -> None:
        """See Drafter.begin."""
        self._at, self._block, self._seconds = len(ids) - len(self._trace.prompt_ids), [], []

    def step(self, proposals: Sequence[int]) -> list[Proposal]:
        """See Drafter.step."""
        self._seconds.append(self._clock.draft(1 + len(proposals)))
        added = []
        for proposal in (*proposals, None):
            own = self._proposal(self._at + len(self._block))
            added.append(own)
            self._block.append(own.id)
            if own.id != proposal:
                break
        return added

    def verify(self, tail: Sequence[int], siblings: Sequence[SiblingPlan]) -> Verdict:
        """See Drafter.verify."""
        chain = (*self._block, *tail)
        seconds = self._clock.verify(1 + len(chain) + len(siblings), len(siblings))
        truth = self._trace.ids[self._at : self._at + len(chain) + 1]
        right = 0
        while right < len(chain) and chain[right] == truth[right]:
            right += 1
        probs = self._trace.full_prob[self._at : self._at + right + 1]
        hits = [plan.place == right and plan.id == truth[right] for plan in siblings]
        absent = len(chain) - right
        return Verdict(
            chosen_ids=truth[: right + 1] + (-1,) * absent,
            chosen_probs=probs + (math.nan,) * absent,
            chain_probs=probs[:right] + (0.0,) * min(absent, 1) + (math.nan,) * (absent - 1),
            sibling_ids=tuple(truth[right + 1] if hit else -1 for hit in hits),
            sibling_probs=tuple(1.0 if hit else math.nan for hit in hits),
            step_seconds=tuple(self._seconds),
            verify_seconds=seconds,
        )

    def _proposal(self, at: int) -> Proposal:
        ranked = self._trace.top[min(at, len(self._trace.top) - 1)]
        second = ranked[1] if len(ranked) > 1 else (None, 0.0)
        return Proposal(*ranked[0], *second)


def replay(
    traces: Sequence[Trace],
    clock: Clock,
    controller: GammaController | None = None,
    *,
    cascade: bool = True,
    siblings: bool = True,
    most_siblings: int = MAX_DECODE_ROWS - 2,
    draft_rows: int = MAX_DRAFT_ROWS,
    rows: int = MAX_DECODE_ROWS,
    stopped: Callable[[], bool] = lambda: False,
) -> Replayed:
    """Make every traced reply again, one after the other with one controller, as the engine does."""
    controller = controller or GammaController(rows - 1)
    total = Replayed()
    for trace in traces:
        drafter = TraceDrafter(trace, clock, most_siblings, draft_rows, rows)
        stepper = CycleStepper(drafter, controller, stopped, cascade=cascade, siblings=siblings)
        total = _replay_one(trace, stepper, controller, total)
    return total


def _replay_one(trace: Trace, stepper: CycleStepper, controller: GammaController, total: Replayed) -> Replayed:
    ids, end = list(trace.prompt_ids), len(trace.prompt_ids) + len(trace.ids)
    controller.start_reply(analyse(ids))
    while len(ids) < end:
        most = min(stepper.rows - 1, end - len(ids) - 1)
        gamma = min(controller.next_gamma(), most) if most else 0
        block = stepper.step(ids, gamma, most)
        if block is None:
            break
        controller.record(block)
        ids += cut(block.chain_ids, block.acceptance, end_ids=(), remaining=end - len(ids)).emitted_ids
        total = _with_block(total, block)
    return total


def _with_block(total: Replayed, block: JudgedBlock) -> Replayed:
    outcome = block.acceptance
    plain = not block.chain
    steps = total.plain + plain
    return Replayed(
        tokens=total.tokens + outcome.accepted + 1,
        cycles=total.cycles + 1,
        plain=steps,
        drafted=total.drafted + len(block.chain),
        tested=total.tested + outcome.tested,
        accepted=total.accepted + outcome.accepted,
        taken=total.taken + (outcome.sibling is not None),
        looked_up=total.looked_up + block.looked_up,
        passes=total.passes + len(block.passes),
        seconds=total.seconds + block.draft_seconds + block.verify_seconds,
        plain_seconds=(total.plain_seconds * total.plain + plain * block.verify_seconds) / max(1, steps),
    )
