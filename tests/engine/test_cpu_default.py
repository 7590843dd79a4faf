"""The draft of a model nobody has calibrated."""

from __future__ import annotations

from typing import Any

import pytest

from engine.files.config import parse_config
from engine.model.cpu_default import KEPT_TOKENS, default_recipe
from engine.recipe import Recipe


def recipe(**changes: Any) -> Recipe:
    """For the starter's shape with `changes`."""
    config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 576, "intermediate_size": 1536}
    config |= {"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152}
    config |= {"max_position_embeddings": 2048, "rms_norm_eps": 1e-5}
    return default_recipe(parse_config(config | changes, {}))


def test_a_heavy_output_matrix_is_cut_to_frequent_tokens() -> None:
    assert recipe() == Recipe(weight_bits=4, reduced_vocabulary=KEPT_TOKENS)


@pytest.mark.parametrize(
    "changes",
    [
        {"vocab_size": 32000},
        {"vocab_size": 290},
        {"hidden_size": 3840, "intermediate_size": 11008, "num_attention_heads": 30, "num_hidden_layers": 32},
    ],
)
def test_a_light_one_is_not(changes: dict[str, int]) -> None:
    assert recipe(**changes) == Recipe(weight_bits=4)
