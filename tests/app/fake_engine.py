"""An engine without a model: it replays recorded events, and can be held at any point to test the window there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.candidates import Candidate, Candidates
from engine.errors import LoadCancelled, SpecularError
from engine.memory.report import KvMemory, PageOperations
from engine.probes.reading import Measure
from engine.recipe import Ingredients, Recipe
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
from engine.settings import GenerateRequest, Message

if TYPE_CHECKING:
    from engine.offload.basis import Basis
    from engine.offload.report import Offload

HELD_SECONDS = 20.0  # how long a test may hold the engine before it gives up, so that no test can hang


def model_info(name: str = "SmolLM2 135M Instruct", path: str = "starter") -> ModelInfo:
    """A model as the real engine would describe it."""
    return ModelInfo(
        name=name,
        path=path,
        family="llama",
        layers=30,
        hidden_size=576,
        vocabulary=49152,
        context=8192,
        weights_dtype="F16",
        weights_bytes=269_000_000,
        draft_bytes=135_000_000,
        device="CPU, 2 threads",
        kernels="fp16",
        template="ChatML",
        ingredients=Ingredients((16, 8, 4, 3), neurons=True, reduced_vocabulary=True, kv_window=True),
    )


def kv_memory() -> KvMemory:
    """A KV cache on virtual memory as the real engine would report it."""
    operations = PageOperations("create", 4, 0.000056), PageOperations("map", 3, 0.000009)
    return KvMemory(
        backend="host virtual memory",
        reason=None,
        page_bytes=2**20,
        conversations=2,
        reserved=512 * 2**20,
        full=94 * 2**20,
        mapped=3 * 2**20,
        used=2 * 2**20,
        pool=2**20,
        evicted=1,
        late=0,
        operations=(*operations, PageOperations("unmap", 0, 0.0)),
    )


def rivals(token: int) -> Candidates:
    """What a look at `token` finds: the full model likes it best, the draft likes another better."""
    own = Candidate(token, " arithmetic", 0.24, 0.61)
    other = Candidate(501, " calculation", 0.52, 0.17)
    rest = (Candidate(502, " math", 0.09, 0.09), Candidate(503, " compute", 0.05, 0.06))
    return Candidates(
        token=own,
        full=(own, other, *rest, Candidate(504, " calculations", 0.01, 0.03)),
        draft=(other, own, *rest, Candidate(505, " counting", 0.04, 0.0)),
        full_rank=1,
        draft_rank=2,
        accept=0.46,
        recipe=Recipe(),
        read=0,
        seconds=0.012,
    )


@dataclass(slots=True)
class Recording:
    """Builds the events of a reply cycle by cycle, with consistent counters and invented but plausible times."""

    draft_seconds: float = 0.004
    verify_seconds: float = 0.05
    plain_seconds: float | None = 0.05
    prompt_tokens: int = 12
    cycles: list[CycleEvent] = field(default_factory=list)
    _next_token: int = 100
    _kv: int = 12

    def cycle(
        self, accepted: str = "", ghosts: str = "", correction: str = "", bonus: str = "", plain: str = ""
    ) -> None:
        """One cycle; words are split at spaces, each word (with its leading space) is one token."""
        right, wrong = _words(accepted), _words(ghosts)
        next_piece = correction or bonus or plain
        state = (
            TokenState.CORRECTION if correction else TokenState.BONUS if bonus else TokenState.PLAIN if plain else None
        )
        ids = self._take(len(right))
        ghost_ids = self._take(len(wrong))
        next_id = self._take(1)[0] if next_piece else None
        emitted = ids + ((next_id,) if next_id is not None else ())
        tested = len(right) + (1 if wrong else 0)
        self._kv += len(emitted)
        record = CycleRecord(
            index=len(self.cycles),
            drafted_ids=ids + ghost_ids,
            drafted_probs=(0.9,) * len(right) + (0.5,) * len(wrong),
            full_probs=(0.95,) * len(right) + (0.1,) * (tested - len(right)),
            accepted=len(right),
            next_id=next_id,
            next_state=state,
            next_prob=0.8 if next_piece else None,
            emitted_ids=emitted,
            ignored=0,
            draft_seconds=self.draft_seconds * (len(right) + len(wrong)),
            verify_seconds=self.verify_seconds,
            wait_seconds=0.0,
            plain_seconds=self.plain_seconds,
            recipe=Recipe(),
            streamed_bytes=0,
            kv_length=self._kv,
        )
        pieces = (*right, next_piece) if next_piece else tuple(right)
        self.cycles.append(CycleEvent(record, pieces, tuple(wrong)))

    def _take(self, count: int) -> tuple[int, ...]:
        first, self._next_token = self._next_token, self._next_token + count
        return tuple(range(first, first + count))

    def events(self, reason: StopReason = StopReason.END_TOKEN) -> tuple[Event, ...]:
        """The whole reply as the engine would yield it."""
        return (
            PrefillProgress(0, self.prompt_tokens, 0),
            PrefillProgress(self.prompt_tokens, self.prompt_tokens, 0),
            *self.cycles,
            self.finished(reason),
        )

    def finished(self, reason: StopReason, cycles: int | None = None) -> Finished:
        """The end of the reply after `cycles` cycles (all of them by default)."""
        shown = self.cycles[:cycles]
        return Finished(
            reason=reason,
            tail="",
            prompt_tokens=self.prompt_tokens,
            reused_tokens=0,
            new_tokens=sum(len(event.record.emitted_ids) for event in shown),
            prefill_seconds=0.1,
            decode_seconds=sum(event.record.seconds for event in shown),
            seed=0,
        )


def _words(text: str) -> list[str]:
    """Split so that joining gives the text back and each piece starts at a space."""
    pieces: list[str] = []
    for word in text.split(" "):
        pieces.append(word if not pieces and not text.startswith(" ") else " " + word)
    return [piece for piece in pieces if piece.strip()] if text else []


def paris() -> Recording:
    """A short reply that names Paris, with every token state in it."""
    recording = Recording()
    recording.cycle(plain="The")
    recording.cycle(accepted=" capital of France", ghosts=" was", correction=" is")
    recording.cycle(accepted=" Paris, a city on", bonus=" the")
    recording.cycle(accepted=" Seine, known for its", ghosts=" food and", correction=" museums")
    recording.cycle(accepted=" and its long history", bonus=".")
    return recording


def text_of(events: Sequence[Event]) -> str:
    """The reply that these events spell."""
    parts = ["".join(event.pieces) for event in events if isinstance(event, CycleEvent)]
    return "".join(parts) + "".join(event.tail for event in events if isinstance(event, Finished))


@dataclass(slots=True)
class FakeEngine:
    """Fits `app.worker.EngineLike`.

    `hold_start` makes the engine wait for `go` before a reply begins; `hold_load` and `hold_reply` make it wait in the
    middle (after two steps) until `go` is set or it is cancelled or stopped; `deaf` makes it ignore the latter, like
    an engine that hangs. `load_error` and `reply_error` are raised instead of finishing; `refusal` is raised before
    the first event.
    """

    recording: Recording = field(default_factory=paris)
    hold_start: bool = False
    hold_load: bool = False
    hold_reply: bool = False
    deaf: bool = False
    load_error: Exception | None = None
    reply_error: Exception | None = None
    refusal: Exception | None = None
    info: ModelInfo | None = None
    requests: list[GenerateRequest] = field(default_factory=list)
    loads: list[tuple[str, int | None]] = field(default_factory=list)
    virtual_memory: bool | None = None  # as the last load asked for
    budget_bytes: int | None = None  # likewise
    hold_look: bool = False
    look_error: Exception | None = None
    looks: list[tuple[GenerateRequest, int, int]] = field(default_factory=list)
    offloaded: Offload | None = None
    budgets: list[int | None] = field(default_factory=list)  # asked for while a model was loaded
    move_error: SpecularError | None = None
    hold_move: bool = False
    based: Basis | None = None
    kv: KvMemory = field(default_factory=lambda: kv_memory())
    go: threading.Event = field(default_factory=threading.Event)
    held: threading.Event = field(default_factory=threading.Event)
    closed: threading.Event = field(default_factory=threading.Event)
    threads: set[int] = field(default_factory=set)
    _move: tuple[Callable[[LoadProgress], None], Callable[[SpecularError | None], None]] | None = None
    _halt: threading.Event = field(default_factory=threading.Event)

    def load(
        self,
        model: str,
        *,
        context: int | None = None,
        virtual_memory: bool = True,
        budget_bytes: int | None = None,
        offload: bool = True,
        progress: Callable[[LoadProgress], None] = lambda _: None,
    ) -> ModelInfo:
        """Four steps, then the model."""
        self.threads.add(threading.get_ident())
        self.virtual_memory, self.budget_bytes = virtual_memory, budget_bytes
        self.loads.append((model, context))
        self._halt.clear()
        for step in range(5):
            progress(LoadProgress("Reading tensors", step * 68, 272, step * 67_000_000, 268_000_000))
            if step == 2 and self.hold_load:
                self._wait()
            if self._halt.is_set():
                raise LoadCancelled("The load was cancelled.")
            if step == 2 and self.load_error is not None:
                raise self.load_error
        self.info = replace(model_info(), path=model)
        return self.info

    def cancel_load(self) -> None:
        """Thread-safe."""
        self._halt.set()

    def generate(self, request: GenerateRequest) -> Iterator[Event]:
        """Replay the recording."""
        self.threads.add(threading.get_ident())
        self.requests.append(request)
        if self.hold_start:
            self.held.set()
            self.go.wait(HELD_SECONDS)
        self._halt.clear()
        if self.refusal is not None:
            raise self.refusal
        yield PrefillProgress(0, self.recording.prompt_tokens, 0)
        for number, event in enumerate(self.recording.cycles):
            if number == 2:
                if self.hold_reply:
                    self._wait()
                if self.reply_error is not None:
                    raise self.reply_error
            self.settle_budget()
            if self._halt.is_set():
                yield self.recording.finished(StopReason.STOPPED, number)
                return
            yield event
        yield self.recording.finished(StopReason.END_TOKEN)

    def stop(self) -> None:
        """Thread-safe."""
        self._halt.set()

    def candidates(
        self,
        request: GenerateRequest,
        token: int,
        *,
        drafted: int = 0,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Candidates | None:
        """Five rivals, the token among them; waits as `hold_look` says, and gives up when it is overtaken."""
        self.threads.add(threading.get_ident())
        self.looks.append((request, token, drafted))
        if self.hold_look:
            self.held.set()
            for _ in range(int(HELD_SECONDS / 0.005)):
                if self.go.wait(0.005) or cancelled():
                    break
        if cancelled():
            return None
        if self.look_error is not None:
            raise self.look_error
        return rivals(token)

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """A token a word."""
        return sum(len(message.content.split()) for message in messages)

    def memory(self) -> KvMemory | None:
        """Thread-safe; 3 MiB mapped of which 2 are used, while a model is loaded."""
        return self.kv if self.info is not None else None

    def offload(self) -> Offload | None:
        """Thread-safe."""
        return self.offloaded if self.info is not None else None

    def ask_budget(
        self,
        budget_bytes: int | None,
        progress: Callable[[LoadProgress], None] = lambda _: None,
        done: Callable[[SpecularError | None], None] = lambda _: None,
    ) -> None:
        """Thread-safe; carried out by settle_budget, or before the next cycle."""
        self.budgets.append(budget_bytes)
        self.budget_bytes = budget_bytes
        self._move = (progress, done)

    def settle_budget(self) -> None:
        """Two steps, then it is in force, or `move_error` is told."""
        self.threads.add(threading.get_ident())
        move, self._move = self._move, None
        if move is None:
            return
        progress, done = move
        for step in range(1, 3):
            progress(LoadProgress(f"Bringing in layer {step}'s MLP", step, 2, step * 1000, 2000))
            if step == 1 and self.hold_move:
                self._wait()
        done(self.move_error)

    def basis(self) -> Basis | None:
        """Thread-safe."""
        return self.based if self.info is not None else None

    def peak(self) -> Measure:
        """Thread-safe."""
        return Measure(500_000_000.0)

    def unload(self) -> None:
        """Forget the model."""
        self.threads.add(threading.get_ident())
        self.info = None

    def close(self) -> None:
        """Forget the model and remember that we were closed."""
        self.unload()
        self.closed.set()

    def _wait(self) -> None:
        self.held.set()
        for _ in range(int(HELD_SECONDS / 0.005)):
            if self.go.wait(0.005) or (self._halt.is_set() and not self.deaf):
                return
