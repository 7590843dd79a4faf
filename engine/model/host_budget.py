"""The budget of a model on the CPU: what plan it leads to with a draft by one recipe or another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.errors import BadSetting
from engine.offload.host_needs import HostNeeds
from engine.offload.host_plan import plan_host
from engine.offload.plan import Plan, Residency
from engine.recipe import Recipe

LEAST_BITS = 3  # of a draft


class HostBudget:
    """Bytes of RAM the model may take; None for all that is free. offload: whether parts may be streamed."""

    def __init__(self, needs: Callable[[Recipe], HostNeeds], bytes: int | None, offload: bool) -> None:
        self.bytes = bytes
        self._needs, self._offload = needs, offload

    def first_plan(self, recipe: Recipe | None, usual: Recipe) -> tuple[Plan, Recipe]:
        """Of a model that is not loaded yet, and its draft: the usual one where `recipe` is None, or a smaller one.

        Raises BadSetting where the least does not fit.
        """
        if recipe is not None:
            return self._plan(recipe), recipe
        try:
            return self._plan(usual), usual
        except BadSetting:
            smaller = replace(usual, weight_bits=LEAST_BITS)
            return self._plan(smaller), smaller

    def _plan(self, recipe: Recipe) -> Plan:
        return plan_host(self._needs(recipe), self.bytes, offload=self._offload)

    def plan_anew(self, recipe: Recipe, bytes: int | None, before: Plan) -> Plan:
        """Of one that is, under another budget. Raises as `plan`, and BadSetting for a draft that cannot be kept."""
        own = before.workspace + before.draft + before.slots * before.slot_bytes  # counts as taken, and is ours
        plan = plan_host(self._needs(recipe), bytes, offload=self._offload, held=own)
        if plan.streamed and recipe.weight_bits == 16:
            raise BadSetting(
                "The draft has the model's own 16 bit weights, so all of them must be in memory: "
                "take a draft of fewer bits first, or a larger budget."
            )
        return plan


def streaming_note(plan: Plan) -> tuple[str, ...]:
    """A sentence for people where parts are streamed."""
    size = plan.bytes_of(Residency.STREAMED)
    if not size:
        return ()
    reason = f"it may take {plan.budget / 1e9:.2f} GB of RAM"
    return (f"Of the model's weights, {size / 1e9:.2f} GB are read anew for every full pass, because {reason}.",)
