"""A change of budget that was asked for while a reply runs, and what became of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from engine.errors import SpecularError, is_out_of_memory
from engine.model.loaded import LoadedModel
from engine.records import LoadProgress


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
        self.refused = None

    def carry_out(self, loaded: LoadedModel) -> None:
        """What was asked for, if anything. Raises SpecularError where it cannot be; all then lies as before."""
        with self._lock:
            wanted, self._wanted = self._wanted, None
        if wanted is None:
            return
        self.refused = None
        try:
            _move(loaded, wanted)
        except SpecularError as error:
            self.refused = str(error)
            wanted.done(error)
            raise
        wanted.done(None)

    def try_to(self, loaded: LoadedModel) -> None:
        """As carry_out, inside a reply, which goes on where it cannot be; `refused` then says why."""
        with suppress(SpecularError):
            self.carry_out(loaded)


def _move(loaded: LoadedModel, wanted: _Wanted) -> None:
    before = loaded.runner.plan
    try:
        loaded.runner.use_budget(wanted.bytes, wanted.progress)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise SpecularError("There is not enough memory to move parts of the model.") from error
    plan = loaded.runner.plan
    if before is None or plan is None or before.residency != plan.residency:
        loaded.controller.forget_costs(loaded.runner.decode_rows - 1)
