"""Judging a block: how much of a draft the full model agrees with, and how much of that enters the reply."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from engine.records import StopReason, TokenState


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Outcome of comparing a draft with the full model's choices.

    accepted: leading proposals that agree. next_id: the full model's own token after them.
    state: CORRECTION after a wrong proposal, BONUS after a wholly right draft, PLAIN when nothing was drafted.
    tested: proposals judged, up to and including the first wrong one; accepted <= tested <= drafted.
    """

    accepted: int
    next_id: int
    state: TokenState
    tested: int


@dataclass(frozen=True, slots=True)
class Cut:
    """What of a block enters the reply.

    emitted_ids: accepted proposals and the next token, up to an end or a limit (an end token is the last of them).
    next_id, next_state: as in Acceptance, or None when the reply ended before that token.
    ignored: right tokens that stand after the end: len(emitted_ids) + ignored == accepted + 1.
    reason: why the reply ends here; None when it goes on.
    """

    emitted_ids: tuple[int, ...]
    next_id: int | None
    next_state: TokenState | None
    ignored: int
    reason: StopReason | None


def accept(drafted: Sequence[int], chosen: Sequence[int]) -> Acceptance:
    """Compares drafted ids with the full model's choices, of which there is one more (after the last proposal).

    Raises ValueError when there is not exactly one more.
    """
    if len(chosen) != len(drafted) + 1:
        raise ValueError(f"{len(drafted)} drafted tokens need {len(drafted) + 1} choices, not {len(chosen)}")
    if not drafted:
        return Acceptance(0, chosen[0], TokenState.PLAIN, 0)
    for i, token in enumerate(drafted):
        if token != chosen[i]:
            return Acceptance(i, chosen[i], TokenState.CORRECTION, i + 1)
    return Acceptance(len(drafted), chosen[-1], TokenState.BONUS, len(drafted))


def cut(
    drafted: Sequence[int],
    acceptance: Acceptance,
    *,
    end_ids: Collection[int],
    remaining: int | None = None,
    room: int | None = None,
    stops: Callable[[int], bool] | None = None,
) -> Cut:
    """Walks through a block token by token and ends the reply where plain decoding would have ended it.

    remaining: tokens the reply may still have (None: no limit). room: tokens the context may still hold (likewise).
    stops: told each emitted token that is not an end token, in order, and answers whether the text now holds a stop
        string; never called for a token after the end.
    On one token an end token outranks a stop string, that the length limit, that a full context.
    """
    block = (*drafted[: acceptance.accepted], acceptance.next_id)
    limits = ((remaining, StopReason.LENGTH), (room, StopReason.CONTEXT_FULL))
    count, reason = 0, _reached(0, limits)
    while reason is None and count < len(block):
        token = block[count]
        count += 1
        if token in end_ids:
            reason = StopReason.END_TOKEN
        elif stops is not None and stops(token):
            reason = StopReason.STOP_STRING
        else:
            reason = _reached(count, limits)
    whole = count == len(block)
    return Cut(
        emitted_ids=block[:count],
        next_id=acceptance.next_id if whole else None,
        next_state=acceptance.state if whole else None,
        ignored=len(block) - count,
        reason=reason,
    )


def _reached(count: int, limits: tuple[tuple[int | None, StopReason], ...]) -> StopReason | None:
    return next((reason for limit, reason in limits if limit is not None and count >= limit), None)
