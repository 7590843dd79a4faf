"""Blocks drafted and judged wholly on the card: one read-back a cycle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from engine.errors import NumericFault
from engine.model.runner import Runner
from engine.sampling.accept import accept
from engine.sampling.sampler import Sampler
from engine.settings import Sampling, Speculation
from engine.speculation.block import DraftPass, JudgedBlock
from engine.speculation.controller import GammaController
from engine.speculation.drafter import Proposal
from engine.speculation.host_drafter import HostDrafter
from engine.speculation.stepper import CycleStepper, Stepper

if TYPE_CHECKING:
    from engine.model.decode_graphs import CycleResult


@runtime_checkable
class CycleRunner(Protocol):
    """A runner that can do a cycle by itself."""

    def choose_by(self, settings: Sampling, seed: int, history: Sequence[int]) -> None:
        """How the cycles that follow choose tokens. history: all ids so far."""
        ...

    def cycle(self, token: int, position: int, gamma: int) -> CycleResult:
        """Draft `gamma` tokens after `token` at `position`, judge them, and read the outcome back."""
        ...


def make_stepper(
    runner: Runner,
    sampler: Sampler,
    controller: GammaController,
    stopped: Callable[[], bool],
    speculation: Speculation | None = None,
) -> Stepper:
    """The card's own stepper where the runner has one, else the host's."""
    if isinstance(runner, CycleRunner):
        return GraphStepper(runner, sampler, stopped)
    wanted = speculation or Speculation()
    drafter = HostDrafter(runner, sampler)
    return CycleStepper(drafter, controller, stopped, cascade=wanted.cascade, siblings=wanted.siblings)


class GraphStepper:
    """See Stepper. A stop is noticed between cycles: a cycle is at most sixteen steps of the card."""

    def __init__(self, runner: CycleRunner, sampler: Sampler, stopped: Callable[[], bool]) -> None:
        self._runner, self._sampler, self._stopped = runner, sampler, stopped
        self._begun = False

    def step(self, ids: Sequence[int], gamma: int, most: int) -> JudgedBlock | None:
        """See Stepper.step."""
        if self._stopped():
            return None
        gamma = min(gamma, most)
        if not self._begun:
            self._choose(ids)
            self._begun = True
        result = self._runner.cycle(ids[-1], len(ids) - 1, gamma)
        if gamma and not _sound(result):
            # A row that plain decoding would never compute may be at fault, one behind a wrong proposal.
            self._choose(ids)  # the failed pass has marked tokens as seen
            result = self._runner.cycle(ids[-1], len(ids) - 1, 0)
        if not _sound(result):
            raise NumericFault("NaN", len(ids))
        # A draft may compute nonsense.
        probs = (p if math.isfinite(p) else 0.0 for p in result.drafted_probs)
        chain = tuple(map(Proposal, result.drafted, probs))
        return JudgedBlock(
            chain=chain,
            checked=len(chain),
            chosen_ids=result.chosen,
            chosen_probs=result.chosen_probs,
            chain_probs=result.proposal_probs,
            acceptance=accept(result.drafted, result.chosen),
            passes=tuple(DraftPass(1, result.draft_seconds / len(chain)) for _ in chain),
            verify_seconds=result.verify_seconds,
        )

    def _choose(self, ids: Sequence[int]) -> None:
        self._runner.choose_by(self._sampler.settings, self._sampler.seed, ids)


def _sound(result: CycleResult) -> bool:
    """Whether every probability of the rows that count is a number."""
    return all(math.isfinite(p) for p in result.chosen_probs[: result.accepted + 1])
