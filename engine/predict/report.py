"""How well a predictor finds what matters, layer by layer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class LayerReport:
    """One layer's predictor on tokens it was not fitted on.

    kept: share of neurons (heads, channels) it chose, averaged over tokens.
    recall: share of the importance of all of them that the chosen ones carry; 1 where nothing matters at all.
    top_recall: share it found of the true most important ones, as many a token as `kept` stands for.
    """

    layer: int
    kept: float
    recall: float
    top_recall: float


@dataclass(frozen=True, slots=True)
class PredictorReport:
    """All layers' figures. kind: what predicts what, for people ("2-bit planes, MLP neurons")."""

    kind: str
    layers: tuple[LayerReport, ...]

    @property
    def kept(self) -> float:
        """Share kept, averaged over the layers; 1 without layers."""
        return _mean(layer.kept for layer in self.layers)

    @property
    def recall(self) -> float:
        """Recall averaged over the layers; 1 without layers."""
        return _mean(layer.recall for layer in self.layers)


def layer_report(layer: int, chosen: np.ndarray, importance: np.ndarray) -> LayerReport:
    """Measure a choice against the truth. chosen: bool [tokens, N]; importance: float [tokens, N], not negative.

    Raises ValueError where the two differ in shape or hold no token.
    """
    if chosen.shape != importance.shape or not chosen.size:
        raise ValueError(f"a choice {chosen.shape} cannot be measured against importance {importance.shape}")
    truth = importance.astype(np.float64)
    mass = truth.sum()
    recall = float(truth[chosen].sum() / mass) if mass > 0 else 1.0
    kept = float(chosen.mean())
    count = max(1, round(kept * chosen.shape[1]))
    best = np.argpartition(-truth, count - 1, axis=1)[:, :count]
    real = np.take_along_axis(truth, best, 1) > 0  # a neuron that is silent is none of the most important ones
    found = np.take_along_axis(chosen, best, 1) & real
    return LayerReport(layer, kept, recall, float(found.sum() / real.sum()) if real.any() else 1.0)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 1.0
