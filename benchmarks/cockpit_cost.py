"""What the cockpit costs while a reply streams in: python benchmarks/cockpit_cost.py [SECONDS], 20 for each part.

The real window without a display, over an engine that has no model but works as hard as one: every cycle computes in
another thread, outside the interpreter's lock. Stretches with and without the cockpit take turns, so that other work on
the machine meets both; all sections are unfolded. "Of a core" is the GUI thread's processor time.
"""

from __future__ import annotations

import gc
import hashlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from figures import ROOT, Figure, report

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.extend([str(ROOT / "tests"), str(ROOT / "tests" / "app")])

import psutil
from fake_engine import FakeEngine
from PySide6.QtCore import QEventLoop, QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication

from app import theme
from app.conversation import Reply
from app.host import EngineHost
from app.live_settings import LiveSettings
from app.settings import AppSettings
from app.settings_store import SettingsStore
from app.states import HostState
from app.ui.main_window import MainWindow
from engine.records import CycleEvent, Event, Finished, PrefillProgress, StopReason
from engine.settings import GenerateRequest
from reply_builders import long_reply

RATE = 300.0  # tokens a second
STRETCHES = 8
UPDATES, WARM_UP = 10_000, 1_000
WATCH_MS = 5


def cycles() -> Iterator[CycleEvent]:
    """Cycles without end, of five tokens, every third with a rejected guess."""
    pattern = long_reply(600)
    number = 0
    while True:
        event = pattern[number % len(pattern)]
        yield replace(event, record=replace(event.record, index=number))
        number += 1


@dataclass(slots=True)
class BusyEngine(FakeEngine):
    """Streams at `RATE`, or as fast as its work allows: hashing, which lets go of the interpreter's lock."""

    paced: bool = True
    made: int = 0

    def generate(self, request: GenerateRequest) -> Iterator[Event]:
        self._halt.clear()
        yield PrefillProgress(12, 12, 0)
        block, due = bytes(8_000_000), time.perf_counter()
        for event in cycles():
            if self._halt.is_set():
                break
            if self.paced:
                due += len(event.record.emitted_ids) / RATE
                time.sleep(max(0.0, due - time.perf_counter()))
            else:
                hashlib.sha256(block).digest()
            self.made += len(event.record.emitted_ids)
            yield event
        yield Finished(StopReason.STOPPED, "", 12, 0, self.made, 0.1, 1.0, 0)


class LoopWatch(QObject):
    """The longest time for which the event loop did not come round; `busiest`: of it, at most spent computing."""

    def __init__(self) -> None:
        super().__init__()
        self.longest = self.busiest = 0.0
        self._last, self._last_busy = time.perf_counter(), time.thread_time()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._on_timer)
        self._timer.start(WATCH_MS)

    def _on_timer(self) -> None:
        now, busy = time.perf_counter(), time.thread_time()
        self.longest = max(self.longest, now - self._last - WATCH_MS / 1000)
        self.busiest = max(self.busiest, busy - self._last_busy)
        self._last, self._last_busy = now, busy

    def begin(self) -> None:
        self.longest = self.busiest = 0.0
        self._last, self._last_busy = time.perf_counter(), time.thread_time()


class Bench:
    """The window, and stretches of streaming in it."""

    def __init__(self, folder: Path) -> None:
        self.engine = BusyEngine()
        self.host = EngineHost(lambda: self.engine)
        settings = AppSettings(theme="dark", cockpit_folded=())
        live = LiveSettings(SettingsStore(folder), settings)
        self.window = MainWindow(self.host, live, starter_installed=lambda: True)
        self.window.resize(1440, 900)
        self.window.show()
        self.wait(0.5)
        self.window.load_starter()
        self._reach(HostState.READY)
        self.watch = LoopWatch()

    def wait(self, seconds: float) -> None:
        """Run the event loop."""
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            QApplication.processEvents()
            time.sleep(0.001)

    def _reach(self, state: HostState) -> None:
        deadline = time.perf_counter() + 30
        while self.host.state is not state:
            if time.perf_counter() > deadline:
                raise SystemExit(f"The window is {self.host.state.value}, not {state.value}.")
            self.wait(0.01)

    def stretch(self, seconds: float, *, cockpit: bool, paced: bool) -> tuple[float, float]:
        """GUI seconds of processor a second, and tokens a second; `watch` has the gaps of the event loop."""
        if self.window.cockpit.shown != cockpit:
            self.window.toggle_cockpit()
        self.engine.paced = paced
        self.window.chat.new_chat()
        self.window.chat.send("Go.")
        self.wait(1.0)
        gc.collect()
        self.watch.begin()
        began, busy, made = time.perf_counter(), time.thread_time(), self.engine.made
        self._run(seconds)
        took = time.perf_counter() - began
        result = (time.thread_time() - busy) / took, (self.engine.made - made) / took
        self.window.chat.stop()
        self._reach(HostState.READY)
        return result

    def _run(self, seconds: float) -> None:
        """Qt's own loop, which waits for events rather than asking for them."""
        loop = QEventLoop()
        QTimer.singleShot(round(seconds * 1000), loop.quit)
        loop.exec()

    def close(self) -> None:
        self.window.close()


def cost_figures(bench: Bench, seconds: float) -> list[Figure]:
    """At 300 tokens a second: the share of a core that the cockpit takes, and the longest gap with it."""
    with_it, without = [], []
    gaps, gaps_without, busiest = [], [], []
    for number in range(STRETCHES):
        cockpit = number % 2 == 0
        busy, _ = bench.stretch(seconds / 4, cockpit=cockpit, paced=True)
        (with_it if cockpit else without).append(busy)
        (gaps if cockpit else gaps_without).append(bench.watch.longest)
        if cockpit:
            busiest.append(bench.watch.busiest)
    share = (statistics.median(with_it) - statistics.median(without)) * 100
    how = f"window {statistics.median(with_it) * 100:.1f} % with it, {statistics.median(without) * 100:.1f} % without"
    gap_note = f"at most {max(busiest) * 1000:.0f} ms of it computing; without it {max(gaps_without) * 1000:.0f} ms"
    return [
        Figure("the cockpit at 300 tok/s, of a core", share, "%", at_most=10, note=how),
        Figure("longest gap of the event loop at 300 tok/s", max(gaps) * 1000, "ms", at_most=50, note=gap_note),
    ]


def speed_figure(bench: Bench, seconds: float) -> Figure:
    """What an engine that computes all the time loses to the cockpit."""
    ratios, speeds = [], []
    for number in range(STRETCHES):
        order = (True, False) if number % 2 else (False, True)
        found = {cockpit: bench.stretch(seconds / STRETCHES, cockpit=cockpit, paced=False)[1] for cockpit in order}
        ratios.append(found[True] / found[False])
        speeds.append(found[True])
    how = f"median of {STRETCHES} pairs, {min(ratios):.3f} to {max(ratios):.3f}; {statistics.median(speeds):.0f} tok/s"
    return Figure("tok/s lost to the cockpit", (1 - statistics.median(ratios)) * 100, "%", at_most=2, note=how)


def memory_figure(bench: Bench) -> Figure:
    """Growth over 10,000 updates with new data, painted."""
    if not bench.window.cockpit.shown:
        bench.window.toggle_cockpit()
    cockpit = bench.window.cockpit.cockpit
    assert cockpit is not None
    process, start, took = psutil.Process(), 0, 0.0
    stream, reply = cycles(), Reply(-1)
    for number in range(WARM_UP + UPDATES):
        if number % 500 == 0:
            reply = Reply(-1)
        reply.append(next(stream))
        cockpit.follow(reply)
        began = time.thread_time()
        cockpit.refresh()
        QApplication.processEvents()
        took += time.thread_time() - began
        if number == WARM_UP:
            gc.collect()
            start, took = process.memory_info().rss, 0.0
    gc.collect()
    growth = (process.memory_info().rss - start) / 2**20
    note = f"{took / UPDATES * 1000:.1f} ms of processor time an update"
    return Figure("memory of 10,000 updates", growth, "MiB", at_most=2, note=note)


def main() -> None:
    """Measure and print."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    app = QApplication([])
    app.setQuitOnLastWindowClosed(False)
    theme.apply(app, "dark")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        figures = cost_figures(bench, seconds)
        figures.append(speed_figure(bench, seconds))
        figures.append(memory_figure(bench))
        bench.close()
    report(figures)


if __name__ == "__main__":
    main()
