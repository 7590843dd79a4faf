"""What a device cannot draft with is refused in one sentence that names the place, the value and what there is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.errors import BadSetting
from engine.model.ingredients import refusal, require_ingredients
from engine.recipe import Ingredients, Recipe

EVERYTHING = Ingredients((16, 8), True, True, True, True, True)


@pytest.mark.parametrize(
    ("recipe", "lacking", "sentence"),
    [
        (Recipe(weight_bits=4), {}, "The draft on this desk can have 16 or 8 bit weights, not 4."),
        (Recipe(), {"weight_bits": (16,)}, "The draft on this desk can have 16 bit weights, not 8."),
        (Recipe(), {"weight_bits": (16, 4, 3)}, "The draft on this desk can have 16, 4 or 3 bit weights, not 8."),
        (Recipe(neuron_share=0.5), {"neurons": False}, "The draft on this desk cannot select MLP neurons."),
        (Recipe(head_share=0.5), {"heads": False}, "The draft on this desk cannot select attention heads."),
        (Recipe(input_sparsity=0.3), {"input_sparsity": False}, "The draft on this desk cannot drop input channels."),
        (Recipe(kv_window=64), {"kv_window": False}, "The draft on this desk cannot limit what it attends to."),
        (
            Recipe(reduced_vocabulary=9),
            {"reduced_vocabulary": False},
            "The draft on this desk cannot reduce its vocabulary.",
        ),
    ],
)
def test_an_ingredient_that_is_not_there_is_refused(recipe: Recipe, lacking: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadSetting) as raised:
        require_ingredients(recipe, "this desk", replace(EVERYTHING, **lacking))
    assert str(raised.value) == sentence


def test_skipped_blocks_and_offered_ingredients_pass() -> None:
    blocks = Recipe(16, skipped_attention=(1,), skipped_mlp=(2,))
    require_ingredients(blocks, "this desk", Ingredients())
    all_of_them = Recipe(8, 0.3, 0.3, 0.5, (1,), (2,), 100, 64)
    assert refusal(all_of_them, "this desk", EVERYTHING) is None
