"""What is told of a token comes from its record, and where to look for the rest is exact."""

from __future__ import annotations

from dataclasses import replace

from app.token_facts import TokenFacts, token_facts
from app.widgets.token_spans import Span, SpanKind
from engine.records import CycleEvent, Opening
from reply_builders import cycle, sibling_cycle

OPENING = Opening((5, 6), (" given", " too"))
CYCLES = [
    cycle(0, [" one", " two"], " three"),
    cycle(1, [" four"], " five", [" wrong", " more"]),
    sibling_cycle(2, [" six"], " seven", " eight", [" no"]),
    cycle(3, [], " plain"),
]


def facts(kind: SpanKind, number: int, place: int = 0, opening: Opening = OPENING) -> TokenFacts:
    found = token_facts(Span(0, 0, 1, kind, " x", number, place), CYCLES, opening)
    assert found is not None
    return found


def test_an_accepted_token_has_both_probabilities_and_its_position() -> None:
    found = facts(SpanKind.ACCEPTED, 0, 1)
    assert (found.id, found.before, found.own) == (101, 3, 1)
    assert (found.position, found.drafted, found.draft_prob, found.full_prob) == (2, 2, 0.8, 0.7)


def test_a_correction_stands_at_the_wrong_guess_with_the_full_models_probability_only() -> None:
    found = facts(SpanKind.CORRECTION, 1, 1)
    assert (found.before, found.own, found.position) == (2 + 3 + 1, 1, 2)
    assert (found.draft_prob, found.full_prob) == (None, 0.61)


def test_a_rejected_guess_is_looked_at_where_it_would_have_stood() -> None:
    found = facts(SpanKind.GHOST, 1)
    record = CYCLES[1].record
    assert found.id == record.rejected_ids[0] == 101
    assert (found.before, found.own) == (6, 1)
    assert (found.draft_prob, found.full_prob) == (record.drafted_probs[1], record.full_probs[1])


def test_a_second_choice_has_its_own_figures_and_what_follows_it_was_not_read_by_the_draft() -> None:
    taken, bonus = facts(SpanKind.ACCEPTED, 2, 1), facts(SpanKind.BONUS, 2, 2)
    assert (taken.id, taken.draft_prob, taken.full_prob, taken.own) == (7, 0.21, 0.66, 1)
    assert (bonus.id, bonus.own, bonus.before) == (8, 0, taken.before + 1)


def test_a_bonus_follows_all_drafts() -> None:
    found = facts(SpanKind.BONUS, 0, 2)
    assert (found.before, found.own, found.position) == (4, 2, None)


def test_a_plain_token_has_no_draft() -> None:
    found = facts(SpanKind.PLAIN, 3)
    assert (found.before, found.own, found.drafted, found.draft_prob) == (2 + 3 + 2 + 3, 0, 0, None)


def test_given_tokens_have_an_id_and_no_cycle() -> None:
    found = facts(SpanKind.GIVEN, -1, 1)
    assert (found.id, found.before, found.cycle, found.seconds) == (6, 1, None, None)


def test_time_is_shared_alike_by_what_a_cycle_added() -> None:
    record = CYCLES[0].record
    assert facts(SpanKind.ACCEPTED, 0, 0).seconds == record.seconds / 3


def test_an_untested_guess_has_no_full_probability() -> None:
    event = CycleEvent(replace(CYCLES[1].record, full_probs=(0.8,)), CYCLES[1].pieces, CYCLES[1].ghosts)
    found = token_facts(Span(0, 0, 1, SpanKind.GHOST, " x", 0, 0), [event], Opening((), ()))
    assert found is not None and found.full_prob is None


def test_text_that_is_no_token_has_no_facts() -> None:
    assert token_facts(Span(0, 0, 1, SpanKind.TAIL, " x", -1, 0), CYCLES, OPENING) is None
