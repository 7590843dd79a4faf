"""Figures of a reply: what they add up to, also where the reply ends inside an accepted block."""

from __future__ import annotations

import random

import pytest

from engine.recipe import Recipe
from engine.records import CycleRecord, Sibling, TokenState
from engine.sampling.accept import Branch, accept, cut
from engine.statistics import ReplyStatistics

END = 9


def judged(
    index: int,
    drafted: tuple[int, ...],
    chosen: tuple[int, ...],
    plain_seconds: float | None,
    siblings: tuple[Branch, ...] = (),
) -> CycleRecord:
    """The record of a block that the full model answers with `chosen`, ended by token 9."""
    outcome = accept(drafted, chosen, siblings)
    kept = cut(drafted, outcome, end_ids=frozenset({END}))
    return CycleRecord(
        index=index,
        drafted_ids=drafted,
        drafted_probs=(0.5,) * len(drafted),
        full_probs=(0.5,) * min(outcome.agreed + 1, len(drafted)),
        accepted=outcome.accepted,
        next_id=kept.next_id,
        next_state=kept.next_state,
        next_prob=None if kept.next_id is None else 0.5,
        emitted_ids=kept.emitted_ids,
        ignored=kept.ignored,
        draft_seconds=0.01 * len(drafted),
        verify_seconds=0.02,
        wait_seconds=0.0,
        plain_seconds=plain_seconds,
        recipe=Recipe(),
        streamed_bytes=0,
        kv_length=0,
        siblings=tuple(Sibling(b.place, b.id, 0.3, number == outcome.sibling) for number, b in enumerate(siblings)),
        looked_up=1,
    )


def test_states_sum_to_the_emitted_tokens_and_counters_are_ordered() -> None:
    chance = random.Random(4)
    for _ in range(200):
        figures = ReplyStatistics()
        for index in range(6):
            drafted = tuple(chance.randrange(10) for _ in range(chance.randrange(6)))
            chosen = tuple(t if chance.random() < 0.8 else chance.randrange(10) for t in drafted)
            figures = figures.with_cycle(judged(index, drafted, (*chosen, chance.randrange(10)), 0.02))
        assert figures.kept + figures.corrections + figures.bonuses + figures.plain == figures.emitted
        assert figures.kept <= figures.accepted <= figures.tested <= figures.drafted


def test_right_proposals_after_the_end_are_accepted_but_not_kept() -> None:
    figures = ReplyStatistics().with_cycle(judged(0, (1, END, 2, 3), (1, END, 2, 3, 4), 0.02))
    assert (figures.accepted, figures.kept, figures.emitted, figures.ignored) == (4, 2, 2, 3)
    assert figures.acceptance == 1.0


def test_speed_up_is_the_time_of_as_many_plain_steps_over_the_time_taken() -> None:
    figures = ReplyStatistics().with_cycle(judged(0, (1, 2), (1, 2, 3), 0.03))
    assert figures.speed_up is not None and abs(figures.speed_up - 3 * 0.03 / 0.04) < 1e-9
    assert figures.tokens_per_second is not None and abs(figures.tokens_per_second - 3 / 0.04) < 1e-9
    assert ReplyStatistics().with_cycle(judged(0, (1,), (1, 2), None)).speed_up is None


def test_nothing_measured_is_none_and_not_zero() -> None:
    empty = ReplyStatistics()
    assert (empty.acceptance, empty.tokens_per_cycle, empty.tokens_per_second, empty.speed_up) == (None,) * 4
    assert empty.with_cycle(judged(0, (), (5,), 0.02)).acceptance is None


def test_a_correction_counts_its_ghosts() -> None:
    record = judged(0, (1, 2, 3), (1, 7, 7, 7), 0.02)
    figures = ReplyStatistics().with_cycle(record)
    assert record.next_state is TokenState.CORRECTION and record.rejected_ids == (2, 3)
    assert (figures.kept, figures.corrections, figures.rejected, figures.tested) == (1, 1, 2, 2)


def test_a_taken_sibling_counts_as_drafted_tested_and_accepted() -> None:
    record = judged(0, (1, 2, 3), (1, 7, 7, 7), 0.02, (Branch(0, 5, 6), Branch(1, 7, 8)))
    assert record.taken == Sibling(1, 7, 0.3, True)
    assert (record.agreed, record.accepted, record.tested, record.drafted) == (1, 2, 3, 4)
    assert record.emitted_ids == (1, 7, 8)
    assert record.emitted_states == (TokenState.ACCEPTED, TokenState.ACCEPTED, TokenState.BONUS)
    assert record.rejected_ids == (2, 3), "the chain's tokens from its place on"
    figures = ReplyStatistics().with_cycle(record)
    assert (figures.accepted, figures.tested, figures.drafted, figures.kept) == (2, 3, 4, 2)
    assert (figures.siblings, figures.looked_up, figures.rejected, figures.bonuses) == (1, 1, 2, 1)
    assert figures.acceptance == 2 / 3


def test_a_reply_that_ends_at_or_before_a_sibling() -> None:
    at_it = judged(0, (1, 2), (1, END, 7), 0.02, (Branch(1, END, 8),))
    assert (at_it.emitted_ids, at_it.rejected_ids, at_it.next_id) == ((1, END), (2,), None)
    assert at_it.emitted_states == (TokenState.ACCEPTED, TokenState.ACCEPTED)
    before = judged(0, (END, 2), (END, 7, 7), 0.02, (Branch(1, 7, 8),))
    assert (before.emitted_ids, before.rejected_ids, before.ignored) == ((END,), (), 2)
    for record in (at_it, before):
        figures = ReplyStatistics().with_cycle(record)
        assert figures.kept <= figures.accepted <= figures.tested <= figures.drafted
        assert figures.kept + figures.corrections + figures.bonuses + figures.plain == figures.emitted


def test_siblings_that_were_not_taken_count_nothing() -> None:
    record = judged(0, (1, 2), (1, 7, 7), 0.02, (Branch(0, 5, 6), Branch(1, 4, 8)))
    assert record.taken is None and len(record.siblings) == 2
    assert (record.accepted, record.tested, record.drafted, record.next_state) == (1, 2, 2, TokenState.CORRECTION)


def test_costs_are_those_of_drafting_cycles_in_plain_steps() -> None:
    figures = ReplyStatistics()
    assert figures.draft_cost is None and figures.verify_cost is None
    figures = figures.with_cycle(judged(0, (), (1,), 0.016))
    assert figures.draft_cost is None and figures.verify_cost is None  # a plain step has neither
    figures = figures.with_cycle(judged(1, (1, 2), (1, 2, 3), 0.016))
    assert figures.draft_cost == pytest.approx(0.01 / 0.016) and figures.verify_cost == pytest.approx(0.02 / 0.016)
    figures = figures.with_cycle(judged(2, (1,), (2, 3), 0.024))
    assert figures.draft_cost == pytest.approx(0.01 / 0.02) and figures.verify_cost == pytest.approx(0.02 / 0.02)
    figures = figures.with_cycle(judged(3, (), (1,), 0.1))
    assert figures.verify_cost == pytest.approx(1.0)


def test_costs_wait_for_the_first_plain_step() -> None:
    figures = ReplyStatistics().with_cycle(judged(0, (1,), (1, 2), None))
    assert figures.draft_cost is None and figures.verify_cost is None
