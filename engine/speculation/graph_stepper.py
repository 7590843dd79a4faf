"""Blocks drafted and judged wholly on the card: one read-back a cycle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from engine.errors import NumericFault
from engine.model.runner import Runner
from engine.sampling.sampler import Sampler
from engine.settings import Sampling
from engine.speculation.controller import GammaController
from engine.speculation.stepper import HostStepper, JudgedBlock, Stepper

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


def make_stepper(runner: Runner, sampler: Sampler, controller: GammaController, stopped: Callable[[], bool]) -> Stepper:
    """The card's own stepper where the runner has one, else the host's."""
    if isinstance(runner, CycleRunner):
        return GraphStepper(runner, sampler, stopped)
    return HostStepper(runner, sampler, controller, stopped)


class GraphStepper:
    """See Stepper. A stop is noticed between cycles: a cycle is at most sixteen steps of the card."""

    def __init__(self, runner: CycleRunner, sampler: Sampler, stopped: Callable[[], bool]) -> None:
        self._runner, self._sampler, self._stopped = runner, sampler, stopped
        self._begun = False

    def step(self, ids: Sequence[int], gamma: int) -> JudgedBlock | None:
        """See Stepper.step."""
        if self._stopped():
            return None
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
        return JudgedBlock(
            result.drafted,
            tuple(p if math.isfinite(p) else 0.0 for p in result.drafted_probs),  # a draft may compute nonsense
            result.chosen,
            result.chosen_probs,
            result.proposal_probs,
            result.draft_seconds,
            result.verify_seconds,
        )

    def _choose(self, ids: Sequence[int]) -> None:
        self._runner.choose_by(self._sampler.settings, self._sampler.seed, ids)


def _sound(result: CycleResult) -> bool:
    """Whether every probability of the rows that count is a number."""
    return all(math.isfinite(p) for p in result.chosen_probs[: result.accepted + 1])
