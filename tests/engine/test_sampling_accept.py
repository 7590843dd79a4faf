"""Blocks are judged and cut per token, exactly where plain decoding would have stopped."""

from __future__ import annotations

import numpy as np
import pytest

from engine.records import StopReason, TokenState
from engine.sampling.accept import Acceptance, Branch, accept, cut


@pytest.mark.parametrize(
    ("drafted", "chosen", "expected"),
    [
        ([], [7], Acceptance(0, 7, TokenState.PLAIN, 0)),
        ([1, 2, 3], [1, 2, 3, 4], Acceptance(3, 4, TokenState.BONUS, 3)),
        ([1, 2, 3], [9, 2, 3, 4], Acceptance(0, 9, TokenState.CORRECTION, 1)),
        ([1, 2, 3], [1, 2, 9, 4], Acceptance(2, 9, TokenState.CORRECTION, 3)),
        ([1, 2, 3], [1, 9, 3, 4], Acceptance(1, 9, TokenState.CORRECTION, 2)),
    ],
)
def test_longest_agreeing_prefix_then_the_full_models_token(
    drafted: list[int], chosen: list[int], expected: Acceptance
) -> None:
    assert accept(drafted, chosen) == expected


@pytest.mark.parametrize("chosen", [[], [1], [1, 2, 3]])
def test_one_choice_more_than_drafted_is_needed(chosen: list[int]) -> None:
    with pytest.raises(ValueError, match="need 2 choices"):
        accept([5], chosen)


def run(
    truth: list[int], drafts: list[list[int]], end_ids: set[int], limit: int | None, room: int | None, stop: int | None
) -> tuple[list[int], StopReason | None]:
    """Decodes the fixed text `truth` in blocks; checks each block's counters."""
    ids: list[int] = []
    seen: list[int] = []

    def stops(token: int) -> bool:
        seen.append(token)
        return token == stop

    for drafted in drafts:
        at = len(ids)
        if at + len(drafted) + 1 > len(truth):
            return ids, None
        outcome = accept(drafted, truth[at : at + len(drafted) + 1])
        block = cut(
            drafted,
            outcome,
            end_ids=end_ids,
            remaining=None if limit is None else limit - at,
            room=None if room is None else room - at,
            stops=stops,
        )
        assert outcome.accepted <= outcome.tested <= len(drafted)
        assert len(block.emitted_ids) + block.ignored == outcome.accepted + 1
        ended_before_next = len(block.emitted_ids) <= outcome.accepted
        assert (block.next_id is None) == (block.next_state is None) == ended_before_next
        if not ended_before_next:
            assert block.emitted_ids[-1] == block.next_id == outcome.next_id
            assert block.next_state is outcome.state
        ids += block.emitted_ids
        assert seen == [i for i in ids if i not in end_ids], "the stop checker sees each emitted token once"
        if block.reason is not None:
            return ids, block.reason
        assert block.ignored == 0
    return ids, None


@pytest.mark.parametrize("seed", range(150))
def test_any_blocks_end_where_plain_decoding_ends(seed: int) -> None:
    random = np.random.default_rng(seed)
    truth = random.integers(0, 12, 60).tolist()
    end_ids = {10, 11} if random.random() < 0.5 else set()
    limit = int(random.integers(0, 25)) if random.random() < 0.5 else None
    room = int(random.integers(0, 25)) if random.random() < 0.5 else None
    stop = 9 if random.random() < 0.5 else None
    plain = run(truth, [[] for _ in range(60)], end_ids, limit, room, stop)
    position, drafts = 0, []
    for _ in range(60):
        right = int(random.integers(0, 6))
        wrong = int(random.integers(0, 3))
        drafts.append(truth[position : position + right] + [99] * wrong)
        position += right + 1
    blocks = run(truth, drafts, end_ids, limit, room, stop)
    if plain[1] is not None and len(plain[0]) < 45:
        assert blocks == plain
    else:
        assert blocks[0] == truth[: len(blocks[0])]


@pytest.mark.parametrize("gamma", range(1, 9))
def test_an_end_token_inside_an_accepted_run_ends_the_reply_there(gamma: int) -> None:
    truth = [14, 114, 217, 41, 112, 307, 30, 8, 9, 10, 11, 12, 13, 15]
    drafts = [truth[i : i + gamma] for i in range(0, 5, gamma + 1)]
    assert run(truth, drafts, {112}, None, None, None) == ([14, 114, 217, 41, 112], StopReason.END_TOKEN)


@pytest.mark.parametrize("gamma", [1, 3, 7])
@pytest.mark.parametrize("limit", range(21))
def test_exactly_the_limit_is_emitted(limit: int, gamma: int) -> None:
    truth = list(range(100, 140))
    drafts = [truth[i : i + gamma] for i in range(0, 30, gamma + 1)]
    assert run(truth, drafts, set(), limit, None, None) == (truth[:limit], StopReason.LENGTH)


def test_which_reason_wins_on_one_token() -> None:
    block = accept([1, 2], [1, 2, 3])
    both = cut([1, 2], block, end_ids={2}, remaining=2, room=2, stops=lambda token: True)
    assert (both.emitted_ids, both.reason) == ((1,), StopReason.STOP_STRING)
    end = cut([1, 2], block, end_ids={2}, remaining=2, room=2)
    assert (end.emitted_ids, end.reason, end.ignored) == ((1, 2), StopReason.END_TOKEN, 1)
    assert cut([1, 2], block, end_ids=(), remaining=2, room=2).reason is StopReason.LENGTH
    assert cut([1, 2], block, end_ids=(), remaining=9, room=2).reason is StopReason.CONTEXT_FULL
    last = cut([1, 2], block, end_ids={3}, remaining=3)
    assert (last.emitted_ids, last.next_id, last.next_state) == ((1, 2, 3), 3, TokenState.BONUS)
    assert (last.reason, last.ignored) == (StopReason.END_TOKEN, 0)


def test_nothing_is_emitted_without_budget() -> None:
    nothing = cut([1], accept([1], [1, 2]), end_ids=(), remaining=0)
    assert (nothing.emitted_ids, nothing.next_id, nothing.ignored) == ((), None, 2)
    assert nothing.reason is StopReason.LENGTH


def test_a_sibling_is_taken_where_the_draft_is_first_wrong() -> None:
    siblings = [Branch(0, 7, 70), Branch(1, 8, 80), Branch(1, 9, 90), Branch(2, 9, 91)]
    taken = accept([1, 2, 3], [1, 9, 3, 4], siblings)
    assert taken == Acceptance(2, 90, TokenState.BONUS, 3, sibling=2, sibling_id=9)
    assert taken.agreed == 1
    assert cut([1, 2, 3], taken, end_ids=()).emitted_ids == (1, 9, 90)
    first = accept([1, 2, 3], [7, 2, 3, 4], siblings)
    assert (first.accepted, first.agreed, first.next_id, first.tested) == (1, 0, 70, 2)
    assert accept([1, 2, 3], [1, 5, 3, 4], siblings) == Acceptance(1, 5, TokenState.CORRECTION, 2)
    assert accept([1, 2, 3], [1, 2, 3, 4], [Branch(2, 3, 33)]).state is TokenState.BONUS, "no sibling of a right token"
    assert accept([1, 2, 3], [1, 2, 3, 4], [Branch(2, 3, 33)]).sibling is None


@pytest.mark.parametrize(
    ("end", "remaining", "emitted", "reason"),
    [
        ({9}, None, (1, 9), StopReason.END_TOKEN),
        ({1}, None, (1,), StopReason.END_TOKEN),
        ({90}, None, (1, 9, 90), StopReason.END_TOKEN),
        (set(), 2, (1, 9), StopReason.LENGTH),
        (set(), 1, (1,), StopReason.LENGTH),
    ],
)
def test_a_reply_may_end_at_a_sibling_before_it_or_after_it(
    end: set[int], remaining: int | None, emitted: tuple[int, ...], reason: StopReason
) -> None:
    taken = accept([1, 2], [1, 9, 4], [Branch(1, 9, 90)])
    kept = cut([1, 2], taken, end_ids=end, remaining=remaining)
    assert (kept.emitted_ids, kept.reason) == (emitted, reason)
    assert len(emitted) + kept.ignored == taken.accepted + 1
    assert (kept.next_id is None) == (len(emitted) < 3)
