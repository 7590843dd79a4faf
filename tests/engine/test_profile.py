"""Acceptance by position, tokens by cycle, and the lines from which on drafting pays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.profile import Profile, break_even_acceptance, break_even_share
from engine.records import CycleRecord
from engine.statistics import ReplyStatistics
from reply_builders import cycle, sibling_cycle


def profile_of(*records: CycleRecord) -> Profile:
    profile = Profile()
    for record in records:
        profile = profile.with_cycle(record)
    return profile


def statistics_of(*records: CycleRecord) -> ReplyStatistics:
    statistics = ReplyStatistics()
    for record in records:
        statistics = statistics.with_cycle(record)
    return statistics


FULL = cycle(0, [" a", " b", " c"], " d").record  # three drafts, all accepted
ONE = cycle(1, [" a"], " b", [" x", " y"]).record  # three drafts, one accepted
NONE = cycle(2, [], " b", [" x"]).record  # one draft, none accepted
PLAIN = cycle(3, [], " p").record


def test_a_position_counts_the_cycles_that_drafted_so_far() -> None:
    positions = profile_of(FULL, ONE, NONE, PLAIN).positions
    assert [(share.position, share.cycles, share.accepted) for share in positions] == [(1, 3, 2), (2, 2, 1), (3, 2, 1)]
    assert [share.share for share in positions] == [pytest.approx(2 / 3), 0.5, 0.5]


def test_shares_never_rise_with_the_position_among_drafts_of_one_length() -> None:
    shares = [share.share for share in profile_of(*[FULL] * 5, *[ONE] * 3).positions]
    assert shares == sorted(shares, reverse=True)


def test_a_taken_sibling_counts_for_its_position() -> None:
    record = sibling_cycle(0, [" a"], " taken", " bonus", [" x", " y"]).record
    assert [(share.cycles, share.accepted) for share in profile_of(record).positions] == [(1, 1), (1, 1), (1, 0)]


def test_the_band_is_wilsons() -> None:
    low, high = profile_of(*[FULL] * 8, *[NONE] * 2).positions[0].band
    assert (low, high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))


@pytest.mark.parametrize(("records", "low", "high"), [([FULL], 0.0, 1.0), ([NONE] * 3, 0.0, 0.9)])
def test_the_band_of_few_cycles_is_wide_and_within_bounds(records: list[CycleRecord], low: float, high: float) -> None:
    found_low, found_high = profile_of(*records).positions[0].band
    assert low <= found_low < found_high <= high
    assert found_high - found_low > 0.5


def test_the_histogram_is_of_all_cycles_and_as_wide_as_the_longest_draft() -> None:
    profile = profile_of(FULL, FULL, ONE, PLAIN)
    assert profile.token_shares == (0.25, 0.25, 0.0, 0.5)
    assert Profile().token_shares == ()
    assert profile_of(PLAIN).token_shares == (1.0,)


def test_a_cycle_cut_by_the_end_counts_what_it_added() -> None:
    cut = replace(FULL, emitted_ids=(100,), next_id=None, next_state=None, ignored=2)
    assert profile_of(cut).token_shares == (1.0, 0.0, 0.0, 0.0)


def test_at_the_break_even_acceptance_a_cycle_takes_as_long_as_plain_steps() -> None:
    costly = replace(FULL, draft_seconds=0.03, verify_seconds=0.05, plain_seconds=0.05, wait_seconds=0.0)
    statistics = statistics_of(costly)
    acceptance = break_even_acceptance(statistics)
    assert acceptance is not None and statistics.draft_cost is not None and statistics.verify_cost is not None
    tokens = 1 + acceptance + acceptance**2 + acceptance**3
    assert tokens == pytest.approx(3 * statistics.draft_cost + statistics.verify_cost)


def test_there_is_no_break_even_where_no_acceptance_would_pay() -> None:
    assert break_even_acceptance(statistics_of(replace(FULL, verify_seconds=5.0, plain_seconds=0.05))) is None


def test_free_drafts_pay_at_any_acceptance() -> None:
    free = replace(FULL, draft_seconds=0.0, verify_seconds=0.05, plain_seconds=0.05)
    assert break_even_acceptance(statistics_of(free)) == pytest.approx(0.0, abs=1e-9)


def test_nothing_is_told_before_it_was_measured() -> None:
    unmeasured = statistics_of(replace(FULL, plain_seconds=None))
    assert break_even_acceptance(unmeasured) is None and break_even_share(unmeasured) is None
    assert break_even_acceptance(statistics_of(PLAIN)) is None and break_even_share(statistics_of(PLAIN)) is None


def test_a_draft_pays_from_its_cost_at_the_speed_reached() -> None:
    statistics = statistics_of(FULL, ONE)
    assert statistics.draft_cost is not None and statistics.speed_up is not None
    assert break_even_share(statistics) == pytest.approx(statistics.draft_cost * statistics.speed_up)
