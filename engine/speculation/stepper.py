"""How one block is drafted and judged: on the host from read-back logits, or (see graph_stepper) wholly on the card."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.errors import NumericFault
from engine.model.runner import Runner
from engine.sampling.sampler import Choice, Sampler
from engine.speculation.controller import GammaController


@dataclass(frozen=True, slots=True)
class JudgedBlock:
    """A draft and what the full model says of it.

    drafted_ids, drafted_probs: the proposals and the draft's probability of each; may be fewer than asked for.
    chosen_ids, chosen_probs: the full model's token after each prefix of the block, one more than there are proposals.
    proposal_probs: the full model's probability of each proposal.
    """

    drafted_ids: tuple[int, ...]
    drafted_probs: tuple[float, ...]
    chosen_ids: tuple[int, ...]
    chosen_probs: tuple[float, ...]
    proposal_probs: tuple[float, ...]
    draft_seconds: float
    verify_seconds: float


class Stepper(Protocol):
    """Drafts and judges block after block of one reply."""

    def step(self, ids: Sequence[int], gamma: int) -> JudgedBlock | None:
        """Draft up to `gamma` tokens after `ids` and judge them; the cache covers ids[:-1]. None when stopped."""
        ...


class HostStepper:
    """Logits come back from every pass; tokens are chosen by the sampler on the host."""

    def __init__(
        self, runner: Runner, sampler: Sampler, controller: GammaController, stopped: Callable[[], bool]
    ) -> None:
        self._runner, self._sampler, self._controller, self._stopped = runner, sampler, controller, stopped

    def step(self, ids: Sequence[int], gamma: int) -> JudgedBlock | None:
        """See Stepper.step."""
        began = time.perf_counter()
        draft = self._draft(ids, gamma)
        if draft is None:
            return None
        drafted, probs = draft
        middle = time.perf_counter()
        try:
            choice = self._verify(ids, drafted)
        except NumericFault:
            if not drafted:
                raise
            # A row that plain decoding would never compute may be at fault, one behind a wrong proposal.
            drafted, probs = (), ()
            choice = self._verify(ids, drafted)
        judged = tuple(choice.probability_of(i, token) for i, token in enumerate(drafted))
        ended = time.perf_counter()
        draft_seconds = middle - began if gamma else 0.0
        return JudgedBlock(drafted, probs, choice.ids, choice.probs, judged, draft_seconds, ended - middle)

    def _verify(self, ids: Sequence[int], drafted: Sequence[int]) -> Choice:
        """The full model's own token after the last one and after each proposal. Raises NumericFault."""
        logits = self._runner.full((ids[-1], *drafted), len(ids) - 1, len(drafted) + 1)
        return self._sampler.choose(logits, len(ids), ids, drafted)

    def _draft(self, ids: Sequence[int], gamma: int) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
        """Up to `gamma` proposals, fewer where the draft is unsure or computes nonsense; None when stopped."""
        base, token = len(ids), ids[-1]
        drafted: list[int] = []
        probs: list[float] = []
        while len(drafted) < gamma:
            if self._stopped():
                return None
            logits = self._runner.draft((token,), base - 1 + len(drafted))
            try:
                token, probability = self._sampler.propose(logits[0], base + len(drafted), ids, drafted)
            except NumericFault:
                break  # the cheap variant fails where the model need not
            drafted.append(token)
            probs.append(probability)
            if not self._controller.keep_drafting(len(drafted), probability):
                break
        return tuple(drafted), tuple(probs)
