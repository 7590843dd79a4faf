"""One number a layer instead of a sort a token: the score above which the wanted share lies on average."""

from __future__ import annotations

from typing import Any

import numpy as np

KEEP_ALL = float("-inf")


def threshold_for(scores: Any, share: float) -> float:
    """The threshold that keeps `share` of these scores, where "kept" means strictly above it.

    scores: numpy or torch, any shape, of tokens like those to come. Strictly: what scores exactly nothing (a token of
    zeros, a neuron behind a ReLU) is never kept for the sake of the share. Raises ValueError for a share outside
    (0, 1], for no scores, and for NaN.
    """
    if not 0 < share <= 1:
        raise ValueError(f"a share is above 0 to 1, not {share}")
    values = as_numpy(scores).ravel()
    if not values.size or np.isnan(values).any():
        raise ValueError("a threshold needs scores, and none of them NaN")
    if share == 1:
        return KEEP_ALL
    below = min(values.size - 1, round(values.size * (1 - share)))
    if below == 0:
        return KEEP_ALL
    return float(np.partition(values, below - 1)[below - 1])


def as_numpy(array: Any) -> np.ndarray:
    """A numpy view or copy of a numpy array or a torch tensor on any device."""
    return array if isinstance(array, np.ndarray) else array.detach().cpu().numpy()
