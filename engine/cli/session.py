"""One engine in a terminal: loads a model, makes replies, and lets Ctrl+C stop either."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from engine.calibration.report import CalibrationProgress, CalibrationReport
from engine.cli.terminal import clipped
from engine.memory.report import KvMemory
from engine.proof import ProofProgress, ProofReport
from engine.prove_prompts import ProofPrompt
from engine.records import CycleEvent, Event, Finished, LoadProgress, ModelInfo, PrefillProgress
from engine.settings import GenerateRequest, LoadOptions, Sampling
from engine.statistics import ReplyStatistics

if TYPE_CHECKING:
    from engine.bench.traces import Trace

INTERRUPTED = 130  # the exit status that shells report for a command ended by Ctrl+C


class EngineLike(Protocol):
    """The part of the engine's public face that a terminal needs."""

    def load(
        self,
        model: str,
        *,
        context: int | None,
        device: str | None,
        virtual_memory: bool,
        budget_bytes: int | None,
        offload: bool,
        progress: Callable[[LoadProgress], None],
    ) -> ModelInfo: ...
    def cancel_load(self) -> None: ...
    def generate(self, request: GenerateRequest) -> Iterator[Event]: ...
    def stop(self) -> None: ...
    def forget(self) -> None: ...
    def memory(self) -> KvMemory | None: ...
    def record_trace(self, request: GenerateRequest) -> Trace: ...
    def prove(
        self,
        tokens: int,
        *,
        prompts: Sequence[ProofPrompt],
        sampling: Sampling | None,
        gamma: int | None,
        progress: Callable[[ProofProgress], None],
        cancelled: Callable[[], bool],
    ) -> ProofReport: ...
    def calibrate(
        self,
        minutes: float,
        *,
        progress: Callable[[CalibrationProgress], None],
        cancelled: Callable[[], bool],
    ) -> CalibrationReport: ...
    def close(self) -> None: ...


def real_engine() -> EngineLike:
    """The engine; imported only here because it brings torch, which takes seconds that `--help` need not wait."""
    from engine.engine import Engine

    return Engine()


class Interrupts:
    """While entered, the first Ctrl+C only sets `pending`; the second raises KeyboardInterrupt as usual."""

    def __init__(self) -> None:
        self.pending = False
        self._owner = threading.current_thread() is threading.main_thread()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True

    def __enter__(self) -> Interrupts:
        if self._owner:
            self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        if self._owner:
            signal.signal(signal.SIGINT, self._previous)


class StatusLine:
    """A line on stderr that is written over; nothing at all where stderr is no terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def show(self, text: str) -> None:
        if self._shown:
            print(f"\r\x1b[K{clipped(text, 78)}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        self.show("")


@dataclass
class Reply:
    """What came of one request: its text and ids, the cycle records' events, and how it ended."""

    cycles: list[CycleEvent] = field(default_factory=list)
    statistics: ReplyStatistics = field(default_factory=ReplyStatistics)
    finished: Finished | None = None
    interrupted: bool = False

    @property
    def text(self) -> str:
        """The whole reply."""
        pieces = "".join(piece for cycle in self.cycles for piece in cycle.pieces)
        return pieces + (self.finished.tail if self.finished else "")

    @property
    def token_ids(self) -> list[int]:
        """Every emitted token."""
        return [token for cycle in self.cycles for token in cycle.record.emitted_ids]


def load(engine: EngineLike, options: argparse.Namespace) -> tuple[ModelInfo, float]:
    """Load the model of the options with progress on stderr; returns it and the seconds it took.

    Raises SpecularError when it cannot be loaded, LoadCancelled after Ctrl+C.
    """
    wanted = LoadOptions(options.context, not options.no_vattention, options.budget_gb, not options.no_offload)
    line = StatusLine()
    began = time.perf_counter()
    with Interrupts() as interrupts:

        def progress(step: LoadProgress) -> None:
            line.show(f"{step.what}: {step.done} of {step.total}")
            if interrupts.pending:
                engine.cancel_load()

        try:
            info = engine.load(
                options.model,
                context=wanted.context,
                device=options.device,
                virtual_memory=wanted.virtual_memory,
                budget_bytes=wanted.budget_bytes,
                offload=wanted.offload,
                progress=progress,
            )
        finally:
            line.clear()
    return info, time.perf_counter() - began


def reply_to(engine: EngineLike, request: GenerateRequest, show: Callable[[Event], None]) -> Reply:
    """Make a reply, handing each event to `show`; Ctrl+C ends it with what there is.

    Raises SpecularError when the request cannot be met; no event was shown then.
    """
    reply = Reply()
    line = StatusLine()
    with Interrupts() as interrupts:
        for event in engine.generate(request):
            if isinstance(event, PrefillProgress):
                line.show(f"Reading the prompt: {event.done} of {event.total} tokens")
            else:
                if not reply.cycles:
                    line.clear()
                show(event)
            if isinstance(event, CycleEvent):
                reply.cycles.append(event)
                reply.statistics = reply.statistics.with_cycle(event.record)
            elif isinstance(event, Finished):
                reply.finished = event
            if interrupts.pending and not reply.interrupted:
                reply.interrupted = True
                engine.stop()
    return reply
