"""The memory a compiled runner works in: the KV cache, and the buffers of a pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from engine.files.config import ModelConfig
from engine.kernels.compiled.memory import Memory
from engine.kernels.compiled.plane_layout import SPARE, blocks_of
from engine.memory.host_storage import HOST, host_storage
from engine.memory.kv_cache import KvCache
from engine.memory.storage import RowSize
from engine.model import programme
from engine.model.rope import rope_tables
from engine.model.runner import MAX_DRAFT_ROWS


def open_cache(config: ModelConfig, capacity: int, kept: np.dtype[np.generic], virtual: bool) -> KvCache:
    """A cache of `capacity` positions whose layers are arrays [capacity, 2, kv heads, head dim] of the type `kept`."""
    shape = (capacity, 2, config.kv_heads, config.head_dim)
    size = RowSize(config.layers, capacity, 2 * config.kv_heads * config.head_dim * kept.itemsize)
    return KvCache(host_storage(size, virtual=virtual), lambda layer: layer.view(kept).reshape(shape), HOST)


def allocate(config: ModelConfig, capacity: int, cache: Sequence[np.ndarray], threads: int, rows: int) -> Memory:
    """What passes of at most `rows` rows, by so many threads, read and write beside the weights."""
    cosine, sine = rope_tables(config, capacity)
    return Memory(
        buffers={name: np.zeros((rows, width), np.float32) for name, width in programme.widths(config).items()},
        cache=tuple(cache),
        cosine=cosine,
        sine=sine,
        still=(np.ones(config.head_dim // 2, np.float32), np.zeros(config.head_dim // 2, np.float32)),
        scores=np.zeros((threads, capacity + 8 + config.head_dim), np.float32),
        scalars=np.array([config.rms_norm_eps, config.head_dim**-0.5], np.float32),
        statistics=np.zeros((config.layers, config.intermediate_size), np.float32),
        quantised=input_buffers(config),
        chosen=np.zeros(MAX_DRAFT_ROWS * config.intermediate_size + SPARE, np.int32),
        chosen_counts=np.zeros((MAX_DRAFT_ROWS, blocks_of(config.intermediate_size)), np.int64),
    )


def input_buffers(config: ModelConfig) -> dict[programme.Buffer, np.ndarray]:
    """Room for the int8 inputs of packed matrices: a byte a value, and eight for each group of eight or more."""
    buffer, widths = programme.Buffer, programme.widths(config)
    inputs = (buffer.NORMED, buffer.ATTENDED, buffer.ACTIVATED, buffer.STREAM, buffer.NARROW)
    return {
        name: np.zeros((MAX_DRAFT_ROWS, -(-2 * widths[name] // 64) * 64), np.uint8) for name in inputs if name in widths
    }


@contextmanager
def unchanged(memory: Memory, rows: int) -> Iterator[None]:
    """After it, the first rows of the cache and the neurons' averages are what they were before."""
    before = [layer[:rows].copy() for layer in memory.cache]
    neurons = memory.statistics.copy()
    try:
        yield
    finally:
        memory.statistics[:] = neurons
        for layer, kept in zip(memory.cache, before, strict=True):
            layer[:rows] = kept
