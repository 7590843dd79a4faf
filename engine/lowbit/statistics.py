"""What the inputs of each matrix look like on real text: rounding spends its precision where inputs are large."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.lowbit.rounding_rule import FEEDBACK_COLUMNS
from engine.model import programme as p


@dataclass(frozen=True, slots=True)
class InputSample:
    """A matrix's input on some text.

    mean_square: float32 [columns], E[x^2]. rows: float32 [tokens, columns], the inputs themselves, or None for inputs
    so wide that rounding has no use for them. Neither has the text's first position: models keep huge values there.
    """

    mean_square: np.ndarray
    rows: np.ndarray | None


Statistics = Mapping[str, InputSample]
"""Matrix name -> its input; matrices that share one share the object."""


class InputStatistics:
    """Collects inputs from full passes that are stopped wherever an input has been made."""

    def __init__(self, programme: p.Programme) -> None:
        self._inputs = p.shared_inputs(programme)
        self._squares: list[np.ndarray | None] = [None] * len(self._inputs)
        self._rows: list[list[np.ndarray]] = [[] for _ in self._inputs]
        self._seen = 0  # rows, the first position's included

    def see(self, run: Callable[[int, int], None], buffers: Mapping[p.Buffer, np.ndarray], rows: int) -> None:
        """One pass over the text's next `rows` tokens. run(first, last): execute instructions first to last - 1."""
        begun, first = 0, 0 if self._seen else 1
        for i, read in enumerate(self._inputs):
            run(begun, read.first)
            begun = read.first
            values = buffers[read.buffer][first:rows].copy()
            square = np.square(values, dtype=np.float64).sum(0)
            before = self._squares[i]
            self._squares[i] = square if before is None else before + square
            if values.shape[1] <= FEEDBACK_COLUMNS:
                self._rows[i].append(values)
        self._seen += rows

    def means(self) -> Statistics:
        """Of everything seen; at least two tokens must have been."""
        result: dict[str, InputSample] = {}
        for read, square, rows in zip(self._inputs, self._squares, self._rows, strict=True):
            if square is None:
                raise ValueError("nothing was seen")
            with np.errstate(over="ignore"):  # what float32 cannot hold counts as infinite
                mean = (square / max(1, self._seen - 1)).astype(np.float32)
            sample = InputSample(mean, np.concatenate(rows) if rows else None)
            result |= dict.fromkeys(read.weights, sample)
        return result
