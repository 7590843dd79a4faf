"""What a model on the CPU takes of RAM beside the parts that are placed one by one, worked out before any is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.files.config import ModelConfig
from engine.files.safetensors_header import TensorEntry
from engine.lowbit.codes import group_of
from engine.lowbit.packed import container_bits, packed_shape
from engine.model import programme as p
from engine.model.runner import MAX_DRAFT_ROWS
from engine.offload.parts import Part, parts_of
from engine.recipe import Recipe

FLOAT = 4  # bytes


@dataclass(frozen=True, slots=True)
class HostNeeds:
    """Bytes. always: embedding, norms and biases. draft: its own copy. kv: rows of a whole context.

    workspace: activations and tables of a pass. context: positions of the cache.
    """

    parts: tuple[Part, ...]
    always: int
    draft: int
    kv: int
    workspace: int
    context: int

    @property
    def fixed(self) -> int:
        """Of all that is not a part."""
        return self.always + self.draft + self.kv + self.workspace

    @property
    def whole(self) -> int:
        """Of all, with every part in memory."""
        return self.fixed + sum(part.nbytes for part in self.parts)


def host_needs(
    config: ModelConfig, entries: Mapping[str, TensorEntry], recipe: Recipe, capacity: int, threads: int, rows: int
) -> HostNeeds:
    """Of a model with a draft by this recipe. threads: of a pass; rows: of the widest one."""
    parts = parts_of(config, {name: entry.nbytes for name, entry in entries.items()})
    placed = {name for part in parts for name in part.tensors}
    always = sum(
        entry.nbytes if len(entry.shape) > 1 else FLOAT * entry.shape[0]
        for name, entry in entries.items()
        if name not in placed
    )
    kept = FLOAT if entries[p.EMBEDDING].dtype == "F32" else FLOAT // 2
    kv = config.layers * capacity * 2 * config.kv_heads * config.head_dim * kept
    shapes = {name: (entry.shape[0], entry.shape[1]) for name, entry in entries.items() if len(entry.shape) > 1}
    return HostNeeds(
        parts, always, draft_bytes(config, shapes, recipe), kv, _workspace(config, capacity, threads, rows), capacity
    )


def draft_bytes(config: ModelConfig, shapes: Mapping[str, tuple[int, int]], recipe: Recipe) -> int:
    """Of the draft's own copies. shapes: rows and columns of every matrix."""
    if recipe.weight_bits == 16:
        return 0
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


def _workspace(config: ModelConfig, capacity: int, threads: int, rows: int) -> int:
    """As engine.model.compiled_memory.allocate takes it, but for a few KiB."""
    widths = p.widths(config)
    inputs = widths[p.Buffer.NORMED] + widths[p.Buffer.ATTENDED] + widths[p.Buffer.ACTIVATED]
    return (
        FLOAT * rows * sum(widths.values())
        + FLOAT * capacity * config.head_dim  # cosines and sines
        + FLOAT * threads * (capacity + 8 + config.head_dim)
        + FLOAT * config.layers * config.intermediate_size
        + MAX_DRAFT_ROWS * (2 * inputs + FLOAT * config.intermediate_size)
    )
