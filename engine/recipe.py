"""The recipe: what makes the draft cheaper than the full model."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What of a recipe a device can draft with; blocks can be skipped everywhere.

    weight_bits: widths the draft's weights can have. The others: whether the field of `Recipe` that each is about can
    differ from its default.
    """

    weight_bits: tuple[int, ...] = (16,)
    input_sparsity: bool = False
    neurons: bool = False
    heads: bool = False
    reduced_vocabulary: bool = False
    kv_window: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the draft variant of a model is made. The recipe changes speed only, never a token of the reply.

    weight_bits: width of the draft's weights: 16 (the model's own), 8, 4 or 3.
    input_sparsity: share of input channels dropped by magnitude, 0 to 0.9.
    neuron_share: share of MLP neurons kept by the predictor, above 0 to 1 (1 keeps all).
    head_share: share of attention heads kept by the predictor, above 0 to 1.
    skipped_attention, skipped_mlp: layers whose attention or MLP block the draft leaves out.
    reduced_vocabulary: rows of the output matrix the draft computes; None for all.
    kv_window: last positions the draft attends to; None for all.
    """

    weight_bits: int = 8
    input_sparsity: float = 0.0
    neuron_share: float = 1.0
    head_share: float = 1.0
    skipped_attention: tuple[int, ...] = ()
    skipped_mlp: tuple[int, ...] = ()
    reduced_vocabulary: int | None = None
    kv_window: int | None = None

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary for settings, exports and logs."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Recipe:
        """The inverse of `to_json`; unknown keys of a newer version are dropped."""
        known = {f.name for f in fields(cls)}
        kept: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k in known}
        return cls(**kept)
