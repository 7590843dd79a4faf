"""Turns a programme into the table the interpreter runs: names become addresses, buffers become strides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.files.config import ModelConfig
from engine.kernels.compiled import table as t
from engine.model import programme as p
from engine.model.matrix import Matrix


@dataclass(frozen=True, slots=True)
class Memory:
    """Everything a table points at; whoever holds the table must hold this too.

    buffers: float32 [rows, width] each. cache: per layer [positions, 2, kv heads, head_dim], float16 or float32.
    cosine, sine: float32 [positions, head_dim / 2]. scores: float32 [threads, positions + 8].
    scalars: float32 [norm epsilon, attention scale]. statistics: float32 [layers, neurons].
    """

    buffers: Mapping[p.Buffer, np.ndarray]
    cache: tuple[np.ndarray, ...]
    cosine: np.ndarray
    sine: np.ndarray
    scores: np.ndarray
    scalars: np.ndarray
    statistics: np.ndarray


@dataclass(frozen=True, slots=True)
class Weights:
    """How a table finds weights by name. A draft's `matrix` may be a copy of few bits; its `embedding` never is."""

    embedding: Callable[[str], Matrix]
    matrix: Callable[[str], Matrix]
    vector: Callable[[str], np.ndarray]
    neuron_major: Callable[[str], Matrix]
    chosen: tuple[np.ndarray, ...]  # int32 [kept] a layer; rewritten in place when the choice changes


def bind(programme: p.Programme, config: ModelConfig, memory: Memory, weights: Weights) -> np.ndarray:
    """int64 [instructions, COLUMNS]: the programme with every address and size in place."""
    binder = _Binder(config, memory, weights)
    table = np.zeros((len(programme), t.COLUMNS), np.int64)
    for row, step in zip(table, programme, strict=True):
        row[t.SYNC] = 1
        binder.fill(row, step)
    return table


class _Binder:
    def __init__(self, config: ModelConfig, memory: Memory, weights: Weights) -> None:
        self.config, self.memory, self.weights = config, memory, weights

    def fill(self, row: np.ndarray, step: p.Instruction) -> None:
        match step:
            case p.Embed():
                self._embed(row, step)
            case p.AddNorm():
                self._add_norm(row, step)
            case p.Linear():
                self._linear(row, step)
            case p.NeuronDown():
                self._neuron_down(row, step)
            case p.RotateStore():
                self._rotate_store(row, step.layer)
            case p.Attend():
                self._attend(row, step.layer)
            case p.GatedSilu():
                self._gated_silu(row, step)

    def _target(self, row: np.ndarray, buffer: p.Buffer, column: int = 0) -> None:
        array = self.memory.buffers[buffer]
        row[t.TARGET], row[t.TARGET_STRIDE] = array.ctypes.data + 4 * column, array.strides[0]

    def _source(self, row: np.ndarray, buffer: p.Buffer) -> None:
        array = self.memory.buffers[buffer]
        row[t.SOURCE], row[t.SOURCE_STRIDE] = array.ctypes.data, array.strides[0]

    def _matrix(self, row: np.ndarray, matrix: Matrix) -> None:
        row[t.WEIGHT], row[t.SCALE], row[t.KIND] = matrix.address, matrix.scales, matrix.kind
        row[t.N], row[t.K] = matrix.rows, matrix.columns

    def _embed(self, row: np.ndarray, step: p.Embed) -> None:
        row[t.OPERATION] = t.EMBED
        self._matrix(row, self.weights.embedding(step.weight))
        self._target(row, p.Buffer.STREAM)

    def _add_norm(self, row: np.ndarray, step: p.AddNorm) -> None:
        row[t.OPERATION], row[t.ON_TAIL], row[t.K] = t.ADD_NORM, step.on_tail, self.config.hidden_size
        self._source(row, p.Buffer.STREAM)
        self._target(row, p.Buffer.NORMED)
        row[t.WEIGHT] = self.weights.vector(step.weight).ctypes.data
        row[t.EXTRA_C] = self.memory.scalars.ctypes.data
        if step.adds:
            delta = self.memory.buffers[p.Buffer.DELTA]
            row[t.EXTRA_A], row[t.EXTRA_B] = delta.ctypes.data, delta.strides[0]

    def _linear(self, row: np.ndarray, step: p.Linear) -> None:
        row[t.OPERATION], row[t.ON_TAIL], row[t.SYNC] = t.LINEAR, step.on_tail, step.meets
        self._matrix(row, self.weights.matrix(step.weight))
        self._source(row, step.source)
        self._target(row, step.target, step.column)
        if step.bias is not None:
            row[t.BIAS] = self.weights.vector(step.bias).ctypes.data
        if step.neurons_of is not None:
            chosen = self.weights.chosen[step.neurons_of]
            row[t.OPERATION], row[t.N], row[t.EXTRA_A] = t.GATHERED_LINEAR, len(chosen), chosen.ctypes.data

    def _neuron_down(self, row: np.ndarray, step: p.NeuronDown) -> None:
        row[t.OPERATION] = t.GATHERED_DOWN
        matrix, chosen = self.weights.neuron_major(step.weight), self.weights.chosen[step.layer]
        self._matrix(row, matrix)
        row[t.N], row[t.K], row[t.EXTRA_A] = matrix.columns, len(chosen), chosen.ctypes.data
        self._source(row, p.Buffer.ACTIVATED)
        self._target(row, p.Buffer.DELTA)

    def _cache(self, row: np.ndarray, layer: int) -> None:
        cache = self.memory.cache[layer]
        row[t.WEIGHT], row[t.KIND] = cache.ctypes.data, 1 if cache.dtype == np.float16 else 0
        row[t.K], row[t.EXTRA_C], row[t.EXTRA_D] = self.config.head_dim, self.config.heads, self.config.kv_heads

    def _rotate_store(self, row: np.ndarray, layer: int) -> None:
        row[t.OPERATION] = t.ROTATE_STORE
        self._cache(row, layer)
        self._source(row, p.Buffer.QKV)
        row[t.EXTRA_A], row[t.EXTRA_B] = self.memory.cosine.ctypes.data, self.memory.sine.ctypes.data
        row[t.EXTRA_E] = self.memory.scalars.ctypes.data + 4

    def _attend(self, row: np.ndarray, layer: int) -> None:
        row[t.OPERATION] = t.ATTEND
        self._cache(row, layer)
        self._source(row, p.Buffer.QKV)
        self._target(row, p.Buffer.ATTENDED)
        row[t.EXTRA_A], row[t.EXTRA_B] = self.memory.scores.ctypes.data, self.memory.scores.strides[0]

    def _gated_silu(self, row: np.ndarray, step: p.GatedSilu) -> None:
        row[t.OPERATION], row[t.N] = t.GATED_SILU, step.count
        self._source(row, p.Buffer.GATE_UP)
        self._target(row, p.Buffer.ACTIVATED)
        row[t.EXTRA_A] = self.memory.statistics[step.layer].ctypes.data if step.observes else 0
