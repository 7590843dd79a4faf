"""Which MLP neurons the draft computes: those the full model has lately used most.

The statistic is a moving average of |activation| per neuron that full passes keep up for free; a neuron's weight in
the choice is that average times the norm of its down-projection column, its reach into the residual stream (after
GRIFFIN, Dong et al. 2024, with the prompt's statistic replaced by a running one).
"""

from __future__ import annotations

import numpy as np


class NeuronChoice:
    """The chosen neurons of each layer, int32 [kept] in ascending order, rewritten in place by `refresh`."""

    def __init__(self, layers: int, neurons: int, kept: int, reach: np.ndarray) -> None:
        self._neurons, self._kept, self._reach = neurons, kept, reach
        first = np.arange(kept, dtype=np.int32)
        self.chosen = tuple(first.copy() for _ in range(layers))

    def refresh(self, statistics: np.ndarray) -> None:
        """Choose anew. statistics: float32 [layers, neurons]."""
        if self._kept == self._neurons:
            return
        scores = statistics * self._reach
        best = np.argpartition(scores, self._neurons - self._kept, axis=1)[:, self._neurons - self._kept :]
        best.sort(axis=1)
        for layer, row in enumerate(best):
            self.chosen[layer][:] = row
