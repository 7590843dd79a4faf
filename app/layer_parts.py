"""Where each layer of a model is, and what of it the draft computes: what the layer map draws. Plain data: no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from engine.records import CycleRecord, ModelInfo


class Residency(Enum):
    """Where a layer's weights are and where it is computed; the value is its colour role."""

    CARD = "gpu"
    CPU = "cpu"


@dataclass(frozen=True, slots=True)
class DraftShare:
    """What a cycle's draft computed of one layer, as shares from 0 to 1 of the full model's; 0 where left out.

    attention: of the heads. mlp: of the neurons. inputs: of the input channels of both.
    """

    attention: float
    mlp: float
    inputs: float


def residencies(info: ModelInfo) -> tuple[Residency, ...]:
    """One a layer. A model is all on its card or all on the CPU."""
    return (Residency.CPU if info.card is None else Residency.CARD,) * info.layers


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
