"""Turns a programme into the table the interpreter runs: names become addresses, buffers become strides."""

from __future__ import annotations

import numpy as np

from engine.files.config import ModelConfig
from engine.kernels.compiled import table as t
from engine.kernels.compiled.lowbit_inputs import matrix_of, plan_inputs, planes_of
from engine.kernels.compiled.memory import Memory, Weights
from engine.kernels.compiled.plane_layout import blocks_of
from engine.lowbit.packed import PackedMatrix
from engine.model import programme as p
from engine.model.matrix import Matrix


def bind(programme: p.Programme, config: ModelConfig, memory: Memory, weights: Weights) -> np.ndarray:
    """int64 [instructions, COLUMNS]: the programme with every address and size in place.

    Where packed matrices are used, what makes their input writes it in int8 too; where it cannot, a row of the table
    of its own does. Without packed matrices there is a row an instruction.
    """
    binder = _Binder(config, memory, weights)
    plan = plan_inputs(programme, config, weights)
    rows: list[np.ndarray] = []
    for index, step in enumerate(programme):
        if index in plan.before:
            rows.append(binder.quantise(*plan.before[index]))
        row = np.zeros(t.COLUMNS, np.int64)
        row[t.SYNC] = 1
        binder.fill(row, step)
        if index in plan.folded:
            binder.quantised(row, *plan.folded[index])
        rows.append(row)
    table = np.stack(rows)
    _look_ahead(table)
    return table


def _look_ahead(table: np.ndarray) -> None:
    """Fill READS_NEXT."""
    following = 0  # index of the next instruction that reads a matrix in stretches
    for index in range(len(table) - 1, -1, -1):
        table[index, t.READS_NEXT] = following - index if following else 0
        if table[index, t.OPERATION] in (t.LINEAR, t.LOWBIT_LINEAR):
            following = index


def move_cache(table: np.ndarray, distance: int) -> None:
    """Let a bound table read and write the KV cache of another range, so many bytes further on."""
    uses = np.isin(table[:, t.OPERATION], (t.ROTATE_STORE, t.ATTEND))
    table[uses, t.WEIGHT] += distance


class _Binder:
    def __init__(self, config: ModelConfig, memory: Memory, weights: Weights) -> None:
        self.config, self.memory, self.weights = config, memory, weights

    def fill(self, row: np.ndarray, step: p.Instruction) -> None:
        match step:
            case p.Embed():
                self._embed(row, step)
            case p.AddPositions():
                self._add_positions(row, step)
            case p.AddNorm():
                self._add_norm(row, step)
            case p.Linear():
                self._linear(row, step)
            case p.NeuronDown():
                self._neuron_down(row, step)
            case p.RotateStore():
                self._rotate_store(row, step)
            case p.Attend():
                self._attend(row, step)
            case p.GatedSilu() | p.Relu():
                self._activate(row, step)
            case p.PlaneMlp():
                self._plane_mlp(row, step.layer)
            case p.PlaneDown():
                self._plane_down(row, step.layer)
            case p.Scatter():
                self._scatter(row)

    def quantised(self, row: np.ndarray, buffer: p.Buffer, packed: PackedMatrix) -> None:
        """Have the instruction write int8 values of `buffer` too, as `packed` reads them."""
        target = self.memory.quantised[buffer]
        row[t.QUANTISED], row[t.QUANTISED_STRIDE] = target.ctypes.data, target.strides[0]
        row[t.GROUP], row[t.FACTORS] = packed.group, packed.inverse.ctypes.data

    def quantise(self, buffer: p.Buffer, packed: PackedMatrix, on_tail: bool) -> np.ndarray:
        """A row that does nothing but that."""
        row = np.zeros(t.COLUMNS, np.int64)
        row[t.OPERATION], row[t.SYNC], row[t.ON_TAIL], row[t.K] = t.QUANTISE, 1, on_tail, packed.columns
        self._source(row, buffer)
        self.quantised(row, buffer, packed)
        return row

    def _target(self, row: np.ndarray, buffer: p.Buffer, column: int = 0) -> None:
        array = self.memory.buffers[buffer]
        row[t.TARGET], row[t.TARGET_STRIDE] = array.ctypes.data + 4 * column, array.strides[0]

    def _source(self, row: np.ndarray, buffer: p.Buffer) -> None:
        array = self.memory.buffers[buffer]
        row[t.SOURCE], row[t.SOURCE_STRIDE] = array.ctypes.data, array.strides[0]

    def _vector(self, name: str | None) -> int:
        """Address of a float32 vector; 0 for none."""
        return 0 if name is None else int(self.weights.vector(name).ctypes.data)

    def _matrix(self, row: np.ndarray, matrix: Matrix) -> None:
        row[t.WEIGHT], row[t.SCALE], row[t.KIND] = matrix.address, matrix.scales, matrix.kind
        row[t.N], row[t.K] = matrix.rows, matrix.columns

    def _embed(self, row: np.ndarray, step: p.Embed) -> None:
        row[t.OPERATION] = t.EMBED
        self._matrix(row, self.weights.embedding(step.weight))
        self._target(row, step.target)

    def _add_positions(self, row: np.ndarray, step: p.AddPositions) -> None:
        row[t.OPERATION], row[t.EXTRA_A] = t.ADD_POSITIONS, step.first
        self._matrix(row, self.weights.embedding(step.weight))
        self._target(row, p.Buffer.STREAM)

    def _add_norm(self, row: np.ndarray, step: p.AddNorm) -> None:
        row[t.OPERATION], row[t.ON_TAIL], row[t.K] = t.ADD_NORM, step.on_tail, self.config.hidden_size
        self._source(row, p.Buffer.STREAM)
        self._target(row, step.target)
        row[t.WEIGHT], row[t.BIAS] = self._vector(step.weight), self._vector(step.bias)
        row[t.EXTRA_C] = self.memory.scalars.ctypes.data
        if step.adds:
            delta = self.memory.buffers[p.Buffer.DELTA]
            row[t.EXTRA_A], row[t.EXTRA_B] = delta.ctypes.data, delta.strides[0]

    def _linear(self, row: np.ndarray, step: p.Linear) -> None:
        row[t.ON_TAIL], row[t.SYNC] = step.on_tail, step.meets
        matrix = matrix_of(step, self.weights)
        if isinstance(matrix, PackedMatrix):
            source = self.memory.quantised[step.source]
            row[t.OPERATION], row[t.SOURCE], row[t.SOURCE_STRIDE] = (
                t.LOWBIT_LINEAR,
                source.ctypes.data,
                source.strides[0],
            )
            row[t.WEIGHT], row[t.KIND], row[t.GROUP] = matrix.data.ctypes.data, matrix.bits, matrix.group
            row[t.N], row[t.K] = matrix.rows, matrix.columns
        else:
            row[t.OPERATION] = t.LINEAR
            self._matrix(row, matrix)
            self._source(row, step.source)
        self._target(row, step.target, step.column)
        row[t.BIAS] = self._vector(step.bias)
        if step.neurons_of is not None:
            chosen = self.weights.chosen[step.neurons_of]
            row[t.OPERATION], row[t.N], row[t.EXTRA_A] = t.GATHERED_LINEAR, len(chosen), chosen.ctypes.data

    def _neuron_down(self, row: np.ndarray, step: p.NeuronDown) -> None:
        row[t.OPERATION] = t.GATHERED_DOWN
        matrix, chosen = self.weights.neuron_major(step.weight), self.weights.chosen[step.layer]
        self._matrix(row, matrix)
        row[t.N], row[t.K], row[t.EXTRA_A] = matrix.columns, len(chosen), chosen.ctypes.data
        row[t.BIAS] = self._vector(step.bias)
        self._source(row, p.Buffer.ACTIVATED)
        self._target(row, p.Buffer.DELTA)

    def _cache(self, row: np.ndarray, layer: int) -> None:
        cache = self.memory.cache[layer]
        row[t.WEIGHT], row[t.KIND] = cache.ctypes.data, 1 if cache.dtype == np.float16 else 0
        row[t.K], row[t.EXTRA_C], row[t.EXTRA_D] = self.config.head_dim, self.config.heads, self.config.kv_heads

    def _rotate_store(self, row: np.ndarray, step: p.RotateStore) -> None:
        row[t.OPERATION], row[t.N] = t.ROTATE_STORE, step.rotates
        self._cache(row, step.layer)
        self._source(row, p.Buffer.QKV)
        memory = self.memory
        cosine, sine = (memory.cosine, memory.sine) if step.rotates else memory.still
        row[t.EXTRA_A], row[t.EXTRA_B] = cosine.ctypes.data, sine.ctypes.data
        row[t.EXTRA_E] = memory.scalars.ctypes.data + 4
        row[t.SCALE], row[t.BIAS] = self._vector(step.query_norm), self._vector(step.key_norm)

    def _attend(self, row: np.ndarray, step: p.Attend) -> None:
        row[t.OPERATION] = t.ATTEND
        self._cache(row, step.layer)
        self._source(row, p.Buffer.QKV)
        self._target(row, p.Buffer.ATTENDED)
        row[t.EXTRA_A], row[t.EXTRA_B] = self.memory.scores.ctypes.data, self.memory.scores.strides[0]
        row[t.EXTRA_E] = -(step.window or 0) if step.sinks else step.window or 0

    def _activate(self, row: np.ndarray, step: p.GatedSilu | p.Relu) -> None:
        row[t.OPERATION], row[t.N] = (t.RELU if isinstance(step, p.Relu) else t.GATED_SILU), step.count
        self._source(row, p.Buffer.GATE_UP)
        self._target(row, p.Buffer.ACTIVATED)
        row[t.EXTRA_A] = self.memory.statistics[step.layer].ctypes.data if step.observes else 0

    def _plane_mlp(self, row: np.ndarray, layer: int) -> None:
        mlp, memory = planes_of(layer, self.weights), self.memory
        gate, source, scratch = mlp.layer.gate, memory.quantised[p.Buffer.NORMED], memory.buffers[p.Buffer.GATE_UP]
        row[t.OPERATION], row[t.N], row[t.K], row[t.GROUP] = t.PLANE_MLP, gate.rows, gate.columns, gate.group
        row[t.SOURCE], row[t.SOURCE_STRIDE] = source.ctypes.data, source.strides[0]
        self._target(row, p.Buffer.ACTIVATED)
        row[t.WEIGHT], row[t.SCALE] = gate.data.ctypes.data, mlp.layer.up.data.ctypes.data
        row[t.BIAS], row[t.FACTORS] = mlp.layer.rests.ctypes.data, mlp.layer.down.ctypes.data
        row[t.EXTRA_E] = mlp.parameters.ctypes.data
        row[t.EXTRA_A], row[t.EXTRA_B] = memory.chosen.ctypes.data, memory.chosen_counts.ctypes.data
        row[t.EXTRA_C], row[t.EXTRA_D] = scratch.ctypes.data, scratch.strides[0]

    def _plane_down(self, row: np.ndarray, layer: int) -> None:
        mlp, memory, width = planes_of(layer, self.weights).layer, self.memory, self.config.hidden_size
        row[t.OPERATION], row[t.N], row[t.K], row[t.GROUP] = t.PLANE_DOWN, width, mlp.gate.rows, mlp.down_group
        self._source(row, p.Buffer.ACTIVATED)
        self._target(row, p.Buffer.DELTA)
        row[t.WEIGHT] = mlp.down.ctypes.data
        row[t.EXTRA_A], row[t.EXTRA_B] = memory.chosen.ctypes.data, memory.chosen_counts.ctypes.data
        row[t.EXTRA_C] = blocks_of(mlp.gate.rows)

    def _scatter(self, row: np.ndarray) -> None:
        row[t.OPERATION], row[t.ON_TAIL] = t.SCATTER, 1
        self._source(row, p.Buffer.KEPT_LOGITS)
        self._target(row, p.Buffer.DRAFT_LOGITS)
        row[t.N], row[t.EXTRA_A] = len(self.memory.kept), self.memory.kept.ctypes.data
