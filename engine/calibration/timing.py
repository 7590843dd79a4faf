"""Times of single passes: by the card's own events where the runner has them, else by the clock of the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from engine.errors import NumericFault
from engine.model.runner import Runner


class PassTimes(Protocol):
    """Seconds that a pass over `tokens` at `position` takes in a cycle."""

    def full(self, tokens: Sequence[int], position: int) -> float: ...
    def draft(self, tokens: Sequence[int], position: int) -> float: ...


@runtime_checkable
class TimedRunner(Protocol):
    """A runner whose passes run without the host, and are to be timed where they run."""

    def timed_full(self, tokens: Sequence[int], position: int) -> float: ...
    def timed_draft(self, tokens: Sequence[int], position: int) -> float: ...


def times_of(runner: Runner, clock: Callable[[], float]) -> PassTimes:
    """The way to time this runner's passes."""
    return _CardTimes(runner) if isinstance(runner, TimedRunner) else _HostTimes(runner, clock)


class _HostTimes:
    """A pass and the choice of a token from each of its rows, as a cycle does both."""

    def __init__(self, runner: Runner, clock: Callable[[], float]) -> None:
        self._runner, self._clock = runner, clock

    def full(self, tokens: Sequence[int], position: int) -> float:
        began = self._clock()
        for row in self._runner.full(tokens, position, len(tokens)):
            self._runner.peak(row, None)
        return self._clock() - began

    def draft(self, tokens: Sequence[int], position: int) -> float:
        began = self._clock()
        for row in self._runner.draft(tokens, position):
            try:
                self._runner.peak(row, None)
            except NumericFault:
                continue  # a draft may compute nonsense: it is compared elsewhere
        return self._clock() - began


class _CardTimes:
    def __init__(self, runner: TimedRunner) -> None:
        self.full, self.draft = runner.timed_full, runner.timed_draft
