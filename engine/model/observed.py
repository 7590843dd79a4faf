"""Runners that show every full pass's logits to an observer, whatever chooses the tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from engine.memory.kv_cache import KvCache
from engine.model.runner import MAX_DECODE_ROWS, Runner
from engine.offload.plan import Plan
from engine.offload.transfers import Transfers
from engine.recipe import Ingredients, Recipe
from engine.records import LoadProgress
from engine.settings import Sampling
from engine.speculation.card_drafter import CardPasses

PassObserver = Callable[[int, np.ndarray], None]
"""Told (position of the first row, float32 logits [rows, vocabulary]); the next pass overwrites the array."""


def observe(runner: Runner, observer: PassObserver) -> ObservedRunner:
    """The runner, watched; it is used by the same drafter as the bare one."""
    return (ObservedCard if isinstance(runner, CardPasses) else ObservedRunner)(runner, observer)


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
    def kv(self) -> KvCache:
        """See Runner.kv."""
        return self.inner.kv

    @property
    def chunk(self) -> int:
        """See Runner.chunk."""
        return self.inner.chunk

    @property
    def decode_rows(self) -> int:
        """See Runner.decode_rows."""
        return self.inner.decode_rows

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

    def use_recipe(
        self,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """See Runner.use_recipe."""
        self.inner.use_recipe(recipe, progress, cancelled)

    def release_copies(self, kept: Collection[int]) -> None:
        """See Runner.release_copies."""
        self.inner.release_copies(kept)

    def refresh_neurons(self) -> None:
        """See Runner.refresh_neurons."""
        self.inner.refresh_neurons()

    @property
    def plan(self) -> Plan | None:
        """See Runner.plan."""
        return self.inner.plan

    @property
    def transfers(self) -> Transfers:
        """See Runner.transfers."""
        return self.inner.transfers

    def use_budget(self, budget: int | None, progress: Callable[[LoadProgress], None] = lambda _: None) -> None:
        """See Runner.use_budget."""
        self.inner.use_budget(budget, progress)

    def relieve(self, progress: Callable[[LoadProgress], None] = lambda _: None) -> bool:
        """See Runner.relieve."""
        return self.inner.relieve(progress)

    def interruptible(self, stopped: Callable[[], bool]) -> AbstractContextManager[None]:
        """See Runner.interruptible."""
        return self.inner.interruptible(stopped)

    def find_fault(self, tokens: Sequence[int], position: int) -> str | None:
        """See Runner.find_fault."""
        return self.inner.find_fault(tokens, position)

    def close(self) -> None:
        """See Runner.close."""
        self.inner.close()


class ObservedCard(ObservedRunner):
    """The same for a runner whose full passes end cycles on the card: the logits that count are fetched after each.

    Cycles are as wide as the logits that are kept.
    """

    def __init__(self, inner: Any, observer: PassObserver) -> None:
        super().__init__(inner, observer)
        self._card = inner
        self._at = 0

    @property
    def decode_rows(self) -> int:
        """See Runner.decode_rows."""
        return MAX_DECODE_ROWS

    @property
    def most_siblings(self) -> int:
        """See CardPasses.most_siblings."""
        return int(self._card.most_siblings)

    @property
    def draft_rows(self) -> int:
        """See CardPasses.draft_rows."""
        return int(self._card.draft_rows)

    def choose_by(self, settings: Sampling, seed: int, history: Sequence[int]) -> None:
        """See CardPasses.choose_by."""
        self._card.choose_by(settings, seed, history)

    def begin_cycle(self, token: int, position: int) -> None:
        """See CardPasses.begin_cycle."""
        self._at = position
        self._card.begin_cycle(token, position)

    def draft_step(self, drafted: int, proposals: Sequence[int]) -> Any:
        """See CardPasses.draft_step."""
        return self._card.draft_step(drafted, proposals)

    def judge(self, chain: Sequence[int], checked: int, siblings: Sequence[tuple[int, int]]) -> Any:
        """See CardPasses.judge. The observer sees the accepted rows, and a taken sibling's behind them."""
        result = self._card.judge(chain, checked, siblings)
        rows = 1 + len(chain) + len(siblings)
        if rows > MAX_DECODE_ROWS:
            raise ValueError("the logits of a wide pass are not kept")
        logits = self._card.graphs.logits(rows).numpy()
        counting = [*range(result.accepted + 1), *([result.taken] if result.taken else [])]
        self._observer(self._at, logits[counting])
        return result

    def draft_ahead(self) -> None:
        """See CardPasses.draft_ahead: nothing, since the logits of the pass before would be overwritten."""
