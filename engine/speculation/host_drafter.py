"""A drafter whose logits come back to the host, where the sampler chooses from them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from engine.errors import NumericFault
from engine.model.runner import MAX_DECODE_ROWS, MAX_DRAFT_ROWS, Runner
from engine.sampling.sampler import Sampler
from engine.speculation.drafter import Proposal, SiblingPlan, Verdict


class HostDrafter:
    """Implements engine.speculation.drafter.Drafter over a Runner. Rows of its full pass are not free: no siblings."""

    most_siblings = 0
    rows = MAX_DECODE_ROWS
    draft_rows = MAX_DRAFT_ROWS

    def __init__(self, runner: Runner, sampler: Sampler) -> None:
        self._runner, self._sampler = runner, sampler
        self._ids: Sequence[int] = ()
        self._block: list[int] = []
        self._seconds: list[float] = []

    def begin(self, ids: Sequence[int]) -> None:
        """See Drafter.begin."""
        self._ids, self._block, self._seconds = ids, [], []

    def step(self, proposals: Sequence[int]) -> list[Proposal]:
        """See Drafter.step."""
        began = time.perf_counter()
        last = self._block[-1] if self._block else self._ids[-1]
        logits = self._runner.draft((last, *proposals), len(self._ids) - 1 + len(self._block))
        added: list[Proposal] = []
        for row, proposal in zip(logits, (*proposals, None), strict=True):
            try:
                token, prob = self._sampler.propose(row, len(self._ids) + len(self._block), self._ids, self._block)
            except NumericFault:
                break
            added.append(Proposal(token, prob))
            self._block.append(token)
            if token != proposal:
                break
        self._seconds.append(time.perf_counter() - began)
        return added

    def verify(self, tail: Sequence[int], siblings: Sequence[SiblingPlan]) -> Verdict:
        """See Drafter.verify. Raises NumericFault where a plain step meets one; ValueError for siblings."""
        if siblings:
            raise ValueError("the host's full pass carries no siblings")
        began = time.perf_counter()
        chain = (*self._block, *tail)
        position = len(self._ids)
        logits = self._runner.full((self._ids[-1], *chain), position - 1, len(chain) + 1)
        choose = self._sampler.judge if chain else self._sampler.choose
        choice = choose(logits, position, self._ids, chain)
        rows = len(choice.ids)
        absent = len(chain) + 1 - rows
        return Verdict(
            chosen_ids=choice.ids + (-1,) * absent,
            chosen_probs=choice.probs + (math.nan,) * absent,
            chain_probs=tuple(
                choice.probability_of(row, token) if row < rows else math.nan for row, token in enumerate(chain)
            ),
            sibling_ids=(),
            sibling_probs=(),
            step_seconds=tuple(self._seconds),
            verify_seconds=time.perf_counter() - began,
        )
