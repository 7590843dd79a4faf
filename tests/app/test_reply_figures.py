"""Folding a reply for the cockpit: bit by bit, from the beginning where it is another one."""

from __future__ import annotations

import pytest

from app.conversation import Reply
from app.reply_figures import LAST, SLICE, ReplyFigures
from engine.records import PrefillProgress
from reply_builders import finished, long_reply


def reply_of(tokens: int) -> Reply:
    reply = Reply(1)
    reply.append(PrefillProgress(12, 12, 0))
    for event in long_reply(tokens):
        reply.append(event)
    return reply


def test_only_what_is_new_is_folded() -> None:
    reply, figures = reply_of(50), ReplyFigures()
    figures.follow(reply)
    assert figures.pending and figures.take(1.0) == 10
    assert not figures.pending and figures.take(1.0) == 0
    reply.append(finished())
    assert figures.pending and figures.take(1.0) == 0
    figures.follow(reply)
    assert sum(figures.profile.tokens) == 10 == reply.statistics.cycles
    assert figures.statistics is reply.statistics


def test_the_figures_agree_with_the_counters() -> None:
    reply, figures = reply_of(500), ReplyFigures()
    figures.follow(reply)
    figures.take(10.0)
    profile, statistics = figures.profile, reply.statistics
    assert sum(count * tokens for tokens, count in enumerate(profile.tokens)) == statistics.emitted
    assert profile.drafted[0] == statistics.drafting_cycles
    assert sum(profile.accepted) == statistics.accepted
    assert figures.trend.seconds == pytest.approx(statistics.seconds)
    assert [record.index for record in figures.last] == list(range(100 - LAST, 100))


def test_another_reply_begins_anew() -> None:
    figures = ReplyFigures()
    figures.follow(reply_of(500))
    figures.take(10.0)
    figures.follow(reply_of(50))
    assert figures.profile.tokens == () and figures.trend.points == () and not figures.last
    figures.take(10.0)
    assert sum(figures.profile.tokens) == 10
    figures.follow(None)
    assert not figures.pending and figures.take(1.0) == 0 and figures.statistics.cycles == 0


def test_a_long_reply_is_folded_in_steps() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.004
        return now[0]

    figures = ReplyFigures(clock)
    figures.follow(reply_of(20_000))
    assert figures.take(0.006) == 2 * SLICE - 1  # the prefill is no cycle
    steps = 0
    while figures.pending:
        steps += 1
        assert figures.take(0.006) <= 2 * SLICE
    assert steps == pytest.approx(4000 / (2 * SLICE), abs=2)
    assert sum(figures.profile.tokens) == 4000
