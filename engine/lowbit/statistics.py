"""What the inputs of each matrix look like on real text: rounding spends its precision where inputs are large."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from engine.model import programme as p

Statistics = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""Matrix name -> (mean |x|, mean x^2) of its input, float32 [columns] each."""


class InputStatistics:
    """Sums over the rows of full passes that are stopped wherever an input has been made."""

    def __init__(self, programme: p.Programme) -> None:
        self._inputs = p.shared_inputs(programme)
        self._sizes = [np.zeros(0) for _ in self._inputs]
        self._squares = [np.zeros(0) for _ in self._inputs]
        self._rows = 0

    def see(self, run: Callable[[int, int], None], buffers: Mapping[p.Buffer, np.ndarray], rows: int) -> None:
        """One pass over `rows` tokens. run(first, last): execute instructions first to last - 1."""
        begun = 0
        for i, read in enumerate(self._inputs):
            run(begun, read.first)
            begun = read.first
            values = buffers[read.buffer][:rows].astype(np.float64)
            size, square = np.abs(values).sum(0), (values * values).sum(0)
            self._sizes[i] = self._sizes[i] + size if self._rows else size
            self._squares[i] = self._squares[i] + square if self._rows else square
        self._rows += rows

    def means(self) -> Statistics:
        """Of everything seen; at least one row must have been."""
        result: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for read, size, square in zip(self._inputs, self._sizes, self._squares, strict=True):
            means = (size / self._rows).astype(np.float32), (square / self._rows).astype(np.float32)
            result |= dict.fromkeys(read.weights, means)
        return result
