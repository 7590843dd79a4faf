"""What the records of a reply tell of one of its tokens, and what to ask the engine for the rest. Plain data: no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.widgets.token_spans import Span, SpanKind
from engine.records import CycleEvent, CycleRecord, Opening


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """One token, in the reply or rejected.

    before: tokens of the reply in front of it. position, drafted: i of gamma, from 1; None where nothing was drafted.
    draft_prob, full_prob: as recorded, None where the record has none. own: how many of the tokens before it were the
    draft's proposals in the same cycle. cycle: its record, None for given tokens.
    """

    kind: SpanKind
    id: int
    text: str
    before: int
    own: int = 0
    position: int | None = None
    drafted: int = 0
    draft_prob: float | None = None
    full_prob: float | None = None
    cycle: CycleRecord | None = None

    @property
    def seconds(self) -> float | None:
        """Its share of its cycle's time: all tokens that the cycle added alike."""
        if self.cycle is None or not self.cycle.emitted_ids:
            return None
        return self.cycle.seconds / len(self.cycle.emitted_ids)


def token_facts(span: Span, cycles: Sequence[CycleEvent], opening: Opening) -> TokenFacts | None:
    """The facts of a span; None for text that is no token."""
    if span.kind is SpanKind.GIVEN:
        return TokenFacts(span.kind, opening.ids[span.place], span.text, span.place)
    if not 0 <= span.cycle < len(cycles):
        return None
    record = cycles[span.cycle].record
    start = len(opening.ids) + sum(len(event.record.emitted_ids) for event in cycles[: span.cycle])
    if span.kind is SpanKind.GHOST:
        return _of_proposal(span, record, record.agreed, start, record.rejected_ids[0])
    id_ = record.emitted_ids[span.place]
    if span.kind is SpanKind.ACCEPTED and span.place < record.agreed:
        return _of_proposal(span, record, span.place, start, id_)
    return _of_own(span, record, start, id_)


def _of_proposal(span: Span, record: CycleRecord, place: int, start: int, id_: int) -> TokenFacts:
    return TokenFacts(
        kind=span.kind,
        id=id_,
        text=span.text,
        before=start + place,
        own=place,
        position=place + 1,
        drafted=len(record.drafted_ids),
        draft_prob=record.drafted_probs[place],
        full_prob=record.full_probs[place] if place < len(record.full_probs) else None,
        cycle=record,
    )


def _of_own(span: Span, record: CycleRecord, start: int, id_: int) -> TokenFacts:
    """The full model's own choice, or a second choice that came in place of the chain's."""
    taken = record.taken
    second = taken is not None and span.kind is SpanKind.ACCEPTED
    after_second = taken is not None and not second  # the draft never read the token before this one
    return TokenFacts(
        kind=span.kind,
        id=id_,
        text=span.text,
        before=start + span.place,
        own=0 if after_second else span.place,
        position=record.agreed + 1 if second or span.kind is SpanKind.CORRECTION else None,
        drafted=len(record.drafted_ids),
        draft_prob=taken.prob if taken is not None and second else None,
        full_prob=taken.full_prob if taken is not None and second else record.next_prob,
        cycle=record,
    )
