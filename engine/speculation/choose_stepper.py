"""Which stepper makes a reply's blocks: one loop, over the drafter of the runner's device."""

from __future__ import annotations

from collections.abc import Callable

from engine.model.runner import Runner
from engine.sampling.sampler import Sampler
from engine.settings import Speculation
from engine.speculation.card_drafter import CardDrafter, CardPasses
from engine.speculation.controller import GammaController
from engine.speculation.drafter import Drafter
from engine.speculation.host_drafter import HostDrafter
from engine.speculation.stepper import CycleStepper, Stepper


def make_stepper(
    runner: Runner,
    sampler: Sampler,
    controller: GammaController,
    stopped: Callable[[], bool],
    speculation: Speculation | None = None,
) -> Stepper:
    """A stepper whose tokens are chosen on the card where the runner's passes do so, else on the host."""
    wanted = speculation or Speculation()
    drafter: Drafter = CardDrafter(runner, sampler) if isinstance(runner, CardPasses) else HostDrafter(runner, sampler)
    return CycleStepper(drafter, controller, stopped, cascade=wanted.cascade, siblings=wanted.siblings)
