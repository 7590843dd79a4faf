"""The 4-bit copy of an MLP as two planes of gate and up, and down neuron by neuron: what choosing neurons reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.kernels.compiled.plane_layout import HEADER, row_bytes
from engine.lowbit.codes import LowBitCodes, dequantise
from engine.lowbit.packed import PackedMatrix, pack
from engine.predict.curves import PlaneCurve, measure_planes
from engine.predict.planes import high_plane


@dataclass(frozen=True, slots=True)
class PlaneLayer:
    """One layer's MLP. gate, up: upper planes, 2 bits; rests, down: see engine/kernels/compiled/plane_dots.py.

    reach: float32 [neurons], norm of each neuron's row of down. curve: what threshold keeps which share.
    """

    gate: PackedMatrix
    up: PackedMatrix
    rests: np.ndarray
    down: np.ndarray
    down_group: int
    reach: np.ndarray
    curve: PlaneCurve

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        return self.gate.nbytes + self.up.nbytes + self.rests.nbytes + self.down.nbytes + self.reach.nbytes

    def parameters(self, share: float) -> np.ndarray:
        """What `plane_mlp` compares scores with, float32 [HEADER + neurons]; scores there are squares."""
        found = np.zeros(HEADER + len(self.reach), np.float32)
        threshold = self.curve.threshold(share)
        found[:3] = threshold * abs(threshold), self.curve.gate_error, self.curve.up_error
        found[HEADER:] = self.reach * self.reach
        return found


def make_planes(layer: int, gate: PackedMatrix, up: PackedMatrix, down: LowBitCodes, inputs: np.ndarray) -> PlaneLayer:
    """One layer's planes from its packed 4-bit gate and up and its neuron-major down [neurons, hidden].

    inputs: float32 [tokens, hidden] normed inputs of the layer's MLP on real text, for the thresholds.
    """
    from engine.kernels.compiled.plane_pack import pack_neurons, pack_rests

    whole = [unpacked(matrix) for matrix in (gate, up)]
    planes = [pack(_half_precision(high_plane(codes))) for codes in whole]
    rests = np.zeros((gate.rows, row_bytes(gate.columns, gate.group)), np.uint8)
    pack_rests(whole[0].codes, whole[1].codes, _bits(whole[0].scale), _bits(whole[1].scale), gate.group, rests)
    rows = np.zeros((down.rows, row_bytes(down.columns, down.group)), np.uint8)
    pack_neurons(np.ascontiguousarray(down.codes), _bits(down.scale), _bits(down.low), down.group, rows)
    reach = np.linalg.norm(dequantise(down), axis=1).astype(np.float32)
    curve = measure_planes(layer, whole[0], whole[1], reach, inputs)
    return PlaneLayer(planes[0], planes[1], rests, rows, down.group, reach, curve)


def unpacked(matrix: PackedMatrix) -> LowBitCodes:
    """The codes of a packed 4-bit matrix. Raises ValueError for other bits."""
    from engine.kernels.compiled.plane_pack import unpack_tiles

    if matrix.bits != 4:
        raise ValueError(f"only 4-bit matrices are unpacked, not {matrix.bits}-bit ones")
    codes = np.empty((matrix.rows, matrix.columns), np.uint8)
    scale, low = (np.empty((matrix.rows, matrix.columns // matrix.group), np.uint16) for _ in range(2))
    unpack_tiles(matrix.data, matrix.group, codes, scale, low)
    factors = (1.0 / matrix.inverse).astype(np.float32)
    return LowBitCodes(codes, scale.view(np.float16), low.view(np.float16), factors, 4, matrix.group)


def _half_precision(codes: LowBitCodes) -> LowBitCodes:
    scale, low = (np.clip(part, -65504, 65504).astype(np.float16) for part in (codes.scale, codes.low))
    return LowBitCodes(codes.codes, scale, low, codes.factors, codes.bits, codes.group)


def _bits(halves: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(halves).view(np.uint16)
