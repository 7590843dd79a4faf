"""The object that lives in the engine thread: the only caller of the engine, and the messages it sends back."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, QThread, Slot

from app.states import Answer
from engine.bench.questions.small import BenchProgress, BenchReport
from engine.calibration.report import CalibrationProgress, CalibrationReport
from engine.candidates import Candidates
from engine.errors import LoadCancelled, ReloadNeeded, SpecularError
from engine.memory.report import KvMemory
from engine.probes.reading import Measure
from engine.proof import ProofProgress, ProofReport
from engine.records import Event, Finished, LoadProgress, ModelInfo, StopReason
from engine.settings import GenerateRequest, LoadOptions, Message

if TYPE_CHECKING:
    from engine.offload.basis import Basis
    from engine.offload.report import Offload  # imports numpy, for which the first paint does not wait


Report = ProofReport | CalibrationReport | BenchReport


class EngineLike(Protocol):
    """What the window needs of an engine; `engine.engine.Engine` and the tests' fake both fit."""

    @property
    def info(self) -> ModelInfo | None: ...

    def load(
        self,
        model: str,
        *,
        context: int | None = None,
        virtual_memory: bool = True,
        budget_bytes: int | None = None,
        offload: bool = True,
        progress: Callable[[LoadProgress], None] = ...,
    ) -> ModelInfo: ...

    def cancel_load(self) -> None: ...

    def generate(self, request: GenerateRequest) -> Iterator[Event]: ...

    def stop(self) -> None: ...

    def prove(
        self, tokens: int, *, progress: Callable[[ProofProgress], None], cancelled: Callable[[], bool]
    ) -> ProofReport: ...

    def calibrate(
        self, minutes: float, *, progress: Callable[[CalibrationProgress], None], cancelled: Callable[[], bool]
    ) -> CalibrationReport: ...

    def benchmark(self, *, progress: Callable[[BenchProgress], None], cancelled: Callable[[], bool]) -> BenchReport: ...

    def candidates(
        self, request: GenerateRequest, token: int, *, drafted: int = 0, cancelled: Callable[[], bool] = ...
    ) -> Candidates | None: ...

    def count_tokens(self, messages: tuple[Message, ...]) -> int: ...

    def memory(self) -> KvMemory | None: ...

    def offload(self) -> Offload | None: ...

    def ask_budget(
        self,
        budget_bytes: int | None,
        progress: Callable[[LoadProgress], None] = ...,
        done: Callable[[SpecularError | None], None] = ...,
    ) -> None: ...

    def settle_budget(self) -> None: ...

    def basis(self) -> Basis | None: ...

    def peak(self) -> Measure: ...

    def unload(self) -> None: ...

    def close(self) -> None: ...


EngineFactory = Callable[[], EngineLike]


class Awaited(Protocol):
    """Something that another thread does; `app.history.writer.Ticket` fits."""

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is done or given up; False where that takes longer."""


STORING_SECONDS = 5.0  # that a request waits to be written: a disk that hangs must not take the chat with it


@dataclass(frozen=True, slots=True)
class LoadStep:
    """A load has come this far."""

    command_id: int
    progress: LoadProgress


@dataclass(frozen=True, slots=True)
class ReplyEvent:
    """One event of the reply that command `command_id` asked for."""

    command_id: int
    event: Event


@dataclass(frozen=True, slots=True)
class ProofStep:
    """A proof has come this far."""

    command_id: int
    progress: ProofProgress


@dataclass(frozen=True, slots=True)
class CalibrationStep:
    """A calibration has come this far."""

    command_id: int
    progress: CalibrationProgress


@dataclass(frozen=True, slots=True)
class BenchStep:
    """A benchmark has come this far."""

    command_id: int
    progress: BenchProgress


@dataclass(frozen=True, slots=True)
class Look:
    """A token to look at: what might stand after the prompt and reply_prefix_ids of `request`.

    drafted: as many of the last of those ids were proposals of the cycle that made the token.
    """

    request: GenerateRequest
    token: int
    drafted: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """A look at a token is over: what was found, or why nothing was."""

    command_id: int
    found: Candidates | None
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class MoveStep:
    """Parts of the model are being moved for budget number `number`, and it has come this far."""

    number: int
    progress: LoadProgress


@dataclass(frozen=True, slots=True)
class Moved:
    """Budget number `number` is in force, or `sentence` says why the one before still is.

    reload: loading the model again would bring it about.
    """

    number: int
    sentence: str = ""
    reload: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """A command is over. `sentence` and `details` are set where it failed; `info` is the model now loaded.

    `report` is what a proof, a calibration or a benchmark found.
    """

    command_id: int
    answer: Answer
    info: ModelInfo | None
    sentence: str | None = None
    details: str = ""
    refused: bool = False
    report: Report | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """A text was counted; tokens is -1 where that cannot be done."""

    number: int
    tokens: int


JobStep = ProofStep | CalibrationStep | BenchStep
WorkerMessage = LoadStep | ReplyEvent | JobStep | Seen | Counted | MoveStep | Moved | Outcome

FAULT_SENTENCE = "Unexpected fault in the engine: {cause}."
STARTING = "Starting the engine"


def fault_sentence(error: BaseException) -> str:
    """One line for the user about an exception that nobody foresaw."""
    lines = str(error).strip().splitlines()
    cause = lines[0] if lines else type(error).__name__
    return FAULT_SENTENCE.format(cause=cause[:200].rstrip(" ."))


class EngineWorker(QObject):
    """Runs commands one after another in the engine thread and reports through `messages`.

    `halt` is set from the window's thread to stop a reply or cancel a load. It is asked for again at every event, so
    that a stop given before the engine has begun is never lost. `newest` is the number of the last command given: a
    look at a token that is not the newest any more is given up.
    """

    def __init__(self, factory: EngineFactory, messages: SimpleQueue[WorkerMessage]) -> None:
        super().__init__()
        self.halt = threading.Event()
        self.newest = 0
        self._factory = factory
        self._messages = messages
        self._engine: EngineLike | None = None

    @property
    def engine(self) -> EngineLike | None:
        """The engine once it exists. Of it, other threads may call stop(), cancel_load(), ask_budget(), basis() and
        what only looks: memory(), offload() and peak()."""
        return self._engine

    def ask_budget(self, number: int, budget_bytes: int | None) -> None:
        """Have the engine take up a budget between two cycles; `settle_budget` sees to it where no reply is running.
        From the window's thread."""

        def done(error: SpecularError | None) -> None:
            self._messages.put(Moved(number, str(error or ""), isinstance(error, ReloadNeeded)))

        if self._engine is not None:
            self._engine.ask_budget(budget_bytes, lambda step: self._messages.put(MoveStep(number, step)), done)

    @Slot(int)
    def settle_budget(self, number: int) -> None:
        """Carry out a budget that was asked for and that no cycle has taken up."""
        try:
            if self._engine is not None:
                self._engine.settle_budget()
        except Exception as error:  # as below: the model is still there, and the next reply will tell if it is sound
            traceback.print_exc()
            self._messages.put(Moved(number, fault_sentence(error)))

    @Slot(int, str, object)
    def load(self, command_id: int, model: str, options: LoadOptions) -> None:
        """Load a model; making the engine (and importing its libraries) is the first part of the first load."""

        def report(progress: LoadProgress) -> None:
            if self.halt.is_set():
                engine.cancel_load()
            self._messages.put(LoadStep(command_id, progress))

        try:
            if self._engine is None:
                self._messages.put(LoadStep(command_id, LoadProgress(STARTING, 0, 0, 0, 0)))
                self._engine = self._factory()
            engine = self._engine
            if self.halt.is_set():
                raise LoadCancelled("The load was cancelled.")
            engine.load(
                model,
                context=options.context,
                virtual_memory=options.virtual_memory,
                budget_bytes=options.budget_bytes,
                offload=options.offload,
                progress=report,
            )
        except LoadCancelled:
            self._end(command_id, self._kept(Answer.LOAD_CANCELLED, Answer.LOAD_CANCELLED_KEEPING))
        except SpecularError as error:
            self._end(command_id, self._kept(Answer.LOAD_FAILED, Answer.LOAD_FAILED_KEEPING), error)
        except Exception as error:  # any fault of ours must end in a sentence, never in a dead thread
            self._fault(command_id, error)
        else:
            self._end(command_id, Answer.LOADED)

    @Slot(int, object, object)
    def generate(self, command_id: int, request: GenerateRequest, stored: Awaited | None = None) -> None:
        """Make one reply and report its events; `Finished` is always the last, also when the reply breaks off."""
        begun = False
        if stored is not None:
            stored.wait(STORING_SECONDS)
        try:
            if self._engine is None:
                raise SpecularError("No model is loaded.")
            for event in self._engine.generate(request):
                begun = True
                self._messages.put(ReplyEvent(command_id, event))
                if self.halt.is_set():
                    self._engine.stop()
        except SpecularError as error:
            if begun:
                self._messages.put(ReplyEvent(command_id, broken_off(str(error))))
            self._end(command_id, Answer.REPLY_ENDED, error, refused=not begun)
        except Exception as error:  # as above
            self._messages.put(ReplyEvent(command_id, broken_off(fault_sentence(error))))
            self._fault(command_id, error)
        else:
            self._end(command_id, Answer.REPLY_ENDED)

    @Slot(int, int)
    def prove(self, command_id: int, tokens: int) -> None:
        """Compare plain decoding and speculation over `tokens` tokens, until `halt` is set."""

        def report_step(progress: ProofProgress) -> None:
            self._messages.put(ProofStep(command_id, progress))

        def job(engine: EngineLike) -> ProofReport:
            return engine.prove(tokens, progress=report_step, cancelled=self.halt.is_set)

        self._report(command_id, Answer.PROOF_ENDED, job)

    @Slot(int, float)
    def calibrate(self, command_id: int, minutes: float) -> None:
        """Find the model's draft recipe on this computer in about `minutes`, until `halt` is set."""

        def report_step(progress: CalibrationProgress) -> None:
            self._messages.put(CalibrationStep(command_id, progress))

        def job(engine: EngineLike) -> CalibrationReport:
            return engine.calibrate(minutes, progress=report_step, cancelled=self.halt.is_set)

        self._report(command_id, Answer.CALIBRATION_ENDED, job)

    @Slot(int)
    def bench(self, command_id: int) -> None:
        """Answer a few questions both ways, until `halt` is set."""

        def report_step(progress: BenchProgress) -> None:
            self._messages.put(BenchStep(command_id, progress))

        def job(engine: EngineLike) -> BenchReport:
            return engine.benchmark(progress=report_step, cancelled=self.halt.is_set)

        self._report(command_id, Answer.BENCH_ENDED, job)

    @Slot(int, object)
    def inspect(self, command_id: int, look: Look) -> None:
        """Look at a token, unless something else has been asked for since. No fault of it ends the engine."""

        def overtaken() -> bool:
            return self.newest != command_id or self.halt.is_set()

        if overtaken():
            return
        try:
            if self._engine is None:
                raise SpecularError("No model is loaded.")
            found = self._engine.candidates(look.request, look.token, drafted=look.drafted, cancelled=overtaken)
        except SpecularError as error:
            self._messages.put(Seen(command_id, None, str(error)))
        except Exception as error:  # as above, but the model is still there: the next reply will tell if it is sound
            traceback.print_exc()
            self._messages.put(Seen(command_id, None, fault_sentence(error)))
        else:
            self._messages.put(Seen(command_id, found))

    @Slot(int, str)
    def count(self, number: int, text: str) -> None:
        """Count a text's tokens, with the model that is loaded by now. A fault of it is no fault of the engine."""
        tokens = -1
        try:
            if self._engine is not None and self._engine.info is not None and not self.halt.is_set():
                whole = self._engine.count_tokens((Message("user", "." + text),))
                tokens = max(whole - self._engine.count_tokens((Message("user", "."),)), 0)
        except SpecularError:
            pass  # a model without a tokenizer, or with a chat template that fails; a reply will say so
        except Exception:  # as above
            traceback.print_exc()
        self._messages.put(Counted(number, tokens))

    @Slot(int)
    def unload(self, command_id: int) -> None:
        """Give the model's memory back."""
        try:
            if self._engine is not None:
                self._engine.unload()
        except Exception as error:  # as above
            self._fault(command_id, error)
        else:
            self._end(command_id, Answer.UNLOADED)

    @Slot()
    def close(self) -> None:
        """Close the engine in its own thread and end the thread's event loop, whatever the engine does."""
        try:
            if self._engine is not None:
                self._engine.close()
        except Exception:  # the program is ending: nothing to show it in, but the log should have it
            traceback.print_exc()
        finally:
            self._engine = None
            QThread.currentThread().quit()

    def _report(self, command_id: int, ended: Answer, job: Callable[[EngineLike], Report]) -> None:
        """Run a long job of the engine and end the command with its report, or with why there is none."""
        try:
            if self._engine is None:
                raise SpecularError("No model is loaded.")
            report = job(self._engine)
        except SpecularError as error:
            self._end(command_id, ended, error)
        except Exception as error:  # as above
            self._fault(command_id, error)
        else:
            self._end(command_id, ended, report=report)

    def _kept(self, without: Answer, keeping: Answer) -> Answer:
        return keeping if self._engine is not None and self._engine.info is not None else without

    def _end(
        self,
        command_id: int,
        answer: Answer,
        error: SpecularError | None = None,
        *,
        refused: bool = False,
        report: Report | None = None,
    ) -> None:
        info = self._engine.info if self._engine is not None else None
        # An error made for the user says all there is; its cause, if it had one, is for whoever looks into it.
        details = "".join(traceback.format_exception(error)) if error is not None and error.__cause__ else ""
        sentence = str(error) if error else None
        self._messages.put(Outcome(command_id, answer, info, sentence, details, refused, report))

    def _fault(self, command_id: int, error: Exception) -> None:
        details = "".join(traceback.format_exception(error))
        self._messages.put(Outcome(command_id, Answer.FAULT, None, fault_sentence(error), details))


def broken_off(sentence: str) -> Finished:
    """The end of a reply that broke off for this reason."""
    return Finished(StopReason.FAILED, "", 0, 0, 0, 0.0, 0.0, 0, sentence)
