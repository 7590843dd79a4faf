"""Runners that show every full pass's logits to an observer, whatever chooses the tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engine.model.runner import Runner
from engine.recipe import Ingredients, Recipe

PassObserver = Callable[[int, np.ndarray], None]
"""Told (position of the first row, float32 logits [rows, vocabulary]); the next pass overwrites the array."""


@runtime_checkable
class CycleRunner(Protocol):
    """A runner that drafts and judges a block by itself, and whose last full pass can still be read afterwards.

    graphs.logits(rows): the first rows of that pass as a float32 host tensor [rows, vocabulary].
    """

    graphs: Any

    def cycle(self, token: int, position: int, gamma: int) -> Any:
        """A cycle of `gamma` drafts after `token` at `position`; its full pass has gamma + 1 rows."""
        ...


def observe(runner: Runner, observer: PassObserver) -> ObservedRunner:
    """The runner, watched; it is used by the same stepper as the bare one."""
    return (ObservedCycles if isinstance(runner, CycleRunner) else ObservedRunner)(runner, observer)


class ObservedRunner:
    """Implements engine.model.runner.Runner by another one."""

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
    def ingredients(self) -> Ingredients:
        """See Runner.ingredients."""
        return self.inner.ingredients

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

    def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
        """See Runner.draft."""
        return self.inner.draft(tokens, position)

    def peak(self, row: np.ndarray, position: int | None) -> tuple[int, np.float32, float]:
        """See Runner.peak."""
        return self.inner.peak(row, position)

    def use_recipe(self, recipe: Recipe) -> None:
        """See Runner.use_recipe."""
        self.inner.use_recipe(recipe)

    def release_copies(self, kept: Collection[int]) -> None:
        """See Runner.release_copies."""
        self.inner.release_copies(kept)

    def refresh_neurons(self) -> None:
        """See Runner.refresh_neurons."""
        self.inner.refresh_neurons()

    def find_fault(self, tokens: Sequence[int], position: int) -> str | None:
        """See Runner.find_fault."""
        return self.inner.find_fault(tokens, position)

    def close(self) -> None:
        """See Runner.close."""
        self.inner.close()


class ObservedCycles(ObservedRunner):
    """The same for a runner with cycles of its own: their logits are fetched after each."""

    def cycle(self, token: int, position: int, gamma: int) -> Any:
        """See CycleRunner.cycle."""
        inner: Any = self.inner
        result = inner.cycle(token, position, gamma)
        self._observer(position, inner.graphs.logits(gamma + 1).numpy())
        return result
