"""Exceptions that nobody caught: shown once, counted, from every thread; signals that ask the program to end."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot
from window_bench import BenchMaker

from app.end_signals import EndSignals
from app.faults import Faults


@pytest.fixture
def faults(qtbot: QtBot, caplog: pytest.LogCaptureFixture) -> Iterator[Faults]:
    caplog.set_level(logging.ERROR)  # they go to the log
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", threading.__excepthook__)
        found = Faults()
        found.begin()
        yield found
        found.end()


def fail(cause: str) -> None:
    raise KeyError(cause)


def hooked(cause: str) -> None:
    """As the interpreter does with an exception that nobody caught."""
    try:
        fail(cause)
    except KeyError as error:
        sys.excepthook(type(error), error, error.__traceback__)


def test_each_is_shown_once_and_counted(
    faults: Faults, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    shown: list[tuple[str, str]] = []
    again: list[tuple[str, int]] = []
    faults.shown.connect(lambda sentence, details: shown.append((sentence, details)))
    faults.again.connect(lambda sentence, count: again.append((sentence, count)))
    for _ in range(100):
        hooked("lost")
    error = ValueError("another")
    sys.excepthook(ValueError, error, None)
    assert [sentence.count("lost") + 2 * sentence.count("another") for sentence, _ in shown] == [1, 2]
    assert "KeyError" in shown[0][1] and "in fail" in shown[0][1]
    assert [count for _, count in again] == list(range(2, 101))
    assert len(caplog.records) == 2 + 6, "in full the first time, then at the 2nd, 4th, 8th ..."
    assert capfd.readouterr().err.count("Traceback") == 1


def test_those_of_other_threads_are_shown_too(faults: Faults, qtbot: QtBot) -> None:
    threads: list[int] = []
    faults.shown.connect(lambda *_: threads.append(threading.get_ident()))
    with qtbot.waitSignal(faults.shown, timeout=5000):
        thread = threading.Thread(target=fail, args=("lost",))
        thread.start()
        thread.join()
    assert threads == [threading.get_ident()], "in the window's thread"


def test_the_banner_counts(benches: BenchMaker, faults: Faults) -> None:
    bench = benches()
    faults.shown.connect(bench.window.notices.failed)
    faults.again.connect(bench.window.notices.failed_again)
    hooked("lost")
    banner = bench.view.banner
    assert "lost" in bench.banner and banner.action_button.text() == "Details"
    hooked("lost")
    hooked("lost")
    assert bench.banner.endswith("(×3)") and bench.window.notices._details.startswith("Traceback")
    bench.view.hide_banner()
    hooked("lost")
    assert bench.banner == "", "whoever closed it has seen it"
    bench.window.notices.tell("Something else")
    hooked("lost")
    assert bench.banner == "Something else"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends a process no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_closes_the_window_from_an_idle_event_loop(qtbot: QtBot, number: int) -> None:
    before = signal.getsignal(number)
    closed: list[bool] = []
    signals = EndSignals(lambda: closed.append(True))
    signals.begin()
    try:
        QTimer.singleShot(0, lambda: os.kill(os.getpid(), number))
        qtbot.waitUntil(lambda: closed == [True], timeout=5000)
        assert signal.getsignal(number) is signal.SIG_DFL, "a second one ends the process"
    finally:
        signals.end()
    assert signal.getsignal(number) is before
