"""Where a model's parts lie changes between two cycles: because a budget was asked for, or others need the memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from engine.errors import SpecularError, is_out_of_memory
from engine.model.loaded import LoadedModel
from engine.offload.plan import Residency, arrangement
from engine.records import LoadProgress

LOOK_SECONDS = 2.0  # between two looks at what other programs have left


@dataclass(frozen=True, slots=True)
class _Wanted:
    bytes: int | None
    progress: Callable[[LoadProgress], None]
    done: Callable[[SpecularError | None], None]


class BudgetRequest:
    """Takes requests from any thread; the engine's thread carries the last one out between two cycles."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: _Wanted | None = None
        self.refused: str | None = None
        self.yielded: str | None = None
        self._looked_at = 0.0

    def ask(
        self,
        budget: int | None,
        progress: Callable[[LoadProgress], None],
        done: Callable[[SpecularError | None], None] = lambda _: None,
    ) -> None:
        """For bytes of the fast memory, None for all that is free; an earlier request is forgotten. Any thread.

        done: called by whoever carries it out, with None or with why it could not be; not of a request forgotten.
        """
        with self._lock:
            self._wanted = _Wanted(budget, progress, done)

    def forget(self) -> None:
        """The model it was about is gone."""
        with self._lock:
            self._wanted = None
        self.refused = self.yielded = None

    def carry_out(self, loaded: LoadedModel) -> None:
        """What was asked for, if anything. Raises SpecularError where it cannot be; all then lies as before."""
        with self._lock:
            wanted, self._wanted = self._wanted, None
        if wanted is None:
            return
        self.refused = self.yielded = None
        try:
            _move(loaded, partial(loaded.runner.use_budget, wanted.bytes, wanted.progress))
        except SpecularError as error:
            self.refused = str(error)
            wanted.done(error)
            raise
        wanted.done(None)

    def try_to(self, loaded: LoadedModel) -> None:
        """As carry_out, inside a reply, which goes on where it cannot be; `refused` then says why.

        Now and then also looks whether other programs have left too little memory, and gives way to them.
        """
        with suppress(SpecularError):
            self.carry_out(loaded)
        now = time.monotonic()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._relieve(loaded)

    def _relieve(self, loaded: LoadedModel) -> None:
        try:
            moved = _move(loaded, loaded.runner.relieve)
        except SpecularError as error:
            self.yielded = f"Other programs need memory, but this model cannot give way: {error}"
            return
        plan = loaded.runner.plan
        if moved and plan is not None:
            size = plan.bytes_of(Residency.STREAMED) / 1e9
            self.yielded = f"Other programs need memory: {size:.2f} GB of the model are brought in for every pass now."


def _move(loaded: LoadedModel, move: Callable[[], bool | None]) -> bool:
    """Whether parts moved. Raises SpecularError where there is not enough memory to move them."""
    before = arrangement(loaded.runner.plan)
    try:
        move()
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise SpecularError("There is not enough memory to move parts of the model.") from error
    moved = arrangement(loaded.runner.plan) != before
    if moved:
        loaded.controller.forget_costs(loaded.runner.decode_rows - 1)
    return moved
