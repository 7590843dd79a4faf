"""The window's side of the engine: commands go in by queued signals, events come out in batches at 30 Hz."""

from __future__ import annotations

import faulthandler
import os
import sys
import time
from collections.abc import Callable
from queue import Empty
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.engine_thread import EngineThread
from app.states import Answer, Command, HostState, after_answer, next_state
from app.worker import (
    Awaited,
    BenchStep,
    CalibrationStep,
    Counted,
    EngineFactory,
    LoadStep,
    Look,
    Moved,
    MoveStep,
    Outcome,
    ProofStep,
    ReplyEvent,
    Seen,
    broken_off,
)
from engine.bench.questions.small import BenchReport
from engine.memory.report import KvMemory
from engine.probes.reading import Measure
from engine.proof import ProofReport
from engine.records import Finished, LoadProgress, ModelInfo
from engine.settings import GenerateRequest, LoadOptions

if TYPE_CHECKING:
    from engine.offload.basis import Basis
    from engine.offload.report import Offload  # imports numpy, for which the first paint does not wait

DRAIN_MS = 33
BUDGET_SECONDS = 0.008
BATCH = 16
CLOSE_WAIT_MS = 5000
ENDING_MS = 50  # that a thread may take to be gone once its loop has ended
RESTARTED = "The engine was restarted."
WORKING = (HostState.GENERATING, HostState.STOPPING, HostState.PROVING, HostState.CALIBRATING, HostState.BENCHMARKING)


def abandon_process() -> None:
    """Last resort when the engine thread does not end: show where every thread stands, then leave at once."""
    faulthandler.dump_traceback(file=sys.__stderr__ or sys.stderr, all_threads=True)
    os._exit(1)


class EngineHost(QObject):
    """Owns the engine thread and its state machine (`app.states`). Every method returns at once, save `close`.

    Signals: state_changed(HostState); load_progress(LoadProgress); model_loaded(ModelInfo); model_gone();
    events_ready(reply_id, list of events), the last of a reply being `Finished`; reply_refused(reply_id, sentence)
    when a reply failed before its first event; proof_progress(ProofProgress); proof_ended(ProofReport);
    calibration_progress(CalibrationProgress); calibration_ended(CalibrationReport), with `info` telling the new recipe;
    bench_progress(BenchProgress); bench_ended(BenchReport);
    seen(look_id, Candidates or None, sentence) when a look at a token is over: what was found, or why nothing was;
    counted(number, tokens) when a text was counted, -1 where it could not be;
    move_progress(LoadProgress) and moved(sentence, reload) while parts of the model move for another budget and once
    they have: the sentence is empty, or says why all lies as before; reload: loading again would bring it about;
    failed(sentence, details) for everything a user must be told.
    """

    state_changed = Signal(object)
    load_progress = Signal(object)
    model_loaded = Signal(object)
    model_gone = Signal()
    events_ready = Signal(int, object)
    reply_refused = Signal(int, str)
    proof_progress = Signal(object)
    proof_ended = Signal(object)
    calibration_progress = Signal(object)
    calibration_ended = Signal(object)
    bench_progress = Signal(object)
    bench_ended = Signal(object)
    seen = Signal(int, object, str)
    counted = Signal(int, int)
    move_progress = Signal(object)
    moved = Signal(str, bool)
    failed = Signal(str, str)

    def __init__(
        self,
        factory: EngineFactory,
        parent: QObject | None = None,
        *,
        on_hung: Callable[[], None] = abandon_process,
        close_wait_ms: int = CLOSE_WAIT_MS,
    ) -> None:
        super().__init__(parent)
        self._state = HostState.NO_MODEL
        self._info: ModelInfo | None = None
        self._next_id = 0
        self._looking = False
        self._counts, self._counting = 0, 0  # asked for in all, and not answered yet
        self._moves, self._moving = 0, False
        self._on_hung = on_hung
        self._close_wait_ms = close_wait_ms
        self._factory = factory
        self._line = EngineThread(factory, self)
        self._left: list[EngineThread] = []  # that did not end when others took their place
        self._restarting = False
        self._replying: int | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(DRAIN_MS)
        self._timer.timeout.connect(self._drain)
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(close_wait_ms)
        self._patience.timeout.connect(self._begin_anew)

    @property
    def state(self) -> HostState:
        """What the engine is doing."""
        return self._state

    @property
    def info(self) -> ModelInfo | None:
        """The model that is loaded, if any."""
        return self._info

    @property
    def draining(self) -> bool:
        """Whether the host looks for answers of the engine thread; it does so only while something is under way."""
        return self._timer.isActive()

    def load(self, model: str, options: LoadOptions | None = None) -> bool:
        """Begin to load a model; False where the state forbids it. The earlier model stays until the new one is in."""
        if not self._begin(Command.LOAD):
            return False
        self._line.load_asked.emit(self._next_id, model, options or LoadOptions())
        return True

    def cancel_load(self) -> bool:
        """Ask a running load to give up; False when none is running."""
        if next_state(self._state, Command.CANCEL_LOAD) is None:
            return False
        self._line.worker.halt.set()
        if (engine := self._line.worker.engine) is not None:
            engine.cancel_load()
        return True

    def send(self, request: GenerateRequest, stored: Awaited | None = None) -> int | None:
        """Begin a reply; its id, or None where the state forbids it (no model, or a reply is being written).

        The engine does not see the request before `stored` is settled: what the user said is on the disk by then.
        """
        if not self._begin(Command.SEND):
            return None
        self._replying = self._next_id
        self._line.reply_asked.emit(self._next_id, request, stored)
        return self._next_id

    def prove(self, tokens: int) -> bool:
        """Begin to compare plain decoding and speculation over `tokens` tokens; False where the state forbids it."""
        if not self._begin(Command.PROVE):
            return False
        self._line.proof_asked.emit(self._next_id, tokens)
        return True

    def calibrate(self, minutes: float) -> bool:
        """Begin to measure how the draft is best made, for about `minutes`; False where the state forbids it."""
        if not self._begin(Command.CALIBRATE):
            return False
        self._line.calibration_asked.emit(self._next_id, minutes)
        return True

    def bench(self) -> bool:
        """Begin to answer a few questions both ways; False where the state forbids it."""
        if not self._begin(Command.BENCH):
            return False
        self._line.bench_asked.emit(self._next_id)
        return True

    def look(self, look: Look) -> int | None:
        """Begin to look at a token; its number, or None where the state forbids it. A newer command ends the look."""
        if not self._begin(Command.INSPECT):
            return None
        self._looking = True
        self._run_timer()
        self._line.look_asked.emit(self._next_id, look)
        return self._next_id

    def count(self, text: str) -> int | None:
        """Have a text's tokens counted, after what the engine is doing; its number, or None without a model."""
        if self._info is None or self._state is HostState.CLOSED:
            return None
        self._counts += 1
        self._counting += 1
        self._run_timer()
        self._line.count_asked.emit(self._counts, text)
        return self._counts

    def use_budget(self, budget_bytes: int | None) -> bool:
        """Have the loaded model take at most so much of the device's memory, None for all that is free; also while a
        reply is being written. False without a model, and during a load, whose end puts it right."""
        if self._info is None or self._state in (HostState.LOADING, HostState.UNLOADING, HostState.CLOSED):
            return False
        self._moves += 1
        self._moving = True
        self._run_timer()
        self._line.worker.ask_budget(self._moves, budget_bytes)
        self._line.budget_asked.emit(self._moves)
        return True

    def stop(self) -> bool:
        """Stop the running reply or job; False when there is none. What is written or compared stays."""
        state = next_state(self._state, Command.STOP)
        if state is None:
            return False
        self._halt_reply()
        self._enter(state)
        return True

    def unload(self) -> bool:
        """Give the model back; False where the state forbids it."""
        if not self._begin(Command.UNLOAD):
            return False
        self._line.unload_asked.emit(self._next_id)
        return True

    def restart(self) -> bool:
        """Put another engine in another thread in the place of the present one, whatever that is doing; False where the
        state forbids it. Without a model then. An engine that does not end in time is left behind with its memory."""
        state = next_state(self._state, Command.RESTART)
        if state is None:
            return False
        self._looking = self._moving = False
        if not self.cancel_load():
            self._halt_reply()
        self._restarting = True
        self._enter(state)
        self._line.ended.connect(self._begin_anew)
        self._line.close_asked.emit()
        self._patience.start()
        return True

    def close(self) -> bool:
        """Stop whatever runs, close the engine in its thread and wait for the thread. False if already closed."""
        state = next_state(self._state, Command.CLOSE)
        if state is None:
            return False
        self._looking = self._moving = self._restarting = False
        self._counting = 0
        self._timer.stop()
        self._patience.stop()
        if not self.cancel_load():
            self._halt_reply()
        self._enter(state)
        self._line.close_asked.emit()
        if not self.wait_for_thread(self._close_wait_ms):
            self._on_hung()
        return True

    @property
    def left_behind(self) -> bool:
        """Whether an engine that was restarted still hangs: its thread cannot be ended, only the process can."""
        return not all(line.wait(0) for line in self._left)

    def wait_for_thread(self, milliseconds: int) -> bool:
        """Wait for the engine thread to end after `close`; False when it has not ended in time."""
        return self._line.wait(milliseconds)

    def memory(self) -> KvMemory | None:
        """How the KV cache stands; None without a model. Any thread."""
        engine = self._line.worker.engine
        return None if engine is None else engine.memory()

    def offload(self) -> Offload | None:
        """How the model's parts lie; None without a model, or where all of it is in one memory. Any thread."""
        engine = self._line.worker.engine
        return None if engine is None else engine.offload()

    def basis(self) -> Basis | None:
        """What forecasts for the loaded model rest on; None without one. Any thread."""
        engine = self._line.worker.engine
        return None if engine is None else engine.basis()

    def peak(self) -> Measure | None:
        """The most memory that the loaded model has taken; None without an engine. Any thread."""
        engine = self._line.worker.engine
        return None if engine is None else engine.peak()

    def _begin(self, command: Command) -> bool:
        state = next_state(self._state, command)
        if state is None:
            return False
        self._next_id += 1
        self._looking = False  # a look that was under way is given up by what comes now
        self._line.worker.newest = self._next_id
        self._line.worker.halt.clear()
        self._enter(state)
        return True

    @Slot()
    def _begin_anew(self) -> None:
        """The engine has ended, or has had time enough to: what it still had to say, then another one."""
        if not self._restarting:
            return
        self._patience.stop()
        old = self._line
        old.ended.disconnect(self._begin_anew)
        while not old.messages.empty():
            self._drain()
            if self._state is HostState.CLOSED:  # somebody who heard the last of it closed the window
                return
        if self._replying is not None:
            reply, self._replying = self._replying, None
            self.events_ready.emit(reply, [broken_off(RESTARTED)])
        while self._counting:  # what it has not counted it never will
            self._counting -= 1
            self.counted.emit(self._counts - self._counting, -1)
        if not old.wait(ENDING_MS):
            self._left.append(old)
        self._line = EngineThread(self._factory, self)
        self._restarting = False
        had_model, self._info = self._info is not None, None
        if had_model:
            self.model_gone.emit()
        self._enter(after_answer(self._state, Answer.UNLOADED))

    def _halt_reply(self) -> None:
        self._line.worker.halt.set()
        if self._state in WORKING and (engine := self._line.worker.engine) is not None:
            engine.stop()

    def _enter(self, state: HostState) -> None:
        if self._set_state(state):
            self.state_changed.emit(state)

    def _set_state(self, state: HostState) -> bool:
        changed = state is not self._state
        self._state = state
        self._run_timer()
        return changed

    def _run_timer(self) -> None:
        wanted = self._state.under_way or self._looking or self._moving or self._counting > 0
        if wanted and not self._timer.isActive():
            self._timer.start()
        elif not wanted:
            self._timer.stop()

    @Slot()
    def _drain(self) -> None:
        """Hand over what has arrived, in order, for at most `BUDGET_SECONDS` so that the window stays responsive."""
        deadline = time.perf_counter() + BUDGET_SECONDS
        batch: list[ReplyEvent] = []
        while self._state is not HostState.CLOSED:
            try:
                message = self._line.messages.get_nowait()
            except Empty:
                break
            if isinstance(message, ReplyEvent):
                batch.append(message)
                if len(batch) < BATCH:
                    continue
            self._hand_over(batch)
            if isinstance(message, LoadStep):
                self._show_step(message)
            elif isinstance(message, ProofStep):
                self.proof_progress.emit(message.progress)
            elif isinstance(message, CalibrationStep):
                self.calibration_progress.emit(message.progress)
            elif isinstance(message, BenchStep):
                self.bench_progress.emit(message.progress)
            elif isinstance(message, Seen):
                self._show_seen(message)
            elif isinstance(message, Counted):
                self._counting -= 1
                self._run_timer()
                self.counted.emit(message.number, message.tokens)
            elif isinstance(message, MoveStep | Moved):
                self._show_move(message)
            elif isinstance(message, Outcome):
                self._settle(message)
            if time.perf_counter() > deadline:
                break
        self._hand_over(batch)

    def _hand_over(self, batch: list[ReplyEvent]) -> None:
        if batch:
            events = [message.event for message in batch]
            reply_id = batch[0].command_id
            if isinstance(events[-1], Finished) and reply_id == self._replying:
                self._replying = None
            batch.clear()
            self.events_ready.emit(reply_id, events)

    def _show_seen(self, seen: Seen) -> None:
        if self._looking and seen.command_id == self._next_id:
            self._looking = False
            self._run_timer()
            self.seen.emit(seen.command_id, seen.found, seen.sentence)

    def _show_move(self, message: MoveStep | Moved) -> None:
        if not self._moving or message.number != self._moves:
            return
        if isinstance(message, MoveStep):
            self.move_progress.emit(message.progress)
            return
        self._moving = False
        self._run_timer()
        self.moved.emit(message.sentence, message.reload)

    def _show_step(self, step: LoadStep) -> None:
        progress: LoadProgress = step.progress
        self.load_progress.emit(progress)

    def _settle(self, outcome: Outcome) -> None:
        if outcome.command_id != self._next_id:
            return
        had_model = self._info is not None
        self._info = outcome.info
        if self._info is None:
            self._moving = False  # nothing is left to move
        state = self._state if self._restarting else after_answer(self._state, outcome.answer)
        changed = self._set_state(state)
        if outcome.answer is Answer.LOADED and self._info is not None:
            self.model_loaded.emit(self._info)
        elif had_model and self._info is None:
            self.model_gone.emit()
        if isinstance(outcome.report, ProofReport):
            self.proof_ended.emit(outcome.report)
        elif isinstance(outcome.report, BenchReport):
            self.bench_ended.emit(outcome.report)
        elif outcome.report is not None:
            self.calibration_ended.emit(outcome.report)
        if outcome.refused:
            self._replying = None
            self.reply_refused.emit(outcome.command_id, outcome.sentence or "")
        elif outcome.sentence is not None:
            self.failed.emit(outcome.sentence, outcome.details)
        # Last, so that a listener who gives the next command now has seen all about this one.
        if changed and self._state is state:
            self.state_changed.emit(state)
