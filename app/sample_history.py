"""The last two minutes of the monitor's samples, as arrays for plots."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np

from app.monitor import Sample
from engine.probes.reading import Measure

LENGTH = 240  # two minutes at two a second


class SampleHistory:
    """Of bounded length; the oldest sample goes when a new one comes."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=LENGTH)

    def add(self, sample: Sample) -> None:
        """The newest sample. One that is on another card than those before begins anew."""
        card = sample.card.card if sample.card is not None else None
        last = self.last
        if last is not None and (last.card.card if last.card is not None else None) != card:
            self._samples.clear()
        self._samples.append(sample)

    @property
    def last(self) -> Sample | None:
        """The newest sample."""
        return self._samples[-1] if self._samples else None

    def seconds(self) -> np.ndarray:
        """When the samples were taken, oldest first."""
        return np.array([sample.seconds for sample in self._samples], float)

    def values(self, measure: Callable[[Sample], Measure | None], scale: float = 1.0) -> np.ndarray:
        """A figure of every sample; NaN where it is missing."""
        found = (measure(sample) for sample in self._samples)
        return np.array([math.nan if m is None or m.value is None else m.value * scale for m in found], float)
