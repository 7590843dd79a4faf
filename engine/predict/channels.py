"""Input channels a draft may leave out of a product: those whose value is small for this token.

Magnitude thresholds a matrix after TEAL (Liu et al. 2024), weighted by the norm of the channel's column where asked
(WINA, Chen et al. 2025): a small value in front of a large column can matter more than a large one before a small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.predict.thresholds import as_numpy, threshold_for

SMALLEST_REACH = np.float32(1e-30)


@dataclass(frozen=True, slots=True)
class ChannelLimits:
    """Channel k of a token's input is read where |input[k]| > limits[k]. limits: float32 [K], at least -1."""

    limits: np.ndarray

    def keep(self, inputs: Any) -> Any:
        """bool [tokens, K] for inputs [tokens, K]; numpy or torch (on the limits' device)."""
        if isinstance(inputs, np.ndarray):
            return abs(inputs) > self.limits
        return abs(inputs) > inputs.new_tensor(self.limits)


def fit_channels(inputs: Any, dropped: float, reach: Any = None) -> ChannelLimits:
    """Limits that drop the share `dropped` of channels on tokens like these, a matrix's inputs [tokens, K].

    reach: float [K], the norm of each channel's column of the matrix, or None for all alike. A channel of no reach is
    never read. With nothing to drop, every channel is kept, also one that is exactly zero. Raises ValueError for a
    share outside [0, 1), for no inputs, and for NaN.
    """
    values = abs(as_numpy(inputs)).astype(np.float32)
    if dropped == 0:
        return ChannelLimits(np.full(values.shape[1], -1, np.float32))
    weights = np.ones(values.shape[1], np.float32) if reach is None else as_numpy(reach).astype(np.float32)
    threshold = max(0.0, threshold_for(values * weights, 1 - dropped))
    limits = np.full(len(weights), np.inf, np.float32)
    np.divide(np.float32(threshold), weights, out=limits, where=weights > SMALLEST_REACH)
    return ChannelLimits(limits)
