"""Which tokens a reduced vocabulary has, and how those met of late take turns."""

from __future__ import annotations

import numpy as np

from engine.model.kept_output import KeptTokens


def met(kept: KeptTokens, tokens: list[int]) -> list[tuple[int, int, int]]:
    return list(kept.meet(tokens))


def test_wanted_tokens_come_first_then_low_ids() -> None:
    kept = KeptTokens(100, 16, [90, 2, 90, 50])
    assert kept.ids.dtype == np.int32
    assert kept.ids.tolist() == [90, 2, 50, 0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]


def test_so_many_wanted_tokens_leave_room_for_those_met() -> None:
    kept = KeptTokens(100, 16, range(99, 50, -1))
    assert kept.ids.tolist() == [*range(99, 87, -1), 0, 1, 2, 3]


def test_tokens_met_take_turns_in_the_last_quarter() -> None:
    kept = KeptTokens(100, 16, [])
    assert met(kept, [3, 15, 70]) == [(12, 12, 70)], "tokens with a place need none"
    assert met(kept, [71, 72, 73]) == [(13, 13, 71), (14, 14, 72), (15, 15, 73)]
    assert met(kept, [70, 74]) == [(12, 70, 74)], "the one met longest ago goes"
    assert met(kept, [70, 12]) == [(13, 71, 70), (14, 72, 12)], "and may come back"
    assert sorted(kept.ids.tolist()) == sorted([*range(12), 74, 70, 12, 73])


def test_a_token_met_twice_at_once_gets_one_place() -> None:
    kept = KeptTokens(100, 8, [])
    assert met(kept, [80, 80]) == [(6, 6, 80)]
