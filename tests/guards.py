"""Guards that every test runs under: nothing it started may outlive it, and no log record may surprise.

A test that leaves a thread, a QThread or an active timer behind fails and names the line that started it. A log
record of WARNING or above fails the test unless the test expects it: inside `with caplog.at_level(logging.WARNING)`
(or `caplog.set_level`) records up to that level are expected.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

JOIN_SECONDS = 2.0  # a thread that was told to end gets this long to do so

# Threads these modules start belong to the tool, not to the test.
TOOL_MODULES = ("pytest_timeout", "tqdm")

Started = list[tuple["weakref.ref[Any]", str]]


def starting_place(depth: int = 2) -> str:
    """`file:line in function` of the nearest caller outside the standard threading modules."""
    frame = sys._getframe(depth)
    while frame.f_back and Path(frame.f_code.co_filename).name in ("threading.py", "thread.py", "guards.py"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def record_starts(monkeypatch: pytest.MonkeyPatch, owner: type) -> Started:
    """Wrap `owner.start` so that each started object is remembered with the place that started it."""
    started: Started = []
    original: Callable[..., Any] = owner.start  # type: ignore[attr-defined]

    def start(self: Any, *args: Any) -> Any:
        started.append((weakref.ref(self), starting_place()))
        return original(self, *args)

    monkeypatch.setattr(owner, "start", start)
    return started


def alive(started: Started) -> Iterator[tuple[Any, str]]:
    """The started objects that still exist, with their places."""
    for reference, place in started:
        target = reference()
        if target is not None:
            yield target, place


def fail_listing(what: str, leaks: list[str]) -> None:
    """Fail the test, one line a leak; does nothing without leaks."""
    if leaks:
        pytest.fail(f"the test left {what} behind:\n  " + "\n  ".join(leaks), pytrace=False)


@pytest.fixture(autouse=True)
def no_leaked_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test whose Python threads, daemons too, are still running after its fixtures were torn down."""
    started = record_starts(monkeypatch, threading.Thread)
    yield
    leaks = []
    for thread, place in alive(started):
        if any(module in place for module in TOOL_MODULES):
            continue
        thread.join(JOIN_SECONDS)
        if thread.is_alive():
            leaks.append(f"{thread.name}, started at {place}")
    fail_listing("running threads", leaks)


@pytest.fixture(autouse=True)
def no_leaked_qthreads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test whose QThreads are still running after its fixtures were torn down; ends them all the same."""
    qt = sys.modules.get("PySide6.QtCore")
    if qt is None:
        yield
        return
    import shiboken6

    started = record_starts(monkeypatch, qt.QThread)
    yield
    leaks = []
    for thread, place in alive(started):
        if shiboken6.isValid(thread) and thread.isRunning():
            leaks.append(f"{type(thread).__name__}, started at {place}")
            thread.requestInterruption()
            thread.quit()
            thread.wait(int(JOIN_SECONDS * 1000))
    fail_listing("running QThreads", leaks)


@pytest.fixture(autouse=True)
def no_leaked_qtimers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test whose QTimers are still active after its fixtures were torn down; stops them all the same."""
    qt = sys.modules.get("PySide6.QtCore")
    if qt is None:
        yield
        return
    import shiboken6

    started = record_starts(monkeypatch, qt.QTimer)
    yield
    # Closed widgets wait for their deferred deletion, which takes the timers they own with them.
    if qt.QCoreApplication.instance() is not None:
        qt.QCoreApplication.sendPostedEvents(None, qt.QEvent.Type.DeferredDelete.value)
    leaks: dict[int, str] = {}
    for timer, place in alive(started):
        if shiboken6.isValid(timer) and timer.isActive():
            leaks[id(timer)] = f"{type(timer).__name__} of {timer.interval()} ms, started at {place}"
            timer.stop()
    fail_listing("active QTimers", list(leaks.values()))


class UnexpectedRecords(logging.Handler):
    """Collects records of WARNING and above that the test's caplog level does not declare as expected."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        super().__init__(logging.WARNING)
        self.caplog = caplog
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno > self.caplog.handler.level:
            place = f"{record.pathname}:{record.lineno}"
            self.found.append(f"{record.levelname} {record.name}: {record.getMessage()} ({place})")


@pytest.fixture(autouse=True)
def no_unexpected_log_records(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fails a test during which something logged at WARNING or above without the test expecting it."""
    handler = UnexpectedRecords(caplog)
    root = logging.getLogger()
    root.addHandler(handler)
    yield
    root.removeHandler(handler)
    if handler.found:
        pytest.fail("unexpected log records:\n  " + "\n  ".join(handler.found), pytrace=False)


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives each test an empty data folder of its own, so that the user's is neither read nor written."""
    folder = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("SPECULAR_DATA_DIR", os.fspath(folder))
    return folder
