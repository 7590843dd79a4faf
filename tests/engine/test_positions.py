"""Acceptance by the place of a proposal: what counts, and how sure the share is."""

from __future__ import annotations

import pytest

from engine.positions import acceptance_by_place, interval
from reply_builders import cycle, sibling_cycle


def test_a_place_counts_the_cycles_that_drafted_so_far() -> None:
    records = [
        cycle(0, [" a", " b"], " c").record,
        cycle(1, [" a"], " b", [" x", " y"]).record,
        cycle(2, [], " b", [" x"]).record,
        cycle(3, [], " plain").record,
    ]
    shares = acceptance_by_place(records)
    assert [(s.place, s.right, s.cycles) for s in shares] == [(1, 2, 3), (2, 1, 2), (3, 0, 1)]
    assert shares[0].share == pytest.approx(2 / 3)


def test_a_second_choice_is_none_of_the_chain() -> None:
    shares = acceptance_by_place([sibling_cycle(0, [" one"], " two", " three", [" wrong", " more"]).record])
    assert [s.right for s in shares] == [1, 0, 0]


def test_nothing_drafted_gives_no_places() -> None:
    assert acceptance_by_place([cycle(0, [], " plain").record]) == () == acceptance_by_place([])


@pytest.mark.parametrize(
    ("right", "of", "low", "high"),
    [(8, 10, 0.490, 0.943), (0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (500, 1000, 0.469, 0.531)],
)
def test_the_interval_is_wilsons(right: int, of: int, low: float, high: float) -> None:
    assert interval(right, of) == pytest.approx((low, high), abs=0.001)
