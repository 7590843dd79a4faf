"""Reads memory, processors and the model's card twice a second, in a thread of its own, only while somebody looks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, Signal

from engine.memory.report import KvMemory
from engine.probes.reading import CardProbe, CardReading, HostReading

if TYPE_CHECKING:
    from engine.offload.report import Offload  # imports numpy, for which the first paint does not wait

log = logging.getLogger(__name__)

PERIOD_SECONDS = 0.5
LOST_SECONDS = 10.0  # a card that could not be read is asked again after this
CLOSE_SECONDS = 3.0


class HostProbeLike(Protocol):
    """What is asked of the computer: `engine.probes.host.HostProbe`."""

    def read(self) -> HostReading: ...

    def rest(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading. seconds: of time.monotonic(). card: None where the model is on no card. kv: None without a model.

    offload: None where all of the model is in one memory.
    """

    seconds: float
    host: HostReading
    card: CardReading | None
    kv: KvMemory | None
    offload: Offload | None = None


class EngineView(Protocol):
    """What is asked of the engine, from the monitor's thread: `app.host.EngineHost`."""

    def memory(self) -> KvMemory | None: ...

    def offload(self) -> Offload | None: ...


@dataclass(frozen=True, slots=True)
class Watch:
    """What is to be read. card: UUID of the model's card, or None; bus: the traffic on its bus too."""

    card: str | None = None
    bus: bool = False


def make_host_probe() -> HostProbeLike:
    """Imports psutil, which the first paint does not wait for."""
    from engine.probes.host import HostProbe

    return HostProbe()


def make_card_probe() -> CardProbe:
    """The NVIDIA library is loaded by the probe's first reading, never before a model is on a card."""
    from engine.probes.nvml import NvmlProbe

    return NvmlProbe()


class Monitor(QObject):
    """sampled(Sample) for each reading, while watching.

    The probes are made, used and let go of in the monitor's thread, which begins with the first `watch`.
    """

    sampled = Signal(object)

    def __init__(
        self,
        engine: EngineView,
        parent: QObject | None = None,
        *,
        host_probe: Callable[[], HostProbeLike] = make_host_probe,
        card_probe: Callable[[], CardProbe] = make_card_probe,
        period: float = PERIOD_SECONDS,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._make_host, self._make_card = host_probe, card_probe
        self._period = period
        self._changed = threading.Condition()
        self._watch: Watch | None = None
        self._closing = False
        self._thread: threading.Thread | None = None

    @property
    def watching(self) -> Watch | None:
        """What is being read; None while at rest."""
        return self._watch

    def watch(self, watch: Watch) -> None:
        """Read this from now on, at once and then twice a second."""
        if not self._closing and watch != self._watch:
            self._tell(watch)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
                self._thread.start()

    def rest(self) -> None:
        """Read nothing, and let go of the driver, so that the card may sleep."""
        if self._watch is not None:
            self._tell(None)

    def close(self) -> None:
        """End the thread. One that hangs in the driver is left behind: it ends with the process."""
        with self._changed:
            self._closing = True
            self._watch = None
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    def _tell(self, watch: Watch | None) -> None:
        with self._changed:
            self._watch = watch
            self._changed.notify()

    def _run(self) -> None:
        reader = _Reader(self._engine, self._make_host(), self._make_card())
        try:
            while (watch := self._next(reader)) is not None:
                sample = reader.read(watch)
                with self._changed:
                    if self._watch is None:
                        continue  # nobody looks any more
                    self.sampled.emit(sample)
                    if self._watch == watch:
                        self._changed.wait(self._period)
        except Exception:  # figures are not worth a program: they cease, and the log has the reason
            log.exception("The monitor has stopped.")
        finally:
            reader.rest()

    def _next(self, reader: _Reader) -> Watch | None:
        """What to read, once there is something; None at the end."""
        with self._changed:
            if self._watch is None and not self._closing:
                reader.rest()
                self._changed.wait_for(lambda: self._watch is not None or self._closing)
            return self._watch


class _Reader:
    """The probes, in the monitor's thread; a card that could not be read is left alone for a while."""

    def __init__(self, engine: EngineView, host: HostProbeLike, card: CardProbe) -> None:
        self._engine, self._host, self._card = engine, host, card
        self._lost: CardReading | None = None
        self._lost_at = 0.0

    def read(self, watch: Watch) -> Sample:
        card = self._read_card(watch) if watch.card is not None else None
        return Sample(time.monotonic(), self._host.read(), card, self._engine.memory(), self._engine.offload())

    def _read_card(self, watch: Watch) -> CardReading:
        now = time.monotonic()
        lost = self._lost
        if lost is not None and lost.card == watch.card and now - self._lost_at < LOST_SECONDS:
            return lost
        reading = self._card.read(watch.card or "", bus=watch.bus)
        self._lost, self._lost_at = (reading, now) if reading.lost else (None, 0.0)
        return reading

    def rest(self) -> None:
        self._host.rest()
        self._card.rest()
