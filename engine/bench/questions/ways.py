"""Ways to hold a conversation that a benchmark compares; the engine's own two are here, others beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.bench.questions.files import Question
from engine.bench.questions.measured import Turn, digest_of
from engine.errors import PromptTooLong, SpecularError
from engine.records import CycleEvent, Event, Finished, StopReason
from engine.settings import GenerateRequest, Message, Sampling, Speculation
from engine.statistics import ReplyStatistics

PLAIN, SPECULATIVE = "plain", "speculative"


class QuestionTooLong(Exception):
    """A question with what was said before leaves no room for an answer."""


class WayFailed(Exception):
    """A way broke down; what it had answered before counts."""


class Way(Protocol):
    """One of those compared. `answer` raises QuestionTooLong and WayFailed."""

    @property
    def name(self) -> str: ...

    def answer(self, question: Question) -> list[Turn]:
        """Hold the whole conversation, from nothing."""
        ...

    def close(self) -> None:
        """Give back what it took."""
        ...


class Replying(Protocol):
    """What the engine's ways need of engine.engine.Engine."""

    def generate(self, request: GenerateRequest) -> Iterator[Event]: ...
    def count_tokens(self, messages: Sequence[Message]) -> int: ...
    def forget(self) -> None: ...
    def stop(self) -> None: ...


@dataclass(slots=True)
class _Made:
    """A reply as it is made, and the time that looking at it took."""

    ids: list[int] = field(default_factory=list)
    text: str = ""
    statistics: ReplyStatistics = field(default_factory=ReplyStatistics)
    finished: Finished | None = None
    own: float = 0.0
    energy: float | None = None

    def take(self, event: Event) -> None:
        """The next event."""
        if isinstance(event, CycleEvent):
            self.ids += event.record.emitted_ids
            self.text += "".join(event.pieces)
            self.statistics = self.statistics.with_cycle(event.record)
        elif isinstance(event, Finished):
            self.finished, self.text = event, self.text + event.tail


@dataclass(frozen=True, slots=True)
class EngineWay:
    """The engine, plain or with speculation. The KV cache is kept from turn to turn, not from question to question.

    energy: tells joules that the card has taken since some time; None where that cannot be told.
    """

    engine: Replying
    speculates: bool
    sampling: Sampling
    most: int  # new tokens of a reply
    context: int
    cancelled: Callable[[], bool] = lambda: False
    energy: Callable[[], float | None] = lambda: None

    @property
    def name(self) -> str:
        """See Way."""
        return SPECULATIVE if self.speculates else PLAIN

    def answer(self, question: Question) -> list[Turn]:
        """See Way."""
        self.engine.forget()
        messages: list[Message] = []
        turns: list[Turn] = []
        for number, text in enumerate(question.turns):
            messages.append(Message("user", text))
            made = self._reply(tuple(messages))
            turns.append(_turn(question, number, self.name, made))
            if self.cancelled():
                break
            messages.append(Message("assistant", made.text))
        return turns

    def _reply(self, messages: tuple[Message, ...]) -> _Made:
        if self.engine.count_tokens(messages) + 1 >= self.context:
            raise QuestionTooLong
        request = GenerateRequest(
            messages=messages,
            sampling=self.sampling,
            speculation=Speculation(enabled=self.speculates),
            max_new_tokens=self.most,
        )
        made, before = _Made(), self.energy()
        try:
            for event in self.engine.generate(request):
                began = time.perf_counter()
                made.take(event)
                if self.cancelled():
                    self.engine.stop()
                made.own += time.perf_counter() - began
        except PromptTooLong as error:
            raise QuestionTooLong from error
        except SpecularError as error:
            raise WayFailed(str(error)) from error
        if made.finished is None or made.finished.reason is StopReason.FAILED:
            raise WayFailed((made.finished.message if made.finished else None) or "the reply failed")
        after = self.energy()
        made.energy = None if before is None or after is None else after - before
        return made

    def close(self) -> None:
        """See Way: the engine is the caller's."""


def _turn(question: Question, number: int, way: str, made: _Made) -> Turn:
    done, sums = made.finished, made.statistics
    assert done is not None  # _reply saw to it
    return Turn(
        set=question.set,
        question=question.id,
        category=question.category,
        turn=number,
        way=way,
        prompt=done.prompt_tokens,
        reused=done.reused_tokens,
        tokens=len(made.ids),
        prefill_seconds=done.prefill_seconds,
        decode_seconds=done.decode_seconds,
        digest=digest_of(tuple(made.ids)),
        reason=done.reason.value,
        cycles=sums.cycles,
        drafting_cycles=sums.drafting_cycles,
        drafted=sums.drafted,
        tested=sums.tested,
        accepted=sums.accepted,
        draft_seconds=sums.draft_seconds,
        verify_seconds=sums.drafting_verify_seconds,
        plain_seconds=sums.drafting_plain_seconds,
        own_seconds=made.own,
        energy=made.energy,
        text=made.text,
    )
