"""What a bound programme reads and writes: the buffers of a pass, the cache, the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.lowbit.neuron_planes import PlaneLayer
from engine.lowbit.packed import PackedMatrix
from engine.model import programme as p
from engine.model.matrix import Matrix


@dataclass(frozen=True, slots=True)
class Memory:
    """Everything a table points at; whoever holds the table must hold this too.

    buffers: float32 [rows, width] each. cache: per layer [positions, 2, kv heads, head_dim], float16 or float32.
    cosine, sine: float32 [positions, head_dim / 2]; still: those of a position that turns nothing, [head_dim / 2].
    scores: float32 [threads, positions + 8 + head_dim].
    quantised: uint8 [draft rows, bytes] for the buffers that packed matrices read; only a draft's table needs it.
    kept: int32 ids of the tokens of a reduced vocabulary, rewritten in place when they change.
    chosen, chosen_counts: int32 [draft rows * neurons + a few] and int64 [draft rows, lists]: the neurons that planes
        have chosen for each row; only a draft's table needs them.
    scalars: float32 [norm epsilon, attention scale]. statistics: float32 [layers, neurons].
    """

    buffers: Mapping[p.Buffer, np.ndarray]
    cache: tuple[np.ndarray, ...]
    cosine: np.ndarray
    sine: np.ndarray
    scores: np.ndarray
    scalars: np.ndarray
    statistics: np.ndarray
    quantised: Mapping[p.Buffer, np.ndarray] = field(default_factory=dict)
    kept: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    still: tuple[np.ndarray, np.ndarray] = (np.ones(0, np.float32), np.zeros(0, np.float32))
    chosen: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    chosen_counts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class PlanedMlp:
    """A layer's planes and what `plane_mlp` compares scores with, float32."""

    layer: PlaneLayer
    parameters: np.ndarray


@dataclass(frozen=True, slots=True)
class Weights:
    """How a table finds weights by name. A draft's `matrix` may be a copy of few bits; its `embedding` never is."""

    embedding: Callable[[str], Matrix]
    matrix: Callable[[str], Matrix | PackedMatrix]
    vector: Callable[[str], np.ndarray]
    neuron_major: Callable[[str], Matrix]
    chosen: tuple[np.ndarray, ...]  # int32 [kept] a layer; rewritten in place when the choice changes
    chosen_of: Callable[[str], Matrix] | None = None  # matrices of which chosen rows are taken; None: as `matrix`
    planes: Callable[[int], PlanedMlp] | None = None  # a layer's MLP where planes choose its neurons
    kept: Matrix | PackedMatrix | None = None  # the output matrix's rows of a reduced vocabulary
