"""What a device cannot draft with is refused in one sentence that names the place, the value and what there is."""

from __future__ import annotations

import pytest

from engine.errors import BadSetting
from engine.model.ingredients import require_ingredients
from engine.recipe import Recipe


@pytest.mark.parametrize(
    ("recipe", "neurons", "sentence"),
    [
        (Recipe(weight_bits=4), True, "The draft on this desk can have 16 or 8 bit weights, not 4."),
        (
            Recipe(neuron_share=0.5),
            False,
            "The draft on this desk can skip sub-layers, but not select MLP neurons yet.",
        ),
        (
            Recipe(head_share=0.5),
            True,
            "The draft on this desk can skip sub-layers and MLP neurons, and nothing else yet.",
        ),
        (Recipe(input_sparsity=0.3), False, "The draft on this desk can skip sub-layers, and nothing else yet."),
        (Recipe(kv_window=64), False, "The draft on this desk can skip sub-layers, and nothing else yet."),
        (Recipe(reduced_vocabulary=9), False, "The draft on this desk can skip sub-layers, and nothing else yet."),
    ],
)
def test_an_ingredient_that_is_not_there_is_refused(recipe: Recipe, neurons: bool, sentence: str) -> None:
    with pytest.raises(BadSetting) as refusal:
        require_ingredients(recipe, "this desk", bits=(16, 8), neurons=neurons)
    assert str(refusal.value) == sentence


def test_skipped_blocks_and_offered_ingredients_pass() -> None:
    require_ingredients(Recipe(16, skipped_attention=(1,), skipped_mlp=(2,)), "this desk", bits=(16,), neurons=False)
    require_ingredients(Recipe(8, neuron_share=0.3), "this desk", bits=(16, 8), neurons=True)
