"""Hand-made cycles and replies for the window's tests: texts in, records out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.recipe import Recipe
from engine.records import CycleEvent, CycleRecord, Finished, Sibling, StopReason, TokenState

RECIPE = Recipe()


def cycle(
    index: int,
    accepted: Sequence[str],
    next_text: str | None = None,
    ghosts: Sequence[str] = (),
    gamma: int | None = None,
) -> CycleEvent:
    """A cycle that accepts `accepted`, then adds `next_text`: a correction after ghosts, else a bonus, else plain."""
    drafted = len(accepted) + len(ghosts)
    state = None
    if next_text is not None:
        state = TokenState.CORRECTION if ghosts else TokenState.BONUS if accepted else TokenState.PLAIN
    emitted = len(accepted) + (next_text is not None)
    record = CycleRecord(
        index=index,
        drafted_ids=tuple(range(100, 100 + drafted)),
        drafted_probs=tuple(round(0.9 - 0.1 * i, 2) for i in range(drafted)),
        full_probs=tuple(round(0.8 - 0.1 * i, 2) for i in range(len(accepted) + bool(ghosts))),
        accepted=len(accepted),
        next_id=None if next_text is None else 7,
        next_state=state,
        next_prob=None if next_text is None else 0.61,
        emitted_ids=tuple(range(100, 100 + emitted)),
        ignored=0,
        draft_seconds=0.01 * drafted,
        verify_seconds=0.05,
        wait_seconds=0.02,
        plain_seconds=0.045,
        recipe=RECIPE,
        streamed_bytes=0,
        kv_length=10 + index,
    )
    pieces = (*accepted, *(() if next_text is None else (next_text,)))
    return CycleEvent(record, pieces, tuple(ghosts))


def sibling_cycle(index: int, accepted: Sequence[str], taken: str, bonus: str, ghosts: Sequence[str]) -> CycleEvent:
    """A cycle in which the draft's second choice `taken` came in place of the first ghost, and a bonus after it."""
    event = cycle(index, accepted, taken, ghosts)
    record = event.record
    place = len(accepted)
    record = replace(
        record,
        accepted=place + 1,
        next_id=8,
        next_state=TokenState.BONUS,
        emitted_ids=(*record.emitted_ids[:place], 7, 8),
        siblings=(Sibling(0, 55, 0.05, False), Sibling(place, 7, 0.21, True, 0.66)),
    )
    return CycleEvent(record, (*event.pieces, bonus), event.ghosts)


def finished(reason: StopReason = StopReason.END_TOKEN, tail: str = "", message: str | None = None) -> Finished:
    """The end of a reply."""
    return Finished(reason, tail, 40, 12, 30, 0.4, 1.2, 1, message)


def long_reply(tokens: int, paragraph: int = 60) -> list[CycleEvent]:
    """Cycles of five tokens, every third with a rejected guess, a new paragraph every `paragraph` tokens."""
    events = []
    for i in range(tokens // 5):
        accepted = [f" word{(i * 5 + j) % 97}" for j in range(4)]
        closing = ".\n\n" if i % (paragraph // 5) == paragraph // 5 - 1 else " so"
        events.append(cycle(i, accepted, closing, [" guess", " more"] if i % 3 == 0 else []))
    return events
