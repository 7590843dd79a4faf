"""A runner that shows every full pass's logits to an observer before anything else reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.model.runner import Runner
from engine.recipe import Recipe

PassObserver = Callable[[int, np.ndarray], None]
"""Told (position of the first row, float32 logits [rows, vocabulary]); the next pass overwrites the array."""


class ObservedRunner:
    """Implements engine.model.runner.Runner by another one, and nothing that goes beyond it.

    Because it offers the plain interface only, everything that is generated through it goes through `full`.
    """

    def __init__(self, inner: Runner, observer: PassObserver) -> None:
        self.inner, self._observer = inner, observer

    @property
    def kernels(self) -> str:
        """See Runner.kernels."""
        return self.inner.kernels

    @property
    def capacity(self) -> int:
        """See Runner.capacity."""
        return self.inner.capacity

    @property
    def chunk(self) -> int:
        """See Runner.chunk."""
        return self.inner.chunk

    @property
    def draft_bytes(self) -> int:
        """See Runner.draft_bytes."""
        return self.inner.draft_bytes

    @property
    def recipe(self) -> Recipe:
        """See Runner.recipe."""
        return self.inner.recipe

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        """See Runner.full."""
        logits = self.inner.full(tokens, position, wanted)
        if wanted:
            self._observer(position + len(tokens) - wanted, logits)
        return logits

    def draft(self, token: int, position: int) -> np.ndarray:
        """See Runner.draft."""
        return self.inner.draft(token, position)

    def peak(self, row: np.ndarray, position: int | None) -> tuple[int, np.float32, float]:
        """See Runner.peak."""
        return self.inner.peak(row, position)

    def use_recipe(self, recipe: Recipe) -> None:
        """See Runner.use_recipe."""
        self.inner.use_recipe(recipe)

    def refresh_neurons(self) -> None:
        """See Runner.refresh_neurons."""
        self.inner.refresh_neurons()

    def close(self) -> None:
        """See Runner.close."""
        self.inner.close()
