"""What a runner that has all weights in one memory answers to questions about streaming."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from engine.errors import ReloadNeeded
from engine.offload.plan import Plan
from engine.offload.transfers import NONE, Transfers
from engine.records import LoadProgress


class Unmoved:
    """The part of engine.model.runner.Runner about streaming, where nothing moves."""

    @property
    def plan(self) -> Plan | None:
        """See Runner.plan."""
        return None

    @property
    def transfers(self) -> Transfers:
        """See Runner.transfers."""
        return NONE

    def use_budget(self, budget: int | None, progress: Callable[[LoadProgress], None] = lambda _: None) -> None:
        """See Runner.use_budget. Raises ReloadNeeded."""
        raise ReloadNeeded("Here the budget can only change by loading the model again.")

    def relieve(self, progress: Callable[[LoadProgress], None] = lambda _: None) -> bool:
        """See Runner.relieve: nothing can move."""
        return False

    def interruptible(self, stopped: Callable[[], bool]) -> AbstractContextManager[None]:
        """See Runner.interruptible."""
        return nullcontext()
