"""Which ingredients of a recipe a device can draft with, checked in one place for all of them."""

from __future__ import annotations

from engine.errors import BadSetting
from engine.recipe import Recipe


def require_ingredients(recipe: Recipe, place: str, *, bits: tuple[int, ...], neurons: bool) -> None:
    """Raise BadSetting, with one sentence, for an ingredient that the draft at `place` cannot be made with.

    place: for people, as in "the draft on {place}". bits: weight widths it has. neurons: whether it selects neurons.
    Blocks can be skipped everywhere.
    """
    if recipe.weight_bits not in bits:
        widths = " or ".join(str(width) for width in bits)
        raise BadSetting(f"The draft on {place} can have {widths} bit weights, not {recipe.weight_bits}.")
    if recipe.neuron_share < 1 and not neurons:
        raise BadSetting(f"The draft on {place} can skip sub-layers, but not select MLP neurons yet.")
    if recipe.input_sparsity > 0 or recipe.head_share < 1 or recipe.reduced_vocabulary or recipe.kv_window:
        able = "skip sub-layers and MLP neurons" if neurons else "skip sub-layers"
        raise BadSetting(f"The draft on {place} can {able}, and nothing else yet.")
