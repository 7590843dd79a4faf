"""An engine for terminal tests: replies with cycles written down beforehand, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.bench.traces import Trace
from engine.errors import ModelFileError, SpecularError
from engine.recipe import Recipe
from engine.records import (
    CycleEvent,
    CycleRecord,
    Event,
    Finished,
    LoadProgress,
    ModelInfo,
    PrefillProgress,
    StopReason,
    TokenState,
)
from engine.settings import GenerateRequest

INFO = ModelInfo(
    "Fake 1M", "/models/fake", "llama", 2, 64, 100, 256, "float16", 2_000_000, 1_000_000, "cpu", "fake", ""
)


def cycle(index: int, pieces: tuple[str, ...], ghosts: tuple[str, ...], state: TokenState) -> CycleEvent:
    """A cycle whose last piece is the full model's token in `state` and whose other pieces are accepted drafts."""
    first = 10 * index
    accepted = 0 if state is TokenState.PLAIN else len(pieces) - 1
    ids = tuple(range(first, first + len(pieces)))
    drafted = (*ids[:accepted], *(90 + i for i in range(len(ghosts))))
    tested = accepted + bool(ghosts)
    record = CycleRecord(
        index=index,
        drafted_ids=drafted,
        drafted_probs=(0.9,) * len(drafted),
        full_probs=(0.8,) * tested,
        accepted=accepted,
        next_id=ids[-1],
        next_state=state,
        next_prob=0.7,
        emitted_ids=ids,
        ignored=0,
        draft_seconds=0.02,
        verify_seconds=0.08,
        wait_seconds=0.0,
        plain_seconds=0.05,
        recipe=Recipe(),
        streamed_bytes=0,
        kv_length=20 + first,
    )
    return CycleEvent(record, pieces, ghosts)


PARIS = (
    cycle(0, ("The", " capital", " is"), (" Lyon", " now"), TokenState.CORRECTION),
    cycle(1, (" Par", "is", "."), (), TokenState.BONUS),
)
PLAIN = (cycle(0, ("Hi",), (), TokenState.PLAIN), cycle(1, ("!",), (), TokenState.PLAIN))


class ScriptedEngine:
    """Replays `cycles` for every request; `stop` is honoured between cycles, as the real engine does."""

    def __init__(self, cycles: tuple[CycleEvent, ...] = PARIS, tail: str = "") -> None:
        self.cycles = cycles
        self.tail = tail
        self.requests: list[GenerateRequest] = []
        self.traced: list[GenerateRequest] = []
        self.trace = Trace((1,), (2,), (((2, 0.5),),), (0.5,), {}, "m", "")
        self.loads: list[tuple[str, int | None, str | None]] = []
        self.budgets: list[tuple[int | None, bool]] = []
        self.closed = False
        self.before_cycle: Callable[[int], None] = lambda index: None
        self.refusal: SpecularError | None = None
        self.failure: str | None = None
        self._stopped = False
        self._cancelled = False

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
    ) -> ModelInfo:
        if model.endswith("missing"):
            raise ModelFileError(f"The model folder {model} does not exist.")
        for done in range(3):
            progress(LoadProgress("Reading tensors", done, 2, done, 2))
        self.loads.append((model, context, device))
        self.budgets.append((budget_bytes, offload))
        return INFO

    def cancel_load(self) -> None:
        self._cancelled = True

    def generate(self, request: GenerateRequest) -> Iterator[Event]:
        if self.refusal:
            raise self.refusal
        self.requests.append(request)
        self._stopped = False
        reason, made = StopReason.END_TOKEN, 0
        yield PrefillProgress(5, 5, 0)
        for event in self.cycles:
            self.before_cycle(event.record.index)
            if self._stopped:
                reason = StopReason.STOPPED
                break
            made += len(event.pieces)
            yield event
        if self.failure:
            reason = StopReason.FAILED
        yield Finished(reason, self.tail, 5, 0, made, 0.1, 0.2, 42, self.failure)

    def record_trace(self, request: GenerateRequest) -> Trace:
        self.traced.append(request)
        return self.trace

    def stop(self) -> None:
        self._stopped = True

    def close(self) -> None:
        self.closed = True
