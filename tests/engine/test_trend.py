"""Acceptance and speed over time: windows, bounds, and what has no time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.records import CycleRecord
from engine.trend import BUCKET_SECONDS, SPAN_SECONDS, Trend
from reply_builders import cycle


def record(seconds: float, accepted: int = 2, ghosts: int = 1) -> CycleRecord:
    found = cycle(0, [" a"] * accepted, " b", [" g"] * ghosts).record
    return replace(found, draft_seconds=0.0, wait_seconds=0.0, verify_seconds=seconds)


def test_a_point_sums_up_the_two_seconds_before_it() -> None:
    trend = Trend()
    for _ in range(40):
        trend.add(record(0.25, accepted=0))
    for _ in range(8):
        trend.add(record(0.25, accepted=3))
    last = trend.points[-1]
    assert last.acceptance == pytest.approx(3 / 4)
    assert last.speed == pytest.approx(4 / 0.25)
    before = trend.points[-9]
    assert (before.acceptance, before.speed) == (0.0, pytest.approx(1 / 0.25))
    assert 0 < (trend.points[-4].acceptance or 0) < 3 / 4


def test_cycles_of_one_bucket_make_one_point() -> None:
    trend = Trend()
    for _ in range(100):
        trend.add(record(0.01))
    assert trend.seconds == pytest.approx(1.0)
    assert len(trend.points) == pytest.approx(1.0 / BUCKET_SECONDS, abs=1)
    assert trend.points[-1].speed == pytest.approx(300)


def test_a_cycle_longer_than_the_window_stands_for_itself() -> None:
    trend = Trend()
    trend.add(record(10.0))
    trend.add(record(5.0, accepted=4, ghosts=0))
    assert [point.seconds for point in trend.points] == [10.0, 15.0]
    assert trend.points[-1].speed == pytest.approx(1.0)
    assert trend.points[-1].acceptance == 1.0


def test_plain_steps_have_a_speed_and_no_acceptance() -> None:
    trend = Trend()
    trend.add(record(0.5, accepted=0, ghosts=0))
    assert trend.points[0].acceptance is None
    assert trend.points[0].speed == pytest.approx(2.0)


def test_a_cycle_without_time_is_left_out() -> None:
    trend = Trend()
    trend.add(record(0.0))
    assert trend.points == () and trend.seconds == 0.0


def test_it_holds_a_minute_however_long_the_reply_is() -> None:
    trend = Trend()
    for _ in range(20_000):
        trend.add(record(0.02))
    assert len(trend.points) == SPAN_SECONDS / BUCKET_SECONDS
    assert trend.points[-1].seconds - trend.points[0].seconds == pytest.approx(SPAN_SECONDS, abs=1)
