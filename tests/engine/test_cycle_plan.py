"""Decisions inside a cycle: when to draft on, when to check look-ups, when to try a tail or siblings."""

from __future__ import annotations

import pytest

from engine.speculation.cycle_plan import CyclePlan
from engine.speculation.drafter import Proposal
from engine.speculation.estimates import CostProfile
from engine.speculation.lookup import NOTHING, Found
from engine.speculation.measured import Measured
from speculation_rig import block

CARD = CostProfile(draft=0.3, verify_base=1.0, verify_slope=0.002, few_base=1.1, few_slope=0.01)
SURE, UNSURE = Proposal(1, 0.999, 2, 0.001), Proposal(1, 0.3, 2, 0.29)
LONG, SHORT = Found((1, 2, 3, 4, 5, 6), 12), Found((1, 2, 3, 4, 5, 6), 2)


def knowing(costs: CostProfile, acceptance: float = 0.95) -> Measured:
    """Estimates of a model that was seen to accept like this, at these costs."""
    measured = Measured(costs)
    measured.add_plain(1.0)
    for i in range(60):
        right = i % 20 >= round((1 - acceptance) * 20)
        measured.add_block(
            block([0.9] * 4, 4 if right else 0, 4 * costs.draft, costs.verify_base + 4 * costs.verify_slope)
        )
    return measured


def plan(
    measured: Measured, *proposals: Proposal, rate: float = 2.0, gamma: int = 9, allowance: float = 30.0
) -> CyclePlan:
    made = CyclePlan(measured, gamma, 15, rate, allowance)
    made.added(proposals, 0, NOTHING)
    return made


def test_a_sure_draft_goes_on_and_an_unsure_one_stops() -> None:
    assert plan(knowing(CARD), SURE).next_pass(1, NOTHING, 8) == 0
    assert plan(knowing(CARD), UNSURE, UNSURE).next_pass(2, NOTHING, 8) is None


def test_the_first_pass_is_always_made_and_gamma_ends_the_chain() -> None:
    assert CyclePlan(knowing(CARD, 0.05), 9, 15, 3.0).next_pass(0, NOTHING, 8) == 0
    assert plan(knowing(CARD), SURE, SURE, gamma=2).next_pass(2, NOTHING, 8) is None


def test_a_dear_draft_stops_where_a_cheap_one_goes_on() -> None:
    doubtful = Proposal(1, 0.75)
    assert plan(knowing(CostProfile(draft=0.1)), doubtful).next_pass(1, NOTHING, 1) == 0
    assert plan(knowing(CostProfile(draft=0.7)), doubtful).next_pass(1, NOTHING, 1) is None


def test_a_cycle_ends_where_it_may_waste_more_than_the_allowance_bears() -> None:
    doubtful = Proposal(1, 0.75)
    assert plan(knowing(CARD), doubtful, allowance=4.0).next_pass(1, NOTHING, 1) == 0
    assert plan(knowing(CARD), doubtful, allowance=0.1).next_pass(1, NOTHING, 1) is None


def test_lookups_are_checked_where_they_succeed_and_a_wide_pass_is_cheap() -> None:
    measured = knowing(CARD)
    assert plan(measured, SURE).next_pass(1, SHORT, 8) == 6
    assert plan(measured, SURE).next_pass(1, SHORT, 4) == 3, "no wider than a pass can be"
    assert plan(measured, SURE).next_pass(1, Found((1, 2), 2), 1) == 0, "where a pass takes one token only"
    dear = knowing(CostProfile(draft=0.3, few_base=4.0, few_slope=1.0))
    assert plan(dear, SURE).next_pass(1, SHORT, 8) == 0
    for _ in range(80):
        measured.saw_lookup(SHORT.length, 0, False)
    assert plan(measured, SURE).next_pass(1, SHORT, 8) == 0, "they failed too often"


def test_lookups_that_are_nearly_always_right_are_left_to_the_full_pass() -> None:
    made = plan(knowing(CARD), SURE)
    assert made.next_pass(1, LONG, 8) is None
    assert len(made.extras([SURE], LONG, 14, 0).tail) == 6
    rows_cost = knowing(CostProfile(draft=0.3, verify_slope=0.3))
    assert plan(rows_cost, SURE).next_pass(1, LONG, 8) is not None, "where its rows are not free, the draft checks them"


def test_a_match_may_go_beyond_gamma_but_not_beyond_the_widest_full_pass() -> None:
    measured = knowing(CARD)
    assert plan(measured, SURE, SURE, gamma=2).next_pass(2, SHORT, 8) == 6
    assert plan(measured, *[SURE] * 12, gamma=15).next_pass(12, SHORT, 8) in (1, 2)


def test_a_fixed_length_is_kept_whatever_the_draft_says() -> None:
    fixed = CyclePlan(knowing(CARD), 3, 3, 2.0, fixed=True)
    fixed.added([UNSURE, UNSURE], 0, NOTHING)
    assert fixed.next_pass(2, LONG, 8) == 0
    fixed.added([UNSURE], 0, NOTHING)
    assert fixed.next_pass(3, LONG, 8) is None
    assert fixed.extras([UNSURE] * 3, LONG, 12, 0).tail == ()


def test_what_the_draft_chose_teaches_how_good_lookups_are() -> None:
    measured = knowing(CARD)
    before = measured.lookup(2, 0), measured.lookup(2, 1)
    made = CyclePlan(measured, 9, 15, 2.0)
    made.added([Proposal(1, 0.9), Proposal(9, 0.9)], 2, SHORT)
    assert measured.lookup(2, 0) > before[0] and measured.lookup(2, 1) < before[1]
    first = measured.lookup(2, 0)
    made.added([Proposal(7, 0.9)], 0, SHORT)
    assert measured.lookup(2, 0) < first, "also where nothing was checked"


def test_siblings_stand_where_the_draft_is_unsure() -> None:
    chain = [SURE, UNSURE, SURE]
    extras = plan(knowing(CARD), *chain).extras(chain, NOTHING, 12, 14)
    assert [(s.place, s.id, s.prob) for s in extras.siblings] == [(1, 2, 0.29)]
    assert plan(knowing(CARD), *chain).extras(chain, NOTHING, 12, 0).siblings == ()
    assert plan(knowing(CARD), *chain).extras(chain, NOTHING, 0, 14).siblings == ()
    nameless = [Proposal(1, 0.3)]
    assert plan(knowing(CARD), *nameless).extras(nameless, NOTHING, 12, 14).siblings == ()
    dear = CostProfile(draft=0.3, verify_slope=0.3)
    assert plan(knowing(dear), *chain).extras(chain, NOTHING, 12, 14).siblings == ()


def test_the_likeliest_siblings_win_the_rows_and_stand_in_order() -> None:
    chain = [Proposal(1, 0.5, 2, 0.1), UNSURE, Proposal(1, 0.5, 2, 0.2)]
    both = plan(knowing(CARD), *chain).extras(chain, NOTHING, 2, 14).siblings
    assert len(both) == 2 and both[0].place < both[1].place
    (best,) = plan(knowing(CARD), *chain).extras(chain, NOTHING, 1, 14).siblings
    assert best in both


def test_seconds_that_are_never_right_are_tried_no_more() -> None:
    measured = knowing(CostProfile(draft=0.3, verify_slope=0.05))
    assert plan(measured, UNSURE).extras([UNSURE], NOTHING, 9, 9).siblings
    for _ in range(300):
        measured._second_by_share.at(0.49).add(False)
    assert not plan(measured, UNSURE).extras([UNSURE], NOTHING, 9, 9).siblings


def test_a_tail_is_tried_where_a_row_costs_less_than_it_brings() -> None:
    extras = plan(knowing(CARD), SURE).extras([SURE], LONG, 14, 0)
    assert [proposal.id for proposal in extras.tail] == list(LONG.ids)
    assert all(0 < proposal.prob < 1 for proposal in extras.tail)
    assert len(plan(knowing(CARD), SURE).extras([SURE], LONG, 3, 0).tail) == 3
    dear = CostProfile(draft=0.3, verify_slope=0.6)
    assert plan(knowing(dear), SURE).extras([SURE], LONG, 14, 0).tail == ()


def test_tail_and_siblings_share_the_rows_by_what_they_bring() -> None:
    chain = [UNSURE] * 3
    extras = plan(knowing(CARD), *chain).extras(chain, LONG, 4, 14)
    assert len(extras.tail) + len(extras.siblings) <= 4 and extras.siblings
    sure = [SURE] * 3
    assert len(plan(knowing(CARD), *sure).extras(sure, LONG, 4, 14).tail) == 4


@pytest.mark.parametrize("rows", [2, 5, 8])
def test_costs_of_wide_draft_passes_are_measured(rows: int) -> None:
    measured = Measured(CostProfile())
    measured.add_plain(1.0)
    for width in (1, rows, 3, 7) * 30:
        measured.add_block(block([0.9], 1, 0.3 if width == 1 else 0.3 * (1.2 + 0.05 * width), 1.02, width))
    assert measured.pass_cost(1) == pytest.approx(0.3)
    assert measured.pass_cost(rows) == pytest.approx(0.3 * (1.2 + 0.05 * rows), rel=0.03)
    again = Measured(measured.profile())
    assert again.pass_cost(rows) == pytest.approx(measured.pass_cost(rows))


def test_doubtful_look_ups_end_no_block_where_drafting_costs_next_to_nothing() -> None:
    found = Found((5, 6, 7, 8, 9), 4)
    for cost, goes_on in ((0.006, True), (0.6, False)):
        measured = Measured(CostProfile(cost, 1.0, 0.0005, 1.1, 0.01))
        for _ in range(60):
            measured.overall.add(True, 0.9)
            measured.overall.add(False, 0.1)
        plan = CyclePlan(measured, 15, 15, 4.0 if goes_on else 1.5)
        assert (plan.next_pass(0, found, 1) is not None) is goes_on, cost
