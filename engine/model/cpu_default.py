"""How a draft on the CPU is made where nothing was measured yet."""

from __future__ import annotations

from engine.files.config import ModelConfig
from engine.recipe import Recipe

KEPT_TOKENS = 16384  # of a large vocabulary: on the starter they have the right token 98.5 % of the time
HEAVY_SHARE = 0.1  # of the weights that a large output matrix has; a lighter one is not worth a missed token


def default_recipe(config: ModelConfig) -> Recipe:
    """4-bit weights, and frequent tokens only where the output matrix is a large part of what a draft step reads."""
    heads = (2 * config.heads + 2 * config.kv_heads) * config.head_dim
    layer = config.hidden_size * (heads + (3 if config.gated else 2) * config.intermediate_size)
    output = config.vocabulary * config.output_width
    heavy = output > HEAVY_SHARE * (config.layers * layer + output) and config.vocabulary > 2 * KEPT_TOKENS
    return Recipe(weight_bits=4, reduced_vocabulary=KEPT_TOKENS if heavy else None)
