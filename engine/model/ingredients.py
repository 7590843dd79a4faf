"""Which ingredients of a recipe a device can draft with, checked in one place for all of them."""

from __future__ import annotations

from engine.errors import BadSetting
from engine.recipe import Ingredients, Recipe


def refusal(recipe: Recipe, place: str, able: Ingredients) -> str | None:
    """One sentence about the first ingredient that the draft at `place` cannot be made with, or None.

    place: for people, as in "the draft on {place}".
    """
    if recipe.weight_bits not in able.weight_bits:
        return f"The draft on {place} can have {_widths(able)} bit weights, not {recipe.weight_bits}."
    asked = (
        (recipe.input_sparsity > 0, able.input_sparsity, "drop input channels"),
        (recipe.neuron_share < 1, able.neurons, "select MLP neurons"),
        (recipe.head_share < 1, able.heads, "select attention heads"),
        (recipe.reduced_vocabulary is not None, able.reduced_vocabulary, "reduce its vocabulary"),
        (recipe.kv_window is not None, able.kv_window, "limit what it attends to"),
    )
    for wanted, has, what in asked:
        if wanted and not has:
            return f"The draft on {place} cannot {what}."
    if recipe.kv_window is not None and recipe.kv_window < 1:
        return f"The draft's window is {recipe.kv_window} positions, but must be at least 1."
    return None


def require_ingredients(recipe: Recipe, place: str, able: Ingredients) -> None:
    """Raise BadSetting with the sentence of `refusal` where there is one."""
    sentence = refusal(recipe, place, able)
    if sentence is not None:
        raise BadSetting(sentence)


def _widths(able: Ingredients) -> str:
    *others, last = (str(width) for width in able.weight_bits)
    return f"{', '.join(others)} or {last}" if others else last


def card_ingredients(copies: bool, *, whole: bool) -> Ingredients:
    """What a draft in captured graphs can be made with; copies: whether it can have low-bit weights of its own.

    whole: all of the model is on the card; else a draft had better have weights of its own.
    """
    if not copies:
        return Ingredients()
    if not whole:
        return Ingredients(weight_bits=(4,), reduced_vocabulary=True, kv_window=True)
    return Ingredients(weight_bits=(16, 4), reduced_vocabulary=True, kv_window=True)
