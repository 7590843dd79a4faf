"""Judging a block: how much of a draft the full model agrees with, and how much of that enters the reply."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.records import StopReason, TokenState


class Branch(NamedTuple):
    """A sibling: a proposal beside place `place` of the draft, and the full model's token after it."""

    place: int
    id: int
    next_id: int


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Outcome of comparing a draft with the full model's choices.

    accepted: leading proposals that agree, and a sibling that does so where the draft first does not.
    next_id: the full model's own token after them.
    state: CORRECTION after a wrong proposal, BONUS after a wholly right draft or a sibling, PLAIN without a draft.
    tested: proposals judged, up to and including the first wrong one, and that sibling; accepted <= tested.
    sibling: which of the siblings was taken; sibling_id: its token. Both None without.
    """

    accepted: int
    next_id: int
    state: TokenState
    tested: int
    sibling: int | None = None
    sibling_id: int | None = None

    @property
    def agreed(self) -> int:
        """Leading proposals of the draft itself that agree."""
        return self.accepted - (self.sibling is not None)


@dataclass(frozen=True, slots=True)
class Cut:
    """What of a block enters the reply.

    emitted_ids: accepted proposals (a taken sibling is the last of them) and the next token, up to an end or a limit
        (an end token is the last).
    next_id, next_state: as in Acceptance, or None when the reply ended before that token.
    ignored: right tokens that stand after the end: len(emitted_ids) + ignored == accepted + 1.
    reason: why the reply ends here; None when it goes on.
    """

    emitted_ids: tuple[int, ...]
    next_id: int | None
    next_state: TokenState | None
    ignored: int
    reason: StopReason | None


def accept(drafted: Sequence[int], chosen: Sequence[int], siblings: Sequence[Branch] = ()) -> Acceptance:
    """Compares drafted ids with the full model's choices, of which there is one more (after the last proposal).

    Choices after the first wrong proposal are not looked at. Raises ValueError when there is not exactly one more.
    """
    if len(chosen) != len(drafted) + 1:
        raise ValueError(f"{len(drafted)} drafted tokens need {len(drafted) + 1} choices, not {len(chosen)}")
    if not drafted:
        return Acceptance(0, chosen[0], TokenState.PLAIN, 0)
    for i, token in enumerate(drafted):
        if token != chosen[i]:
            for number, other in enumerate(siblings):
                if (other.place, other.id) == (i, chosen[i]):
                    return Acceptance(i + 1, other.next_id, TokenState.BONUS, i + 2, number, other.id)
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
    sibling = () if acceptance.sibling_id is None else (acceptance.sibling_id,)
    block = (*drafted[: acceptance.agreed], *sibling, acceptance.next_id)
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
