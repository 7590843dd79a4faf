"""Signals that ask the program to end: Ctrl+C in a terminal, the end of a session. The window is closed properly.

Python runs handlers of signals between two of its instructions, and Qt's event loop executes none while it waits: a
socket wakes it.
"""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Callable
from types import FrameType

from PySide6.QtCore import QObject, QSocketNotifier, Slot

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
Handler = Callable[[int, FrameType | None], object] | int | None


class EndSignals(QObject):
    """While begun, such a signal calls `close`, in the event loop. A second one ends the process at once."""

    def __init__(self, close: Callable[[], object], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._close = close
        self._before: dict[signal.Signals, Handler] = {}
        self._wakeup = -1
        self._ours, self._theirs = socket.socketpair()
        for end in (self._ours, self._theirs):
            end.setblocking(False)
        self._notifier = QSocketNotifier(self._ours.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_woken)

    def begin(self) -> None:
        """Listen; in the main thread only."""
        self._wakeup = signal.set_wakeup_fd(self._theirs.fileno(), warn_on_full_buffer=False)
        for name in NAMES:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None:
                self._before[number] = signal.signal(number, self._on_signal)

    def end(self) -> None:
        """All as it was before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        signal.set_wakeup_fd(self._wakeup)
        self._notifier.setEnabled(False)
        self._ours.close()
        self._theirs.close()

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)

    @Slot()
    def _on_woken(self) -> None:
        with contextlib.suppress(OSError):
            self._ours.recv(64)
        self._close()
