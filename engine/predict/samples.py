"""The inputs of every layer's MLP on some real text, for whoever fits a predictor."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from engine.model import programme as p


class MlpInputs:
    """Rows of full passes that are stopped where each layer's MLP has its input; `see` is as InputStatistics.see."""

    def __init__(self, programme: p.Programme) -> None:
        self._places = [
            index
            for index, step in enumerate(programme)
            if isinstance(step, p.Linear) and step.target is p.Buffer.GATE_UP and step.column == 0
        ]
        self._rows: list[list[np.ndarray]] = [[] for _ in self._places]

    def see(self, run: Callable[[int, int], None], buffers: Mapping[p.Buffer, np.ndarray], rows: int) -> None:
        """One pass over `rows` tokens. run(first, last): execute instructions first to last - 1."""
        begun = 0
        for place, kept in zip(self._places, self._rows, strict=True):
            run(begun, place)
            begun = place
            kept.append(buffers[p.Buffer.NORMED][:rows].copy())

    def layers(self) -> tuple[np.ndarray, ...]:
        """float32 [tokens, hidden] a layer, of everything seen; at least one row must have been."""
        return tuple(np.concatenate(kept) for kept in self._rows)
