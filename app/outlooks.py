"""Forecasts of memory budgets for the settings page, made in a thread of their own: only the newest question counts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, Signal

from engine.errors import SpecularError
from engine.offload.outlook import Outlook
from engine.probes.reading import Measure

if TYPE_CHECKING:
    from engine.offload.basis import Basis
    from engine.offload.forecast import Forecaster

log = logging.getLogger(__name__)

CLOSE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Question:
    """What a budget in bytes, None for all that is free, would bring the loaded model, or this one were it loaded.

    context: tokens of the one that is not loaded, None for its own.
    """

    model: str
    context: int | None
    budget: int | None


@dataclass(frozen=True, slots=True)
class Answered:
    """The outlook, or why there is none; and the most memory that the loaded model has taken, None without one."""

    question: Question
    outlook: Outlook | None
    sentence: str = ""
    peak: Measure | None = None


class EngineView(Protocol):
    """What is asked of the engine, from this thread: `app.host.EngineHost`."""

    def basis(self) -> Basis | None: ...

    def peak(self) -> Measure | None: ...


class ForecasterLike(Protocol):
    """What makes a forecast: `engine.offload.forecast.Forecaster`, or a test's."""

    def outlook(self, basis: Basis, budget: int | None) -> Outlook: ...


def make_forecaster() -> Forecaster:
    """Imports numpy and, for a model that is not loaded, torch: the window does not wait for them."""
    from engine.offload.forecast import Forecaster

    return Forecaster()


def read_basis(model: str, context: int | None) -> Basis:
    """What forecasts for a model that is not loaded rest on, from its headers."""
    from engine.offload.forecast import basis_of_headers

    return basis_of_headers(model, context)


class Outlooks(QObject):
    """answered(Answered) for the newest question. The thread begins with the first."""

    answered = Signal(object)

    def __init__(
        self,
        engine: EngineView,
        parent: QObject | None = None,
        *,
        forecaster: Callable[[], ForecasterLike] = make_forecaster,
        headers: Callable[[str, int | None], Basis] = read_basis,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._make, self._headers = forecaster, headers
        self._changed = threading.Condition()
        self._question: Question | None = None
        self._closing = False
        self._thread: threading.Thread | None = None

    def ask(self, question: Question) -> None:
        """Answer this next; a question that has not been answered yet is dropped."""
        with self._changed:
            if self._closing:
                return
            self._question = question
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="outlooks", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        forecaster = self._make()
        read: tuple[str, int | None, Basis] | None = None
        while (question := self._next()) is not None:
            try:
                basis = self._engine.basis()
                if basis is None:
                    if read is None or read[:2] != (question.model, question.context):
                        read = (question.model, question.context, self._headers(question.model, question.context))
                    basis = read[2]
                answer = Answered(question, forecaster.outlook(basis, question.budget), "", self._engine.peak())
            except SpecularError as error:
                answer = Answered(question, None, str(error))
            except Exception as error:  # a forecast is not worth a program: the log has the reason
                log.exception("A forecast of the memory has failed.")
                answer = Answered(question, None, f"{type(error).__name__}: {error}")
            with self._changed:
                if not self._closing:
                    self.answered.emit(answer)

    def _next(self) -> Question | None:
        """The newest question, once there is one; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._question is not None or self._closing)
            question, self._question = self._question, None
            return None if self._closing else question
