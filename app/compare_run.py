"""The same prompt twice on the one engine, plainly and then with speculation, and both replies held side by side."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

from app.conversation import Reply
from app.host import EngineHost
from app.states import HostState
from engine.comparison import Comparison, equal_from
from engine.recording import joined_ids
from engine.records import CycleEvent, Event, StopReason
from engine.settings import GenerateRequest

CONVERSATION = -1  # of its own, so that the chats keep their rows in the KV cache; it gives way when they need room
BROKEN_OFF = (StopReason.STOPPED, StopReason.FAILED)


def plainly(request: GenerateRequest, seed: int) -> GenerateRequest:
    """The request without speculation, with the seed that both replies draw by."""
    return _of(request, seed, speculates=False)


def speculatively(request: GenerateRequest, seed: int) -> GenerateRequest:
    """The request with speculation."""
    return _of(request, seed, speculates=True)


def _of(request: GenerateRequest, seed: int, *, speculates: bool) -> GenerateRequest:
    return replace(
        request,
        sampling=replace(request.sampling, seed=seed),
        speculation=replace(request.speculation, enabled=speculates),
        conversation=CONVERSATION,
    )


class CompareRun(QObject):
    """One comparison at a time. `plain` and `fast` are the replies so far.

    Signals: plain_came(events), fast_came(events) as they come from the engine; second_began();
    settled(Comparison) when it is over, also where it was stopped; failed(sentence) when it could not be made.
    """

    plain_came = Signal(object)
    fast_came = Signal(object)
    second_began = Signal()
    settled = Signal(object)
    failed = Signal(str)

    def __init__(self, host: EngineHost, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._request: GenerateRequest | None = None
        self._seed = 0
        self.plain: Reply | None = None
        self.fast: Reply | None = None
        self._plain_ids: list[int] = []
        self._fast_ids: list[int] = []
        self._equal = 0  # leading tokens found equal
        host.events_ready.connect(self._on_events)
        host.reply_refused.connect(self._on_refused)
        host.state_changed.connect(self._on_state)

    @property
    def running(self) -> bool:
        """Whether a comparison is under way."""
        return self._request is not None

    def begin(self, request: GenerateRequest, seed: int) -> bool:
        """Start with the plain reply; False where the engine cannot take it now."""
        if self.running:
            return False
        reply_id = self._host.send(plainly(request, seed))
        if reply_id is None:
            return False
        self._request, self._seed = request, seed
        self.plain, self.fast = Reply(reply_id), None
        self._plain_ids, self._fast_ids, self._equal = [], [], 0
        return True

    @Slot()
    def stop(self) -> None:
        """Stop; what both replies have so far is still compared."""
        if self.running:
            self._host.stop()

    def outcome(self) -> Comparison:
        """What can be said by now."""
        plain, fast = self._plain_ids, self._fast_ids
        ends = [reply.finished for reply in (self.plain, self.fast) if reply is not None]
        whole = len(ends) == 2 and all(end is not None and end.reason not in BROKEN_OFF for end in ends)
        self._equal += equal_from(plain, fast, self._equal)
        both = min(len(plain), len(fast))
        differs = self._equal < both or (whole and len(plain) != len(fast))
        return Comparison(
            compared=self._equal,
            difference=self._equal if differs else None,
            plain_tokens=len(plain),
            speculative_tokens=len(fast),
            plain_seconds=_seconds(self.plain),
            speculative_seconds=_seconds(self.fast),
            stopped=not whole,
        )

    @Slot(int, object)
    def _on_events(self, reply_id: int, events: list[Event]) -> None:
        sides = ((self.plain, self._plain_ids, self.plain_came), (self.fast, self._fast_ids, self.fast_came))
        for reply, ids, came in sides:
            if self.running and reply is not None and reply.reply_id == reply_id:
                for event in events:
                    reply.append(event)
                ids += joined_ids(event for event in events if isinstance(event, CycleEvent))
                came.emit(events)
                self._after(reply)

    def _after(self, reply: Reply) -> None:
        """A reply that failed ends the comparison at once; one that was stopped does when the engine is free."""
        if reply.finished is not None and reply.finished.reason is StopReason.FAILED:
            self._give_up(reply.finished.message or "")

    @Slot(int, str)
    def _on_refused(self, reply_id: int, sentence: str) -> None:
        if any(reply is not None and reply.reply_id == reply_id for reply in (self.plain, self.fast)):
            self._give_up(sentence)

    @Slot(object)
    def _on_state(self, _: HostState) -> None:
        state = self._host.state
        if not self.running or self.plain is None or state in (HostState.GENERATING, HostState.STOPPING):
            return
        if state is not HostState.READY:  # a load, a fault or the end of the program came in between
            self._give_up("")
        elif self.fast is not None or (self.plain.finished and self.plain.finished.reason in BROKEN_OFF):
            self._request = None
            self.settled.emit(self.outcome())
        else:
            self._begin_second()

    def _begin_second(self) -> None:
        assert self._request is not None
        reply_id = self._host.send(speculatively(self._request, self._seed))
        if reply_id is None:
            self._give_up("")
            return
        self.fast = Reply(reply_id)
        self.second_began.emit()

    def _give_up(self, sentence: str) -> None:
        if self.running:
            self._request = None
            self.failed.emit(sentence or self.tr("The comparison was interrupted."))


def _seconds(reply: Reply | None) -> float:
    """Decoding time without the prompt."""
    if reply is None:
        return 0.0
    return reply.finished.decode_seconds if reply.finished is not None else reply.statistics.seconds
