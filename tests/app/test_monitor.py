"""The monitor: reads in its own thread while somebody looks, rests otherwise, survives drivers that fail."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from fake_engine import kv_memory
from PySide6.QtCore import QObject, Slot
from pytestqt.qtbot import QtBot

from app import monitor as module
from app.monitor import Monitor, Sample, Watch
from engine.memory.report import KvMemory
from engine.offload.report import Offload
from engine.probes.nvml import NvmlProbe
from engine.probes.reading import CardReading, HostReading, Measure, nothing_known
from nvml_stub import CARD, NvmlStub

PERIOD = 0.01


@dataclass
class HostStub:
    """Counts its readings and the threads they were made in."""

    reads: int = 0
    rests: int = 0
    threads: set[int] = field(default_factory=set)
    fault: Exception | None = None

    def read(self) -> HostReading:
        self.reads += 1
        self.threads.add(threading.get_ident())
        if self.fault is not None:
            raise self.fault
        value = Measure(float(self.reads))
        return HostReading(value, value, value, value, value, value)

    def rest(self) -> None:
        self.rests += 1


class EngineStub:
    """What the monitor asks of an engine."""

    def memory(self) -> KvMemory | None:
        return kv_memory()

    def offload(self) -> Offload | None:
        return None


class Listener(QObject):
    """Lives in the window's thread, as the cockpit does."""

    def __init__(self) -> None:
        super().__init__()
        self.samples: list[Sample] = []
        self.threads: set[int] = set()

    @Slot(object)
    def take(self, sample: Sample) -> None:
        self.samples.append(sample)
        self.threads.add(threading.get_ident())


@dataclass
class Rig:
    """A monitor over stubs, and what it has told."""

    monitor: Monitor
    host: HostStub
    nvml: NvmlStub
    listener: Listener

    @property
    def samples(self) -> list[Sample]:
        return self.listener.samples


@pytest.fixture
def rig(qtbot: QtBot) -> Iterator[Rig]:
    host, nvml = HostStub(), NvmlStub()
    monitor = Monitor(EngineStub(), host_probe=lambda: host, card_probe=lambda: NvmlProbe(nvml), period=PERIOD)
    rig = Rig(monitor, host, nvml, Listener())
    monitor.sampled.connect(rig.listener.take)
    yield rig
    monitor.close()
    monitor.deleteLater()


def test_it_reads_in_a_thread_of_its_own_and_tells_in_ours(rig: Rig, qtbot: QtBot) -> None:
    rig.monitor.watch(Watch(CARD))
    qtbot.waitUntil(lambda: len(rig.samples) >= 3, timeout=5000)
    assert rig.host.threads and threading.get_ident() not in rig.host.threads
    assert rig.listener.threads == {threading.get_ident()}
    sample = rig.samples[-1]
    assert sample.card is not None and sample.card.used.value == 5 * 2**30
    assert sample.kv == kv_memory()
    assert rig.samples[0].seconds < rig.samples[-1].seconds


def test_nothing_is_read_before_somebody_looks(rig: Rig, qtbot: QtBot) -> None:
    qtbot.wait(5 * round(PERIOD * 1000))
    assert rig.monitor._thread is None
    assert rig.host.reads == 0 and rig.nvml.calls == []


def test_at_rest_nothing_is_read_and_the_library_is_let_go_of(rig: Rig, qtbot: QtBot) -> None:
    rig.monitor.watch(Watch(CARD))
    qtbot.waitUntil(lambda: bool(rig.samples), timeout=5000)
    rig.monitor.rest()
    qtbot.waitUntil(lambda: rig.nvml.calls[-1] == "nvmlShutdown", timeout=5000)
    calls, reads = len(rig.nvml.calls), rig.host.reads
    qtbot.wait(5 * round(PERIOD * 1000))
    assert (len(rig.nvml.calls), rig.host.reads, rig.nvml.open) == (calls, reads, 0)
    rig.monitor.watch(Watch(CARD))
    qtbot.waitUntil(lambda: rig.host.reads > reads, timeout=5000)
    assert rig.nvml.calls.count("nvmlInit") == 2


def test_without_a_card_the_library_is_never_touched(rig: Rig, qtbot: QtBot) -> None:
    rig.monitor.watch(Watch(None))
    qtbot.waitUntil(lambda: len(rig.samples) >= 3, timeout=5000)
    rig.monitor.close()
    assert rig.nvml.calls == [] and all(sample.card is None for sample in rig.samples)


def test_the_bus_is_read_where_it_is_watched(rig: Rig, qtbot: QtBot) -> None:
    rig.monitor.watch(Watch(CARD))
    qtbot.waitUntil(lambda: bool(rig.samples), timeout=5000)
    assert "nvmlDeviceGetPcieThroughput" not in rig.nvml.calls
    rig.monitor.watch(Watch(CARD, bus=True))
    qtbot.waitUntil(lambda: rig.samples[-1].card.received.value is not None, timeout=5000)  # type: ignore[union-attr]


@pytest.mark.parametrize("number", [12, 9, 18])
def test_a_driver_that_does_not_begin_is_told_once_and_asked_seldom(
    rig: Rig, qtbot: QtBot, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    rig.nvml.init_error = number
    with caplog.at_level(logging.WARNING):
        rig.monitor.watch(Watch(CARD))
        qtbot.waitUntil(lambda: len(rig.samples) >= 4, timeout=5000)
        rig.monitor.close()
    assert rig.nvml.calls == ["nvmlInit"]
    assert len(caplog.records) == 1
    assert all(s.card is not None and s.card.used.value is None and s.card.used.reason for s in rig.samples)
    assert rig.host.reads >= 4


def test_a_card_that_was_lost_comes_back(
    rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "LOST_SECONDS", 0.02)
    rig.monitor.watch(Watch(CARD))
    qtbot.waitUntil(lambda: bool(rig.samples), timeout=5000)
    with caplog.at_level(logging.WARNING):
        with rig.nvml.failing_with(15):
            qtbot.waitUntil(lambda: lost(rig.samples[-1]), timeout=5000)
        qtbot.waitUntil(lambda: not lost(rig.samples[-1]), timeout=5000)
    assert [record.getMessage() for record in caplog.records] == [
        "No figures of the card: The driver has lost the card."
    ]


def lost(sample: Sample) -> bool:
    return sample.card is not None and sample.card.lost


def test_a_fault_of_ours_ends_the_figures_and_nothing_else(
    rig: Rig, qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    rig.host.fault = ZeroDivisionError("division by zero")
    with caplog.at_level(logging.ERROR):
        rig.monitor.watch(Watch(CARD))
        qtbot.waitUntil(lambda: rig.nvml.calls[-1:] == ["nvmlShutdown"], timeout=5000)
        rig.monitor.close()
    assert "The monitor has stopped." in caplog.text and rig.samples == []


def test_closing_twice_and_watching_after_it_are_harmless(rig: Rig) -> None:
    rig.monitor.watch(Watch(CARD))
    rig.monitor.close()
    rig.monitor.close()
    rig.monitor.watch(Watch(CARD))
    assert rig.monitor.watching is None


def test_a_driver_that_hangs_does_not_hold_up_the_end(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.05)
    entered, go = threading.Event(), threading.Event()

    class Hanging:
        def read(self, card: str, *, bus: bool) -> CardReading:
            entered.set()
            go.wait(20)
            return nothing_known(card, "late")

        def rest(self) -> None: ...

    listener = Listener()
    monitor = Monitor(EngineStub(), host_probe=HostStub, card_probe=Hanging, period=PERIOD)
    monitor.sampled.connect(listener.take)
    monitor.watch(Watch(CARD))
    assert entered.wait(5)
    monitor.close()
    assert monitor._thread is not None and monitor._thread.is_alive()
    go.set()
    monitor._thread.join(5)
    qtbot.wait(20)
    assert listener.samples == []
    monitor.deleteLater()
