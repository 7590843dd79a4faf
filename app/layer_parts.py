"""Where each layer of a model is, and what of it the draft computes: what the layer map draws. Plain data: no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from engine.offload.parts import ATTENTION, MLP
from engine.offload.plan import Plan, Residency
from engine.records import CycleRecord, ModelInfo


class Place(Enum):
    """Where weights are and where they are computed; the value is the colour role."""

    CARD = "gpu"
    STREAMED = "wait"
    CPU = "cpu"


@dataclass(frozen=True, slots=True)
class LayerPlace:
    """Where the two parts of a layer are."""

    attention: Place
    mlp: Place

    @property
    def whole(self) -> Place:
        """What the layer counts as: streamed where any of it is, computed on the CPU where any of it is."""
        if Place.STREAMED in (self.attention, self.mlp):
            return Place.STREAMED
        return Place.CPU if Place.CPU in (self.attention, self.mlp) else Place.CARD


@dataclass(frozen=True, slots=True)
class DraftShare:
    """What a cycle's draft computed of one layer, as shares from 0 to 1 of the full model's; 0 where left out.

    attention: of the heads. mlp: of the neurons. inputs: of the input channels of both.
    """

    attention: float
    mlp: float
    inputs: float


def layer_places(info: ModelInfo, plan: Plan | None) -> tuple[LayerPlace, ...]:
    """One a layer. plan: where the parts lie; None where all are in the memory of the model's device."""
    home = Place.CPU if info.card is None else Place.CARD
    meaning = {Residency.RESIDENT: home, Residency.STREAMED: Place.STREAMED, Residency.HOST: Place.CPU}
    found = {}
    if plan is not None:
        pairs = zip(plan.parts, plan.residency, strict=True)
        found = {(part.layer, part.kind): meaning[lies] for part, lies in pairs}
    return tuple(
        LayerPlace(found.get((layer, ATTENTION), home), found.get((layer, MLP), home)) for layer in range(info.layers)
    )


def draft_shares(record: CycleRecord, layers: int) -> tuple[DraftShare, ...] | None:
    """One a layer; None for a cycle that drafted nothing."""
    if not record.drafted_ids:
        return None
    recipe = record.recipe
    no_attention, no_mlp = set(recipe.skipped_attention), set(recipe.skipped_mlp)
    inputs = 1.0 - recipe.input_sparsity
    return tuple(
        DraftShare(
            0.0 if layer in no_attention else recipe.head_share,
            0.0 if layer in no_mlp else recipe.neuron_share,
            inputs,
        )
        for layer in range(layers)
    )


def skipped(record: CycleRecord, layers: int) -> int:
    """Sub-layers that the cycle's draft leaves out."""
    recipe = record.recipe
    left_out = {layer for layer in recipe.skipped_attention if layer < layers}
    return len(left_out) + len({layer for layer in recipe.skipped_mlp if layer < layers})
