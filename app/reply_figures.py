"""What the cockpit shows of a reply, folded from its events as they come. Plain data: no Qt."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from app.conversation import Reply
from engine.profile import Profile
from engine.records import CycleEvent, CycleRecord
from engine.statistics import ReplyStatistics
from engine.trend import Trend

SLICE = 20  # cycles between two looks at the clock
LAST = 64  # cycles that stand for how it goes now


class ReplyFigures:
    """Follows one reply. A long one that is there at once is folded bit by bit, so that no step takes long."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._reply: Reply | None = None
        self._begin()

    def _begin(self) -> None:
        self._taken = 0
        self.profile = Profile()
        self.trend = Trend()
        self.last: deque[CycleRecord] = deque(maxlen=LAST)

    @property
    def reply(self) -> Reply | None:
        """The reply that is followed."""
        return self._reply

    @property
    def statistics(self) -> ReplyStatistics:
        """Its counters."""
        return self._reply.statistics if self._reply is not None else ReplyStatistics()

    @property
    def pending(self) -> bool:
        """Whether some of its events have not been folded yet."""
        return self._reply is not None and self._taken < len(self._reply.events)

    def follow(self, reply: Reply | None) -> None:
        """Another reply, or none; the same one again changes nothing."""
        if reply is not self._reply:
            self._reply = reply
            self._begin()

    def take(self, seconds: float) -> int:
        """Fold what has come, for about `seconds` at most; how many cycles that were."""
        if self._reply is None:
            return 0
        events, deadline, cycles = self._reply.events, self._clock() + seconds, 0
        while self._taken < len(events):
            for event in events[self._taken : self._taken + SLICE]:
                self._taken += 1
                if isinstance(event, CycleEvent):
                    cycles += 1
                    self._add(event.record)
            if self._clock() > deadline:
                break
        return cycles

    def _add(self, record: CycleRecord) -> None:
        self.profile = self.profile.with_cycle(record)
        self.trend.add(record)
        self.last.append(record)
