"""Where the parts of a card's model lie, by a plan that can be made anew: on the card, in RAM, with the CPU."""

from __future__ import annotations

from collections.abc import Callable

import torch

from engine.files.folder import ModelFolder
from engine.kernels.triton.host_blocks import HostBlocks
from engine.model.card_drafting import CardDrafting
from engine.model.card_weights import CardWeights, host_layers
from engine.model.host_mlps import HostMlps
from engine.offload.card_plan import CardPlan, CardPlanner
from engine.offload.plan import Plan, arrangement
from engine.records import LoadProgress

Tensor = torch.Tensor


class CardPlacement:
    """One model's parts, the plan in force for them, and the budget that was asked for."""

    def __init__(self, folder: ModelFolder, planner: CardPlanner, budget: int | None, device: torch.device) -> None:
        """Plans only; `weights` takes the parts as they are loaded. Raises as CardPlanner.plan and CardWeights."""
        self._folder, self._planner, self._asked = folder, planner, budget
        self._found = planner.plan(budget)
        self.weights = CardWeights(planner.parts, self.plan, device, folder.tensor)
        self._host = HostMlps.of(folder, host_layers(self.plan))

    @property
    def plan(self) -> Plan | None:
        """None where everything is on the card."""
        return self._found.plan

    @property
    def found(self) -> CardPlan:
        """The plan in force, with what it was made from."""
        return self._found

    @property
    def asked(self) -> int | None:
        """The budget in bytes, None for what is free."""
        return self._asked

    @property
    def host(self) -> HostBlocks | None:
        """What computes the CPU's share; None where it has none."""
        return self._host

    @property
    def pressed(self) -> bool:
        """Whether other programs leave the card too little."""
        return self._planner.pressed

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what did not go as it should."""
        return (*self._planner.notes, *self.weights.notes)

    def planned(self, budget: int | None, held: int, *, draft: bool | None) -> CardPlan:
        """Another plan; nothing moves. See CardPlanner.plan."""
        return self._planner.plan(budget, held, draft=draft)

    def settle(self, found: CardPlan, budget: int | None) -> None:
        """A plan by which the parts lie already is that of a budget."""
        self._found, self._asked = found, budget

    def lies_as(self, found: CardPlan) -> bool:
        """Whether the parts lie as another plan wants them."""
        return arrangement(self.plan) == arrangement(found.plan)

    def rounds_as(self, found: CardPlan) -> bool:
        """Whether passes have the same bits under another plan: the CPU rounds otherwise than the card."""
        return host_layers(self.plan) == host_layers(found.plan)

    def move(
        self,
        found: CardPlan,
        weights: dict[str, Tensor],
        drafting: CardDrafting,
        progress: Callable[[LoadProgress], None],
    ) -> None:
        """Have the parts of the model and of the draft lie by another plan; as before, where that fails.

        Nothing may hold the model any more. weights: the model's, by name, whose views follow. Raises as
        PartStore.move.
        """

        def report(stage: str) -> Callable[[int, int], None]:
            return lambda done, total: progress(LoadProgress(stage, done, total, 0, 0))

        self._move_model(found.plan, weights, report("Moving layers"))
        try:
            drafting.move(found.plan, report("Moving the draft"))
        except BaseException:
            self._move_model(self.plan, weights, report("Moving layers back"))
            raise
        self._found = found

    def close(self) -> None:
        """Give host memory back, and end the threads."""
        self.weights.close()
        self._end_host()

    def _move_model(self, plan: Plan | None, weights: dict[str, Tensor], progress: Callable[[int, int], None]) -> None:
        self.weights.move(plan, weights, progress)
        self._end_host()
        self._host = HostMlps.of(self._folder, host_layers(plan))

    def _end_host(self) -> None:
        if self._host is not None:
            self._host.close()
            self._host = None
