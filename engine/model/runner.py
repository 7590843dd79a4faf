"""What the generation loop needs of a loaded model, whatever executes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np

from engine.memory.kv_cache import KvCache
from engine.offload.plan import Plan
from engine.offload.transfers import Transfers
from engine.recipe import Ingredients, Recipe
from engine.records import LoadProgress

MAX_DECODE_ROWS = 16  # the widest verify pass: gamma + 1
MAX_DRAFT_ROWS = 8  # the widest draft pass: the last token and the proposals the draft checks
CYCLE_ROWS = 48 + MAX_DRAFT_ROWS  # most that a cycle of any runner writes: its full pass, and the next draft pass


class Runner(Protocol):
    """A loaded model with its KV cache and, beside it, the draft made by the recipe in force.

    Position p of the cache holds the key and value of token p. Both passes write rows at `position` onward in place;
    what a draft wrote is overwritten by the next full pass over the same positions (invariant 2). Returned logits are
    float32 views that the next pass overwrites.
    """

    @property
    def kernels(self) -> str:
        """What executes the passes, for display."""
        ...

    @property
    def capacity(self) -> int:
        """Positions of the KV cache."""
        ...

    @property
    def kv(self) -> KvCache:
        """The KV cache; passes are over the range in use, and see to it that there is memory under what they touch."""
        ...

    @property
    def chunk(self) -> int:
        """Most tokens one full pass takes."""
        ...

    @property
    def decode_rows(self) -> int:
        """Rows of the widest full pass that a cycle can end with."""
        ...

    @property
    def draft_bytes(self) -> int:
        """Memory the draft's own weights take."""
        ...

    @property
    def ingredients(self) -> Ingredients:
        """What a recipe may ask of `use_recipe` here."""
        ...

    @property
    def recipe(self) -> Recipe:
        """The recipe in force."""
        ...

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        """Full pass over tokens at `position`; logits [wanted, vocabulary] of the last `wanted` rows (at most 16)."""
        ...

    def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
        """Draft pass over 1 to 8 tokens at `position`; logits [len(tokens), vocabulary].

        The first is the last token known, the others are proposals for the draft to check. With a reduced vocabulary
        the logits of ids without a row are minus infinity.
        """
        ...

    def peak(self, row: np.ndarray, position: int | None) -> tuple[int, np.float32, float]:
        """Best index (lowest on ties), its logit, and sum exp(logit - best), as engine.sampling.distribution.peak."""
        ...

    def use_recipe(
        self,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """Draft by another recipe from the next draft pass on, once what it needs of copies is made.

        Raises BadSetting for one this device cannot run, LoadCancelled when `cancelled` while a copy is made; the
        recipe in force then stays.
        """
        ...

    def release_copies(self, kept: Collection[int]) -> None:
        """Give back copies of the weights that neither the recipe in force nor a width of `kept` needs."""
        ...

    def refresh_neurons(self) -> None:
        """Choose the draft's MLP neurons anew from the activations that full passes have shown."""
        ...

    @property
    def plan(self) -> Plan | None:
        """Which parts of the full model lie where; None for a runner that has all of them in one memory."""
        ...

    @property
    def transfers(self) -> Transfers:
        """What full passes have brought in since the load, and how long they waited for it."""
        ...

    def use_budget(self, budget: int | None, progress: Callable[[LoadProgress], None] = lambda _: None) -> None:
        """Have parts of the full model lie as a budget in bytes of the fast memory allows, from the next pass on.

        None: all that is free. The tokens stay the same. Raises SpecularError with one sentence, with figures where the
        least does not fit; all then lies as before.
        """
        ...

    def relieve(self, progress: Callable[[LoadProgress], None] = lambda _: None) -> bool:
        """Give way where other programs have left the fast memory short: parts lie as the budget in force allows now.

        Whether any part moved. Raises as use_budget.
        """
        ...

    def interruptible(self, stopped: Callable[[], bool]) -> AbstractContextManager[None]:
        """Within, a full pass that waits for a part of the model raises PassStopped once `stopped`."""
        ...

    def find_fault(self, tokens: Sequence[int], position: int) -> str | None:
        """The first part of the full model ("layer 7's MLP") that makes a row of these tokens NaN or infinite.

        None where all stay finite. At most `chunk` tokens, from `position` on; a full pass that looks at what each
        part leaves.
        """
        ...

    def close(self) -> None:
        """Give back memory and threads; the runner is unusable after."""
        ...
