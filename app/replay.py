"""Plays the events of a stored reply through a view, on a clock that can be paused, scrubbed, slowed and sped up."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Protocol

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.recorded import cycle_ends
from engine.records import Event

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
TICK_MS = 33
BUDGET_SECONDS = 0.008
SLICE = 40  # events laid out together; between slices the time spent is looked at


class ReplayView(Protocol):
    """What is played into: `app.ui.reply_view.ReplyView`."""

    def restart(self) -> None: ...

    def append_many(self, events: list[Event]) -> None: ...

    def hurry(self) -> None: ...

    def settle(self) -> None: ...


class Replay(QObject):
    """Owns the position (seconds into the reply) and shows the events up to it, never waiting for an engine.

    Signals: moved(seconds) as the position changes; playing_changed(bool). Going back shows the reply anew from its
    beginning; a long one in slices, so that no step takes long.
    """

    moved = Signal(float)
    playing_changed = Signal(bool)

    def __init__(
        self,
        events: Sequence[Event],
        times: Sequence[float],
        view: ReplayView,
        parent: QObject | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._events = list(events)
        self._times = list(times)
        self._stops = [0.0, *cycle_ends(events, times), self._times[-1]]
        self._view = view
        self._clock = clock
        self._position = 0.0
        self._speed = 1.0
        self._playing = False
        self._last = 0.0
        self._shown = 0
        self._sought = False
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self.tick)
        view.restart()

    @property
    def duration(self) -> float:
        """Seconds from the request to the end of the reply."""
        return self._times[-1]

    @property
    def position(self) -> float:
        """Seconds into the reply."""
        return self._position

    @property
    def speed(self) -> float:
        """Seconds of the reply that pass in one second."""
        return self._speed

    @property
    def playing(self) -> bool:
        """Whether the clock runs."""
        return self._playing

    @property
    def settled(self) -> bool:
        """Whether all is shown that has come by the position."""
        return self._shown == self._due()

    @property
    def ticking(self) -> bool:
        """Whether there is anything to do: a replay at rest costs nothing."""
        return self._timer.isActive()

    @Slot()
    def play(self) -> None:
        """Let the clock run; from the beginning where it stands at the end."""
        if self._position >= self.duration:
            self.seek(0.0)
        self._last = self._clock()
        self._set_playing(True)

    @Slot()
    def pause(self) -> None:
        """Stop the clock."""
        self._set_playing(False)

    @Slot()
    def toggle(self) -> None:
        """Play or pause."""
        if self._playing:
            self.pause()
        else:
            self.play()

    @Slot(float)
    def set_speed(self, speed: float) -> None:
        """Let the clock run this many times as fast, 0.1 to 4. Raises ValueError outside of that."""
        if not SPEEDS[0] <= speed <= SPEEDS[-1]:
            raise ValueError(f"A replay runs at {SPEEDS[0]} to {SPEEDS[-1]} times its speed, not {speed}.")
        self._advance()
        self._speed = speed

    @Slot(float)
    def seek(self, seconds: float) -> None:
        """Show the reply as it was at this time; a running clock goes on from there."""
        self._last = self._clock()
        self._sought = True
        self._move(min(max(seconds, 0.0), self.duration))

    def step(self, cycles: int) -> None:
        """Go to the end of a later or an earlier cycle, and stop the clock there."""
        self.pause()
        if cycles > 0:
            place = bisect_right(self._stops, self._position) + cycles - 1
        else:
            place = bisect_left(self._stops, self._position) + cycles
        self.seek(self._stops[min(max(place, 0), len(self._stops) - 1)])

    @Slot()
    def show_all(self) -> None:
        """The whole reply, at once."""
        self.pause()
        self._timer.stop()
        self._view.hurry()
        self._view.append_many(self._events[self._shown :])
        self._shown = len(self._events)
        self._view.settle()
        self._position = self.duration

    @Slot()
    def tick(self) -> None:
        """One step of the clock and of showing what is due."""
        self._advance()
        self._show()

    def _advance(self) -> None:
        if not self._playing:
            return
        now = self._clock()
        moved = self._position + (now - self._last) * self._speed
        self._last = now
        self._position = min(moved, self.duration)
        self.moved.emit(self._position)
        if self._position >= self.duration:
            self._set_playing(False)

    def _move(self, position: float) -> None:
        self._position = position
        self.moved.emit(position)
        self._show()

    def _due(self) -> int:
        return bisect_right(self._times, self._position)

    def _show(self) -> None:
        """Bring the view up to the position, for at most `BUDGET_SECONDS`; the next tick goes on."""
        deadline = time.perf_counter() + BUDGET_SECONDS
        due = self._due()
        if due < self._shown:
            self._view.restart()
            self._shown = 0
            self._sought = True
        if self._sought:
            self._view.hurry()
        while self._shown < due:
            upto = min(self._shown + SLICE, due)
            self._view.append_many(self._events[self._shown : upto])
            self._shown = upto
            if time.perf_counter() > deadline:
                break
        if self._sought and self.settled:
            self._sought = False
            self._view.settle()
        self._run_timer()

    def _set_playing(self, playing: bool) -> None:
        if playing != self._playing:
            self._playing = playing
            self.playing_changed.emit(playing)
        self._run_timer()

    def _run_timer(self) -> None:
        wanted = self._playing or not self.settled
        if wanted and not self._timer.isActive():
            self._timer.start()
        elif not wanted:
            self._timer.stop()
