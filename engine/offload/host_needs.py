"""What a model on the CPU asks of RAM with a draft by a given recipe, worked out before any is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.files.config import ModelConfig
from engine.files.safetensors_header import TensorEntry
from engine.lowbit.codes import group_of
from engine.lowbit.packed import container_bits, packed_shape
from engine.model import programme as p
from engine.model.runner import MAX_DRAFT_ROWS
from engine.offload.demands import Demands, demands_of, draft_option
from engine.offload.parts import Part, parts_of
from engine.recipe import Recipe

FLOAT = 4  # bytes


@dataclass(frozen=True, slots=True)
class HostNeeds:
    """parts and demands as the planner takes them, with one draft at most. context: positions of the KV cache."""

    parts: tuple[Part, ...]
    demands: Demands
    context: int

    @property
    def draft(self) -> int:
        """Bytes of the draft's copies."""
        return sum(option.nbytes for option in self.demands.drafts)


def host_needs(config: ModelConfig, entries: Mapping[str, TensorEntry], recipe: Recipe, capacity: int) -> HostNeeds:
    """Of a model with a draft by this recipe. One of 16 bits has no copies."""
    sizes = {name: entry.nbytes for name, entry in entries.items()}
    parts = parts_of(config, sizes)
    demands = demands_of(config, sizes, parts, device="cpu", context=capacity, widths=())
    if recipe.weight_bits < 16:
        shapes = {name: (entry.shape[0], entry.shape[1]) for name, entry in entries.items() if len(entry.shape) > 1}
        usual = draft_option(config, "cpu", recipe.weight_bits)
        option = replace(usual, recipe=recipe, nbytes=draft_bytes(config, shapes, recipe))
        demands = replace(demands, drafts=(option,))
    return HostNeeds(parts, demands, capacity)


def draft_bytes(config: ModelConfig, shapes: Mapping[str, tuple[int, int]], recipe: Recipe) -> int:
    """Of the draft's own copies below 16 bits. shapes: rows and columns of every matrix."""
    names = frozenset(shapes)
    output = p.output_matrix(config, names)
    copied = p.matrices(p.build(config, names))
    total = sum(packed_bytes(*shapes[name], recipe.weight_bits) for name in copied)
    tokens = p.kept_tokens(config, recipe)
    if tokens < config.vocabulary:
        total += packed_bytes(tokens, shapes[output][1], recipe.weight_bits)
        total += FLOAT * MAX_DRAFT_ROWS * (tokens + config.vocabulary)  # logits of its own
    if p.kept_neurons(config, recipe) < config.intermediate_size:  # every MLP once more, neuron by neuron
        width = 4 if p.chooses_by_planes(config, names, recipe) else 8
        total += sum(packed_bytes(*shapes[name], width) for name in copied if ".mlp." in name)
    return total


def packed_bytes(rows: int, columns: int, bits: int) -> int:
    """Of a packed matrix, as engine.lowbit.packed lays it out."""
    group = group_of(columns)
    tiles, groups, size = packed_shape(rows, columns, container_bits(bits, group), group)
    return tiles * groups * size + FLOAT * columns
