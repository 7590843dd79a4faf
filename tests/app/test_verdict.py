"""The verdict: slower is said first, figures are the measured ones, one action at most, the card holds its sentence."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
from fake_engine import model_info
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.settings import AppSettings
from app.ui.verdict_card import VerdictCard
from app.verdict import LONGEST, Action, Situation, Streaming, Verdict, judge
from app.verdict_facts import explain
from app.words import fill, words
from engine.profile import Profile
from engine.records import CycleRecord
from engine.statistics import ReplyStatistics
from engine.what_if import best_length, what_if
from reply_builders import cycle

PLAIN = 0.045  # seconds of a plain step of the builders' cycles


def drafting(good: int, bad: int = 0, *, draft: float = 0.1, verify: float = 1.0, wait: float = 0.0) -> CycleRecord:
    """A cycle of `good` accepted drafts and `bad` others; times in plain steps, `draft` for each draft."""
    record = cycle(0, [" a"] * good, " b", [" x"] * bad).record
    return replace(
        record,
        draft_seconds=PLAIN * draft * (good + bad),
        verify_seconds=PLAIN * verify,
        wait_seconds=PLAIN * wait,
    )


def plain_step() -> CycleRecord:
    return replace(cycle(0, [], " b").record, verify_seconds=PLAIN, wait_seconds=0.0)


def sums(records: Sequence[CycleRecord]) -> ReplyStatistics:
    result = ReplyStatistics()
    for record in records:
        result = result.with_cycle(record)
    return result


def situation(records: Sequence[CycleRecord], **other: object) -> Situation:
    values = {"info": replace(model_info(), calibrated=True)} | other
    return Situation(sums(records), records, **values)  # type: ignore[arg-type]


def said(records: Sequence[CycleRecord], **other: object) -> str:
    return judge(situation(records, **other)).sentence.english


def test_nothing_is_said_before_there_is_a_reply() -> None:
    verdict = judge(Situation())
    assert verdict.sentence.english.startswith("No reply yet")
    assert verdict.action is None and verdict.facts == ()


def test_fast_and_calibrated_leaves_nothing_to_change() -> None:
    verdict = judge(situation([drafting(4)] * 20))
    assert verdict.sentence.english == (
        "3.6× plain: 100 % of drafts are right and each costs 0.10 of a plain step. Nothing to change."
    )
    assert verdict.action is None and not verdict.slower


def test_below_one_says_slower_than_plain_first_and_offers_plain_decoding_at_its_measured_speed() -> None:
    verdict = judge(situation([drafting(0, 4, draft=0.3)] * 20))
    text = verdict.sentence.english
    assert text.startswith("Slower than plain (0.5×): 0 % of drafts are right, ")
    assert text.endswith(f"Plain decoding: {1 / PLAIN:.1f} tok/s.")
    assert verdict.slower and verdict.action is not None
    assert verdict.action.changes == (("speculation", False),)


def test_just_below_one_never_reads_as_one() -> None:
    assert said([drafting(1, 1, draft=0.515)] * 20).startswith("Slower than plain (0.98×)")


def test_drafts_that_can_never_pay_are_called_so() -> None:
    assert "no draft pays here" in said([drafting(1, 1, draft=1.2)] * 20)


def test_a_fixed_length_that_loses_is_left_to_the_controller_where_another_wins() -> None:
    records = [drafting(1, 7, draft=0.25)] * 20
    verdict = judge(situation(records, settings=AppSettings(gamma_fixed=True, gamma=8)))
    best = 2 / 1.25 / PLAIN
    assert verdict.sentence.english.endswith(f"A fitting length: {best:.1f} tok/s.")
    assert verdict.action is not None and verdict.action.changes == (("gamma_fixed", False),)
    assert judge(situation(records)).action is not None, "automatic length: only plain decoding is left"
    assert judge(situation(records)).action.changes == (("speculation", False),)  # type: ignore[union-attr]


def test_a_shorter_fixed_length_is_proposed_with_the_gain_over_the_same_cycles() -> None:
    records = [drafting(2, 6)] * 20
    verdict = judge(situation(records, settings=AppSettings(gamma_fixed=True, gamma=8)))
    assert verdict.action is not None
    assert verdict.action.label.english == "Draft 2 at a time" and verdict.action.changes == (("gamma", 2),)
    assert f"about {3 / 1.2 / PLAIN:.1f} tok/s" in verdict.sentence.english
    settings = AppSettings(gamma_fixed=True, gamma=2)
    assert judge(situation([drafting(2)] * 20, settings=settings)).action is None


def test_waiting_for_streamed_parts_is_the_reason_where_it_is_long() -> None:
    text = said([drafting(4, wait=1.0)] * 20)
    assert text.startswith("2.1× plain; 42 % of each cycle waits for streamed parts")
    assert f"{5 / 1.4 / PLAIN:.1f} tok/s at most" in text


def test_more_budget_is_proposed_where_memory_is_free_and_the_wait_that_it_saves_is_the_gain() -> None:
    records = [drafting(4, wait=1.0)] * 20
    parts = (400_000_000,) * 5
    verdict = judge(situation(records, streaming=Streaming(6_000_000_000, parts, 2_500_000_000)))
    speed = 5 / (1.4 + 1.0 - 5 / 5) / PLAIN
    assert verdict.sentence.english == (
        f"2.1× plain; 42 % of each cycle waits for streamed parts. 8 GB keep 5 of 5: about {speed:.1f} tok/s."
    )
    assert verdict.action is not None
    assert verdict.action.label.english == "Raise the budget to 8 GB"
    assert verdict.action.changes == (("budget_gb", 8.0),)
    some = judge(situation(records, streaming=Streaming(4_200_000_000, parts, 1_000_000_000)))
    assert "5 GB keep 2 of 5" in some.sentence.english
    assert f"about {5 / (1.4 + 1.0 - 2 / 5) / PLAIN:.1f} tok/s" in some.sentence.english
    for budget, free in ((6_000_000_000, 100_000_000), (4_700_000_000, 900_000_000), (48_000_000_000, 10**12)):
        none = judge(situation(records, streaming=Streaming(budget, parts, free)))
        assert none.action is None and "at most" in none.sentence.english


def test_an_unmeasured_draft_is_to_be_measured_first() -> None:
    action = judge(situation([drafting(4)] * 20, info=model_info())).action
    assert action is not None and action.calibrate and action.changes == ()


def test_an_own_recipe_is_compared_with_what_the_models_own_reached() -> None:
    own = AppSettings(draft_own=True)
    verdict = judge(situation([drafting(4)] * 20, settings=own, earlier=4.9))
    assert "at 4.9×" in verdict.sentence.english
    assert verdict.action is not None and verdict.action.changes == (("draft_own", False),)
    assert judge(situation([drafting(4)] * 20, settings=own, earlier=3.6)).action is None


def test_plain_replies_tell_what_speculation_reached_before_only_if_it_was_measured() -> None:
    off = AppSettings(speculation=False)
    steps = [plain_step()] * 20
    assert "known after one reply" in said(steps, settings=off, speculated=False)
    verdict = judge(situation(steps, settings=off, speculated=False, earlier=2.4))
    assert "ran at 2.4×" in verdict.sentence.english
    assert verdict.action is not None and verdict.action.changes == (("speculation", True),)
    assert judge(situation(steps, speculated=False)).action is None, "it is on already for the next"


def test_where_drafting_pauses_there_is_nothing_to_change() -> None:
    verdict = judge(situation([plain_step()] * 20))
    assert verdict.sentence.english.startswith("As fast as plain") and verdict.action is None


def test_few_cycles_are_no_ground_for_a_reason() -> None:
    assert "after a few more cycles" in said([drafting(4)] * 7)


def test_the_last_cycles_count_not_the_beginning() -> None:
    old, new = [drafting(4)] * 100, [drafting(0, 4, draft=0.3)] * 10
    verdict = judge(Situation(sums(old + new), new, replace(model_info(), calibrated=True)))
    assert verdict.slower


def test_a_stored_reply_offers_no_change() -> None:
    verdict = judge(situation([drafting(0, 4, draft=0.3)] * 20, info=None))
    assert verdict.slower and verdict.action is None


@pytest.mark.parametrize("speed", [1.0, 12345.6])
def test_no_sentence_is_longer_than_the_card_has_room_for(speed: float) -> None:
    infos = [None, model_info(), replace(model_info(), calibrated=True)]
    settings = [
        AppSettings(speculation=on, gamma_fixed=fixed, gamma=8, draft_own=own)
        for on, fixed, own in itertools.product((False, True), repeat=3)
    ]
    kinds = [drafting(4), drafting(2, 6), drafting(0, 4, draft=0.3), drafting(1, 7, draft=0.25), plain_step()]
    kinds += [drafting(4, wait=2.0), drafting(1, 1, draft=1.2)]
    for kind, info, setting, speculated, earlier in itertools.product(
        kinds, infos, settings, (False, True), (None, 9.9)
    ):
        streaming = Streaming(23_900_000_000, (400_000_000,) * 60, 10**11)
        record = replace(
            kind,
            draft_seconds=kind.draft_seconds / speed,
            verify_seconds=kind.verify_seconds / speed,
            wait_seconds=kind.wait_seconds / speed,
            plain_seconds=PLAIN / speed,
        )
        text = said(
            [record] * 20, info=info, settings=setting, speculated=speculated, earlier=earlier, streaming=streaming
        )
        assert len(text) <= LONGEST and "{" not in text and "n/a" not in text, text


def test_what_if_counts_measured_cycles_and_nothing_longer() -> None:
    profile = Profile()
    for record in [drafting(2, 2), drafting(4), drafting(0, 4), drafting(1, 3)]:
        profile = profile.with_cycle(record)
    options = what_if(profile.positions, 0.1, 1.0)
    assert [option.gamma for option in options] == [1, 2, 3, 4]
    assert [option.tokens for option in options] == [1.75, 2.25, 2.5, 2.75]
    assert options[1].speed_up == pytest.approx(2.25 / 1.2)
    assert best_length(profile.positions, 0.1, 1.0) == options[3]
    costly = best_length(profile.positions, 0.5, 1.0)
    assert costly is not None and costly.gamma == 1
    assert best_length((), 0.1, 1.0) is None


def test_facts_without_a_measurement_have_no_value() -> None:
    facts = {fact.label: fact.value for fact in explain(sums([replace(plain_step(), plain_seconds=None)]))}
    assert facts["Speed"] is not None
    assert all(facts[name] is None for name in ("Plain decoding", "Speed-up S", "Acceptance", "Draft step c"))


def test_braces_in_values_mean_nothing() -> None:
    assert fill("{a} and {b}", (("a", "{b}"), ("b", "c"))) in ("{b} and c", "c and c")


# The card


@pytest.fixture
def card(qapp: QApplication, qtbot: QtBot) -> VerdictCard:
    theme.apply(qapp, "light")
    widget = VerdictCard()
    qtbot.addWidget(widget)
    widget.resize(344, 160)
    widget.show()
    return widget


def verdict(text: str, action: Action | None = None) -> Verdict:
    return Verdict(words(text), action, explain(sums([drafting(4)] * 20)))


def test_the_card_holds_a_sentence_and_then_shows_the_newest(card: VerdictCard) -> None:
    card.show_verdict(verdict("one"))
    card.show_verdict(verdict("two"))
    card.show_verdict(verdict("three"))
    assert card.sentence.text() == "one" and card.holding
    card._hold.stop()
    card._on_held()
    assert card.sentence.text() == "three" and card.holding
    assert card.accessibleDescription() == "three"


def test_that_there_is_no_reply_yet_gives_way_at_once(card: VerdictCard) -> None:
    card.show_verdict(judge(Situation()))
    assert card.sentence.text().startswith("No reply yet") and not card.holding
    card.show_verdict(verdict("one"))
    assert card.sentence.text() == "one" and card.holding


def test_the_button_names_its_result_and_acts_once(card: VerdictCard, qtbot: QtBot) -> None:
    action = Action(words("Draft {gamma} at a time", gamma="3"), (("gamma", 3),))
    card.show_verdict(verdict("one", action))
    assert card.button.isVisible() and card.button.text() == "Draft 3 at a time"
    with qtbot.waitSignal(card.applied) as blocker:
        card.button.click()
    assert blocker.args == [action]
    assert not card.button.isVisible()


def test_without_an_action_there_is_no_button(card: VerdictCard) -> None:
    card.show_verdict(verdict("Nothing to change."))
    assert not card.button.isVisible() and card.explain_button.isVisible()


def test_explain_lists_the_figures(card: VerdictCard) -> None:
    card.show_verdict(verdict("one"))
    card.explain_button.click()
    assert card.explanation.isVisible()
    lines = card.explanation.lines()
    assert lines[3] == "Acceptance 100 % accepted over tested drafts"
    assert lines[4] == "Draft step c 0.10 its time in plain steps"
    card.explanation.close()


def test_long_sentences_are_never_cut(card: VerdictCard) -> None:
    card.show_verdict(verdict("word " * 30))
    card.resize(344, card.heightForWidth(344))  # as the cockpit's column gives it
    QApplication.processEvents()
    label = card.sentence
    assert label.heightForWidth(label.width()) > 2 * label.fontMetrics().height()
    assert label.heightForWidth(label.width()) <= label.height()
