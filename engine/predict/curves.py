"""What a plane predictor keeps and finds at every share, measured once, so that turning the dial costs nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.lowbit.codes import LowBitCodes, dequantise
from engine.predict.planes import expected_size, high_plane, silu
from engine.predict.report import LayerReport, layer_report
from engine.predict.thresholds import KEEP_ALL

SHARES = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)
FITTED = 0.75  # of the tokens; the others are kept back for the report


@dataclass(frozen=True, slots=True)
class PlaneCurve:
    """One layer's thresholds and reports at SHARES; errors as in PlanePredictor."""

    gate_error: float
    up_error: float
    thresholds: tuple[float, ...]
    reports: tuple[LayerReport, ...]

    def threshold(self, share: float) -> float:
        """For a share above 0 to 1, between the measured ones by interpolation."""
        if share >= 1:
            return KEEP_ALL
        return float(np.interp(share, SHARES, self.thresholds))

    def report(self, share: float) -> LayerReport:
        """At the measured share nearest to this one."""
        return self.reports[int(np.argmin([abs(share - measured) for measured in SHARES]))]


def measure_planes(layer: int, gate: LowBitCodes, up: LowBitCodes, reach: np.ndarray, inputs: np.ndarray) -> PlaneCurve:
    """Thresholds from the first tokens of `inputs` float32 [tokens, K], reports on the rest; numpy codes of 4 bits.

    The same as fit_planes and its scores, with every product made once.
    """
    gates, ups = (inputs @ dequantise(codes).T for codes in (gate, up))
    seen_gates, seen_ups = (inputs @ dequantise(high_plane(codes)).T for codes in (gate, up))
    gates, seen_gates = silu(gates), silu(seen_gates)
    split = max(1, round(len(inputs) * FITTED))
    gate_error, up_error = (
        float(np.square(true[:split] - seen[:split]).mean()) for true, seen in ((gates, seen_gates), (ups, seen_ups))
    )
    scores = expected_size(seen_gates, seen_ups, gate_error, up_error) * reach
    ordered = np.sort(scores[:split], axis=None)
    thresholds = tuple(float(ordered[int(len(ordered) * (1 - share))]) for share in SHARES)
    later = slice(split, None) if split < len(inputs) else slice(None)
    importance = abs(gates[later] * ups[later]) * reach
    reports = tuple(layer_report(layer, scores[later] > limit, importance) for limit in thresholds)
    return PlaneCurve(gate_error, up_error, thresholds, reports)
