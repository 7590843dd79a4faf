"""What the tests of the panes of long jobs share: an engine to hold in the middle, and what holds for every pane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fake_engine import FakeEngine
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from window_bench import Bench

from app.states import HostState
from app.ui.job_pane import JobPane

WAYS_TO_STOP = ("stop button", "escape in the pane", "escape in the window", "close")

Press = Callable[[Bench], None]
"""Presses the button that starts the job, as a user does."""


@dataclass(slots=True)
class JobEngine(FakeEngine):
    """After the first part of a job, `hold_job` waits for `go` or a stop; then `job_error` is raised."""

    hold_job: bool = False
    job_error: Exception | None = None

    def _middle(self) -> None:
        if self.hold_job:
            self._wait()
        if self.job_error is not None:
            raise self.job_error


def started(bench: Bench, press: Press) -> Bench:
    """The bench once the job has been asked for."""
    bench.ready()
    press(bench)
    return bench


def held(bench: Bench, press: Press) -> Bench:
    """The bench with the job in its middle, where the engine was told to hold."""
    started(bench, press).held()
    return bench


def over(bench: Bench, press: Press, state: HostState = HostState.READY) -> Bench:
    """The bench once the job is over and the host in `state`."""
    started(bench, press).reach(state)
    return bench


def runs(pane: JobPane) -> bool:
    """Whether the pane is there, with a way to stop and no other."""
    return pane.isVisible() and pane.stop_button.isVisible() and not pane.close_button.isVisible()


def check_settled(pane: JobPane) -> None:
    """The outcome is shown, and the job can be begun again."""
    assert pane.outcome.isVisible() and pane.close_button.isVisible() and not pane.bar.isVisible()
    assert not pane.stop_button.isVisible() and pane.again_button.isEnabled()


def check_stopped(bench: Bench, pane: JobPane, way: str, outcome: str) -> None:
    """Stop a job that is held, in one of WAYS_TO_STOP, and see its outcome."""
    if way == "stop button":
        bench.qtbot.mouseClick(pane.stop_button, Qt.MouseButton.LeftButton)
    elif way == "escape in the pane":
        pane.activateWindow()
        bench.qtbot.waitUntil(lambda: QApplication.activeWindow() is pane, timeout=5000)
        bench.qtbot.keyClick(pane, Qt.Key.Key_Escape)
    elif way == "escape in the window":
        bench.window.escape_action.trigger()
    else:
        pane.close()
    assert bench.host.state is HostState.STOPPING
    bench.reach(HostState.READY)
    assert pane.outcome.text() == outcome
    assert pane.isVisible() is (way in ("stop button", "escape in the window"))


def check_fault_is_told(pane: JobPane) -> None:
    """After a job that ended in ZeroDivisionError("division by zero")."""
    assert pane.outcome.text() == "Unexpected fault in the engine: division by zero."
    assert pane.close_button.isVisible() and not pane.again_button.isEnabled()


def check_closing_the_window_ends_it(bench: Bench, pane: JobPane) -> None:
    """Close the window over a job that is held."""
    bench.window.close()
    assert bench.host.state is HostState.CLOSED and bench.engine.closed.is_set()
    assert not pane.isVisible()


def check_a_message_is_kept(bench: Bench) -> None:
    """Send a message into a job that is held."""
    bench.window.chat.send("Hello?")
    assert bench.engine.requests == [] and bench.window.composer.text() == "Hello?"
