"""Input channels a draft may leave out of a product: those whose value is small for this token.

One magnitude threshold a matrix (TEAL, Liu et al. 2024). Weighting channels by the norm of their column (WINA, Chen et
al. 2025) was tried on the starter model and changed its acceptance by less than the measurement can tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.predict.thresholds import as_numpy, threshold_for

READ_ALL = -1.0  # a limit that every magnitude is above


@dataclass(frozen=True, slots=True)
class ChannelLimits:
    """Channel k of a token's input is read where |input[k]| > limits[k]. limits: float32 [K], at least READ_ALL."""

    limits: np.ndarray

    def keep(self, inputs: Any) -> Any:
        """bool [tokens, K] for inputs [tokens, K]; numpy, or torch on any device."""
        if isinstance(inputs, np.ndarray):
            return abs(inputs) > self.limits
        return abs(inputs) > inputs.new_tensor(self.limits)

    def divided(self, factors: np.ndarray) -> ChannelLimits:
        """The same choice for inputs that have been divided by `factors` float32 [K], as low-bit products have them."""
        return ChannelLimits(np.where(self.limits < 0, self.limits, self.limits / factors).astype(np.float32))


def fit_channels(inputs: Any, dropped: float) -> ChannelLimits:
    """Limits that drop the share `dropped` of channels on tokens like these, a matrix's inputs [tokens, K].

    With nothing to drop every channel is kept, also one that is exactly zero. Raises ValueError for a share outside
    [0, 1), for no inputs, and for NaN.
    """
    values = abs(as_numpy(inputs)).astype(np.float32)
    threshold = READ_ALL if dropped == 0 else max(0.0, threshold_for(values, 1 - dropped))
    return ChannelLimits(np.full(values.shape[1], threshold, np.float32))
