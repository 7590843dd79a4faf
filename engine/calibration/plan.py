"""What a calibration tries: for each ingredient that the device has, a ladder of strengths, mildest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.calibration.report import Finding, Verdict, blocks_in_words
from engine.files.config import ModelConfig
from engine.model.ingredients import refusal
from engine.recipe import Ingredients, Recipe

BITS = (4, 8, 3, 16)  # most promising first, in case time runs out
VOCABULARY_SHARES = (0.5, 0.25, 0.125)
LEAST_VOCABULARY = 64  # rows; below this the output matrix is no cost worth saving
SPARSITIES = (0.3, 0.4, 0.5, 0.6)
GATED_NEURONS, RELU_NEURONS = (0.7, 0.5, 0.3), (0.3, 0.2, 0.1)
HEADS = (0.75, 0.5)
KV_WINDOW = 512
SKIPPED_SHARES = (1 / 30, 1 / 15, 0.1, 2 / 15, 0.2, 4 / 15)  # of all attention and MLP blocks


@dataclass(frozen=True, slots=True)
class Level:
    """An ingredient at one strength: the recipe's fields it sets."""

    label: str
    fields: Mapping[str, Any]

    def added_to(self, recipe: Recipe) -> Recipe:
        """The recipe with this ingredient too."""
        return replace(recipe, **self.fields)


@dataclass(frozen=True, slots=True)
class Ladder:
    """The strengths of one ingredient, mildest first."""

    ingredient: str
    levels: tuple[Level, ...]


def weights(able: Ingredients, ready: int = 16) -> Ladder:
    """The widths of weights that the device has; the one whose copy is ready comes first."""
    widths = sorted((bits for bits in BITS if bits in able.weight_bits), key=lambda bits: bits == 16 or bits != ready)
    levels = [Level(f"{bits}-bit weights", {"weight_bits": bits}) for bits in widths]
    return Ladder("weights", tuple(levels))


def ladders(able: Ingredients, config: ModelConfig) -> list[Ladder]:
    """The ingredients that come on top of the weights, save skipped blocks, which must be ranked first."""
    relu = config.hidden_act == "relu"
    everything = (
        (able.reduced_vocabulary, "reduced vocabulary", vocabulary_levels(config.vocabulary)),
        (able.input_sparsity, "dropped input channels", _shares(SPARSITIES, "input_sparsity", "channels dropped")),
        (able.neurons, "MLP neurons", _shares(RELU_NEURONS if relu else GATED_NEURONS, "neuron_share", "MLP neurons")),
        (able.heads, "attention heads", _shares(HEADS, "head_share", "attention heads")),
    )
    return [Ladder(name, tuple(levels)) for here, name, levels in everything if here and levels]


def unable(able: Ingredients) -> list[Finding]:
    """A line for each ingredient that the device has no draft with."""
    asked = [(f"{bits}-bit weights", Recipe(weight_bits=bits)) for bits in BITS]
    base = Recipe(weight_bits=able.weight_bits[0])
    asked += [
        ("reduced vocabulary", replace(base, reduced_vocabulary=LEAST_VOCABULARY)),
        ("dropped input channels", replace(base, input_sparsity=SPARSITIES[0])),
        ("MLP neurons", replace(base, neuron_share=0.5)),
        ("attention heads", replace(base, head_share=0.5)),
        ("KV window", replace(base, kv_window=KV_WINDOW)),
    ]
    lacking = [name for name, recipe in asked if refusal(recipe, "", able) is not None]
    return [Finding(name, Verdict.UNABLE, "this device has no draft with it") for name in lacking]


def vocabulary_levels(vocabulary: int) -> list[Level]:
    """Shares of the output rows, in whole multiples of 64."""
    rows = dict.fromkeys(round(vocabulary * share / 64) * 64 for share in VOCABULARY_SHARES)
    return [
        Level(f"{count:,} output tokens", {"reduced_vocabulary": count})
        for count in rows
        if LEAST_VOCABULARY <= count < vocabulary
    ]


@dataclass(frozen=True, slots=True)
class Block:
    """An attention or MLP block of a layer that a draft may leave out."""

    layer: int
    mlp: bool

    def recipe(self, base: Recipe) -> Recipe:
        """The base without this block too."""
        return without_blocks(base, (self,))


def blocks(config: ModelConfig) -> list[Block]:
    """All of them, from the middle of the model outward: the first and the last layers are needed most."""
    order = sorted(range(config.layers), key=lambda layer: abs(2 * layer + 1 - config.layers))
    return [Block(layer, mlp) for layer in order for mlp in (False, True)]


def block_weights(config: ModelConfig, block: Block) -> int:
    """Weights that skipping the block saves reading."""
    if block.mlp:
        return (3 if config.gated else 2) * config.hidden_size * config.intermediate_size
    return 2 * config.hidden_size * config.head_dim * (config.heads + config.kv_heads)


def without_blocks(base: Recipe, skipped: Iterable[Block]) -> Recipe:
    """The base with these blocks skipped too."""
    skipped = tuple(skipped)
    attention = {block.layer for block in skipped if not block.mlp} | set(base.skipped_attention)
    mlp = {block.layer for block in skipped if block.mlp} | set(base.skipped_mlp)
    return replace(base, skipped_attention=tuple(sorted(attention)), skipped_mlp=tuple(sorted(mlp)))


def skipping(config: ModelConfig, losses: Mapping[Block, float]) -> Ladder:
    """Levels of skipped blocks, those first whose loss is least for the weights they save.

    losses: of the draft's confidence in the model's token, where only this block is skipped, in nats; may be negative.
    """
    scale = max(block_weights(config, block) for block in losses) if losses else 1
    worth = {block: loss * scale / block_weights(config, block) for block, loss in losses.items()}
    order = sorted(losses, key=lambda block: worth[block])
    counts = dict.fromkeys(max(1, round(2 * config.layers * share)) for share in SKIPPED_SHARES)
    levels = []
    for count in counts:
        if count > len(order) or count >= 2 * config.layers:
            break
        recipe = without_blocks(Recipe(), order[:count])
        fields = {"skipped_attention": recipe.skipped_attention, "skipped_mlp": recipe.skipped_mlp}
        levels.append(Level(blocks_in_words(recipe), fields))
    return Ladder("skipped blocks", tuple(levels))


def _shares(shares: Iterable[float], field: str, what: str) -> list[Level]:
    return [Level(f"{share:.0%} of {what}".replace("%", " %"), {field: share}) for share in shares]
