"""Exceptions that nobody caught: each is shown once, then counted."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType

from PySide6.QtCore import QObject, Signal, Slot

from app.worker import fault_sentence

log = logging.getLogger(__name__)
Place = tuple[type[BaseException], str, int]


class Faults(QObject):
    """While begun, takes what reaches the event loop or ends a thread. shown(sentence, details) the first time that
    an exception of a kind comes from a place; again(sentence, count) for the others; both in the window's thread."""

    shown = Signal(str, str)
    again = Signal(str, int)
    _came = Signal(object, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._counts: dict[Place, int] = {}
        self._before: tuple[Callable[..., object], Callable[..., object]] | None = None
        self._came.connect(self._on_fault)

    def begin(self) -> None:
        """Take them from now on."""
        self._before = sys.excepthook, threading.excepthook
        sys.excepthook = self.hook
        threading.excepthook = self._thread_hook

    def end(self) -> None:
        """Let them go where they went before."""
        if self._before is not None:
            sys.excepthook, threading.excepthook = self._before
            self._before = None

    def hook(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """An exception that nobody caught; from any thread."""
        self._came.emit(error, "".join(traceback.format_exception(kind, error, trace)))

    def _thread_hook(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            self.hook(args.exc_type, args.exc_value, args.exc_traceback)

    @Slot(object, str)
    def _on_fault(self, error: BaseException, details: str) -> None:
        place = _place(error)
        count = self._counts[place] = self._counts.get(place, 0) + 1
        if count == 1:
            log.error("An exception that nobody caught.\n%s", details)
            if sys.__stderr__ is not None:
                sys.__stderr__.write(details)
            self.shown.emit(fault_sentence(error), details)
            return
        if count & (count - 1) == 0:  # the 2nd, 4th, 8th ...: a fault in every frame must not fill the log
            log.error("%s: the same for the %d. time", type(error).__name__, count)
        self.again.emit(fault_sentence(error), count)


def _place(error: BaseException) -> Place:
    """The kind of an exception, and where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error), str(error)[:200], 0
    return type(error), trace.tb_frame.f_code.co_filename, trace.tb_lineno
