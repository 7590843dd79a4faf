"""The draft's own weights as predictor of MLP neurons: the upper two bits of gate and up say which neurons matter.

A 4-bit code is 4 * high + rest. Knowing `high` alone, the code is taken for the middle of what it can be, 4 * high
+ 1.5; the gated product from those values, times the norm of the neuron's row of the down projection, is its score.
What the plane cannot see is noise of a known size: adding its mean square makes the score the root of the expected
square, which leaves out a tenth less of the MLP's output at the same share.
Stored as two planes, the choice reads half of gate and up, which the chosen neurons need anyway; the other half is
read for the chosen ones only. (Measured against low rank in the design notes: far better for SwiGLU.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.lowbit.codes import LowBitCodes, dequantise, group_of
from engine.predict.thresholds import threshold_for

REST = 4  # codes that share an upper half
MIDDLE = 1.5  # of the rests 0 to 3
UNIT = 64  # columns that the kernels of planes take at once


def planes_fit(hidden: int, intermediate: int) -> bool:
    """Whether an MLP of these sizes can have planes: groups of whole units, and neurons by eights."""
    return intermediate % 8 == 0 and hidden % 8 == 0 and group_of(hidden) % UNIT == 0


def high_plane(codes: LowBitCodes) -> LowBitCodes:
    """The upper two bits of a 4-bit matrix as a 2-bit matrix, its steps four times as wide; scale and low float32.

    Raises ValueError for a matrix of other bits.
    """
    if codes.bits != 4:
        raise ValueError(f"planes are made of 4-bit codes, not of {codes.bits}-bit ones")
    scale, low = as_float32(codes.scale), as_float32(codes.low)
    return replace(codes, codes=codes.codes // REST, scale=scale * REST, low=low + scale * MIDDLE, bits=2)


def rest_plane(codes: LowBitCodes) -> Any:
    """The lower two bits, uint8 [N, K]: codes = 4 * high_plane(codes).codes + rest_plane(codes)."""
    return codes.codes % REST


@dataclass(frozen=True, slots=True)
class PlanePredictor:
    """Chooses the neurons of one gated layer from the upper planes of gate and up, both [neurons, K].

    reach: float32 [neurons], how far a neuron's activation goes: the norm of its row of the neuron-major down matrix.
    gate_error, up_error: mean square error of the planes' silu(gate) and up.
    """

    gate: LowBitCodes
    up: LowBitCodes
    reach: Any
    threshold: float
    gate_error: float = 0.0
    up_error: float = 0.0

    def scores(self, inputs: Any) -> Any:
        """root of (silu(gate)^2 + gate_error) (up^2 + up_error), times reach, float32 [tokens, neurons].

        inputs: the MLP's normed inputs, float32 [tokens, K].
        """
        gates, ups = silu(inputs @ dequantise(self.gate).T), inputs @ dequantise(self.up).T
        return expected_size(gates, ups, self.gate_error, self.up_error) * self.reach

    def choose(self, inputs: Any) -> Any:
        """Which neurons to compute, bool [tokens, neurons]: those with a score above the threshold."""
        return self.scores(inputs) > self.threshold


def fit_planes(gate: LowBitCodes, up: LowBitCodes, reach: Any, inputs: Any, share: float) -> PlanePredictor:
    """A predictor that keeps about `share` of the neurons on tokens like these.

    gate, up: 4-bit codes; inputs: float32 [tokens, K], normed inputs of the layer's MLP. All numpy or all torch.
    Raises ValueError as high_plane and threshold_for do.
    """
    gate_plane, up_plane = high_plane(gate), high_plane(up)
    missed = silu(inputs @ dequantise(gate).T) - silu(inputs @ dequantise(gate_plane).T)
    missed_up = inputs @ (dequantise(up) - dequantise(up_plane)).T
    errors = float((missed * missed).mean()), float((missed_up * missed_up).mean())
    unset = PlanePredictor(gate_plane, up_plane, reach, 0.0, *errors)
    return replace(unset, threshold=threshold_for(unset.scores(inputs), share))


def chosen_mlp(predictor: PlanePredictor, gate: LowBitCodes, up: LowBitCodes, down: Any, inputs: Any) -> Any:
    """The oracle of the kernels: an MLP that computes only the chosen neurons, float32 [tokens, hidden].

    down: float32 neuron-major [neurons, hidden]. Where no neuron is chosen the result is zero.
    """
    activated = silu(inputs @ dequantise(gate).T) * (inputs @ dequantise(up).T)
    return (activated * predictor.choose(inputs)) @ down


def expected_size(gates: Any, ups: Any, gate_error: float, up_error: float) -> Any:
    """Root of the expected square of gate * up, when both are known up to errors of these mean squares."""
    return ((gates * gates + gate_error) * (ups * ups + up_error)) ** 0.5


def silu(values: Any) -> Any:
    """x / (1 + exp(-x)) of a numpy array or a torch tensor."""
    if isinstance(values, np.ndarray):
        with np.errstate(over="ignore"):  # exp(-x) may overflow to infinity, and x / infinity is right
            return values / (1 + np.exp(-values))
    from torch.nn import functional

    return functional.silu(values)


def as_float32(array: Any) -> Any:
    """A numpy array or torch tensor, widened."""
    return array.astype(np.float32) if isinstance(array, np.ndarray) else array.float()
