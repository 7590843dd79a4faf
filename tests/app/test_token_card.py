"""The token card in the window: what the record has at once, the rest from the engine, regenerate from here."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_engine import FakeEngine, paris, rivals
from PySide6.QtCore import QEvent, QPoint, QRect, Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from window_bench import Bench, BenchMaker

from app.states import HostState
from app.theme import active
from app.ui.reply_view import ReplyView
from app.ui.token_card import TokenCard
from app.widgets.token_spans import SpanKind
from engine.errors import PromptTooLong
from engine.records import CycleEvent, Opening

ALT = Qt.KeyboardModifier.AltModifier


def last(bench: Bench) -> ReplyView:
    view = bench.view.turns()[-1]
    assert isinstance(view, ReplyView)
    return view


def asked(benches: BenchMaker, engine: FakeEngine | None = None) -> Bench:
    bench = benches(engine)
    bench.ready()
    bench.ask("Capital of France?")
    return bench


def hover(bench: Bench, text: str) -> TokenCard:
    view = last(bench)
    spans = view.text.spans
    index = next(i for i in range(len(spans)) if spans.texts[i] == text)
    view.pointer.hovered.emit(spans.span(index))
    return bench.window.cards.card


def answered(bench: Bench) -> TokenCard:
    card = bench.window.cards.card
    bench.qtbot.waitUntil(lambda: bool(card.candidates), timeout=5000)
    return card


def test_the_card_tells_piece_id_cycle_position_probabilities_and_time(benches: BenchMaker) -> None:
    bench = asked(benches)
    card = hover(bench, " France")
    assert card.isVisible()
    assert (card.piece.text(), card.state.word, card.id_label.text()) == ("·France", "accepted", "id 103")
    assert "cycle 2, draft position 3 of 4" in card.sentence.text()
    assert "draft gave it 0.90, the full model 0.95" in card.sentence.text()
    cycle_ms = paris().cycles[1].record.seconds * 1000
    assert f"{cycle_ms / 4:.1f} ms, its share of a cycle of {cycle_ms:.1f} ms." in card.ranks.text()
    assert "Looking at rivals" in card.ranks.text()


def test_rivals_ranks_and_the_chance_of_agreement_come_from_the_engine(benches: BenchMaker) -> None:
    bench = asked(benches)
    hover(bench, " France")
    card = answered(bench)
    request, token, drafted = bench.engine.looks[-1]
    assert token == 103 and drafted == 2
    assert request.reply_prefix_ids == (100, 101, 102)
    assert replace(request, reply_prefix_ids=()) == bench.engine.requests[-1], "the prompt and sampling of the reply"
    found = rivals(103)
    assert card.candidates == (*found.full, found.draft[-1]), "the best of both, each once"
    assert "Rank 1 for the full model, 2 for the draft." in card.ranks.text()
    assert "Chance that the draft agrees here: 46 %." in card.ranks.text()
    assert "recipe" not in card.ranks.text()
    assert card.rows[1].accessibleName().startswith("·calculation: draft 0.52, full model 0.17")


def test_asking_twice_looks_once(benches: BenchMaker) -> None:
    bench = asked(benches)
    hover(bench, " France")
    answered(bench)
    hover(bench, " of")
    bench.qtbot.waitUntil(lambda: len(bench.engine.looks) == 2)
    card = hover(bench, " France")
    assert card.candidates and len(bench.engine.looks) == 2


def test_bars_are_as_long_as_their_probabilities(benches: BenchMaker) -> None:
    bench = asked(benches)
    hover(bench, " France")
    card = answered(bench)
    image = card.rows[1].grab().toImage()
    draft, full = active().draft.lower(), active().verify.lower()
    row = [[image.pixelColor(x, y).name() for x in range(image.width())] for y in range(image.height())]
    lengths = {name: max(line.count(name) for line in row) for name in (draft, full)}
    assert lengths[draft] / lengths[full] == pytest.approx(0.52 / 0.17, rel=0.15)


def test_during_a_reply_the_card_has_the_record_and_the_rest_follows(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(hold_reply=True))
    bench.ready()
    bench.type_and_send("Capital of France?")
    bench.held()
    bench.qtbot.waitUntil(lambda: len(last(bench).text.cycles) == 2)
    card = hover(bench, " France")
    assert "computed when the engine is free" in card.ranks.text() and card.candidates == ()
    assert "draft gave it 0.90" in card.sentence.text()
    assert bench.engine.looks == []
    bench.engine.go.set()
    answered(bench)
    assert len(bench.engine.looks) == 1


def test_a_message_sent_during_a_look_goes_off_at_once(benches: BenchMaker) -> None:
    bench = asked(benches, FakeEngine(hold_look=True))
    hover(bench, " France")
    bench.held()
    bench.ask("And of Spain?")
    assert len(bench.engine.requests) == 2
    assert bench.window.cards.card.candidates == ()


def test_a_look_that_fails_says_why_in_the_card_only(benches: BenchMaker) -> None:
    bench = asked(benches, FakeEngine(look_error=PromptTooLong("The prompt has 9000 tokens.")))
    card = hover(bench, " France")
    bench.qtbot.waitUntil(lambda: "9000 tokens" in card.ranks.text())
    assert bench.banner == ""


def test_a_rejected_guess_can_be_had_instead(benches: BenchMaker) -> None:
    bench = asked(benches)
    card = hover(bench, " was")
    assert card.state.word == "rejected" and card.again_button.text() == "Regenerate with “was”"
    card.again_button.click()
    assert not card.isVisible()
    bench.reach(HostState.READY)
    request = bench.engine.requests[-1]
    guess = paris().cycles[1].record.rejected_ids[0]
    assert request.reply_prefix_ids == (100, 101, 102, 103, guess)
    assert replace(request, reply_prefix_ids=()) == bench.engine.requests[0], "same prompt, settings, conversation"
    assert len(bench.said) == 2, "in place of the reply it came from"


def test_a_rival_is_a_button_that_regenerates_with_it(benches: BenchMaker) -> None:
    bench = asked(benches)
    hover(bench, " is")
    card = answered(bench)
    card.rows[2].click()
    bench.reach(HostState.READY)
    assert bench.engine.requests[-1].reply_prefix_ids == (100, 101, 102, 103, 502)


def test_from_an_earlier_reply_the_chat_branches(benches: BenchMaker) -> None:
    bench = asked(benches)
    bench.ask("And of Spain?")
    first = bench.view.turns()[1]
    assert isinstance(first, ReplyView)
    first.pointer.hovered.emit(first.text.spans.span(1))
    bench.window.cards.card.again_button.click()
    bench.reach(HostState.READY)
    assert len(bench.said) == 2 and bench.view.turns()[-1].pager.place() == "2/2"
    bench.view.turns()[-1].pager.earlier.click()
    assert len(bench.said) == 4, "nothing is lost"


def test_a_stored_reply_shows_its_record_and_says_what_is_missing(benches: BenchMaker) -> None:
    bench = asked(benches)
    bench.window.show_demo()
    view = last(bench)
    bench.qtbot.waitUntil(lambda: len(view.text.cycles) > 0, timeout=5000)
    view.pointer.hovered.emit(view.text.spans.span(0))
    card = bench.window.cards.card
    assert card.isVisible() and "stored reply" in card.ranks.text()
    assert not card.again_button.isVisible() and bench.engine.looks == []


def test_another_model_has_no_say_in_it(benches: BenchMaker) -> None:
    bench = asked(benches)
    bench.window.models.load("/models/other")
    bench.reach(HostState.READY)
    card = hover(bench, " France")
    assert "need the model that wrote this reply" in card.ranks.text()
    assert not card.again_button.isVisible() and bench.engine.looks == []


def test_the_keyboard_opens_walks_and_closes(benches: BenchMaker) -> None:
    bench = asked(benches)
    view = last(bench)
    view.text.setFocus()
    bench.qtbot.keyClick(view.text, Qt.Key.Key_Left, ALT)
    assert not bench.window.cards.shown, "moving alone opens nothing"
    bench.qtbot.keyClick(view.text, Qt.Key.Key_Return)
    card = bench.window.cards.card
    assert card.isVisible() and card.piece.text() == "."
    focus = bench.window.focusWidget()
    assert focus is not None and card.isAncestorOf(focus)
    bench.qtbot.keyClick(focus, Qt.Key.Key_Left, ALT)
    assert card.piece.text() == "·history"
    assert view.timeline._selected == view.text.selected_cycle == 4
    bench.window.escape_action.trigger()
    assert not card.isVisible() and bench.window.focusWidget() is view.text
    assert view.text.current is not None
    bench.window.escape_action.trigger()
    assert view.text.current is None and view.text.accessibleDescription() == view.counts.summary()


def test_one_reply_has_the_ring(benches: BenchMaker) -> None:
    bench = asked(benches)
    bench.ask("And of Spain?")
    first, second = bench.view.turns()[1], last(bench)
    assert isinstance(first, ReplyView)
    for view in (first, second):
        bench.qtbot.keyClick(view.text, Qt.Key.Key_Left, ALT)
    assert first.text.current is None and second.text.current is not None


def test_escape_stops_a_reply_before_it_closes_the_card(benches: BenchMaker) -> None:
    bench = benches(FakeEngine(hold_reply=True))
    bench.ready()
    bench.type_and_send("Capital of France?")
    bench.held()
    bench.qtbot.waitUntil(lambda: len(last(bench).text.cycles) == 2)
    card = hover(bench, " France")
    bench.window.escape_action.trigger()
    assert card.isVisible()
    bench.reach(HostState.READY)
    bench.window.escape_action.trigger()
    assert not card.isVisible()


def test_leaving_the_token_closes_the_card_unless_the_mouse_is_on_it(benches: BenchMaker, qtbot: QtBot) -> None:
    bench = asked(benches)
    card = hover(bench, " France")
    last(bench).pointer.left.emit()
    qtbot.waitUntil(lambda: not card.isVisible(), timeout=3000)
    hover(bench, " France")
    card.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, True)
    last(bench).pointer.left.emit()
    qtbot.waitUntil(lambda: not bench.window.cards._linger.isActive(), timeout=3000)
    assert card.isVisible()
    card.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, False)
    QApplication.sendEvent(card, QEvent(QEvent.Type.Leave))
    qtbot.waitUntil(lambda: not card.isVisible(), timeout=3000)


def test_the_card_goes_with_its_reply(benches: BenchMaker) -> None:
    bench = asked(benches)
    card = hover(bench, " France")
    bench.window.new_chat()
    bench.qtbot.waitUntil(lambda: not card.isVisible())
    assert not bench.window.cards.shown


def test_the_cockpit_shows_the_layers_of_the_token_pointed_at(benches: BenchMaker) -> None:
    bench = asked(benches)
    bench.qtbot.waitUntil(lambda: bench.window.cockpit.cockpit is not None, timeout=5000)
    cockpit = bench.window.cockpit.cockpit
    assert cockpit is not None
    view = last(bench)
    hover(bench, " France")
    assert cockpit.layers.head.detail.text() == "draft density, cycle 2"
    bench.window.cards.close()
    assert "last" in cockpit.layers.head.detail.text()
    view.text.cycle_clicked.emit(3)
    hover(bench, " France")
    bench.window.cards.close()
    assert cockpit.layers.head.detail.text() == "draft density, cycle 4", "back to the cycle that is selected"


def test_a_given_token_is_told_as_given(benches: BenchMaker) -> None:
    bench = asked(benches)
    view = last(bench)
    view.restart()
    view.append_many([Opening((9, 8), ("Well", " then")), *(e for e in paris().events() if isinstance(e, CycleEvent))])
    assert view.text.spans.kinds[1] is SpanKind.GIVEN
    card = hover(bench, " then")
    assert (card.state.word, card.id_label.text()) == ("given", "id 8")
    assert "kept or chosen" in card.sentence.text()


def test_the_card_stands_above_its_line_else_below_and_never_over_the_live_line(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(900, 900)
    card = TokenCard(window)
    room = QRect(0, 48, 900, 800)
    line = QRect(400, 600, 60, 20)
    card.place(line, room, QRect())
    assert card.geometry().bottom() < line.top() and card.width() == 348
    assert abs(card.geometry().center().x() - line.center().x()) <= 1
    high = QRect(10, 60, 60, 20)
    card.place(high, room, QRect())
    assert card.geometry().top() > high.bottom() and card.geometry().left() >= room.left()
    live = QRect(0, 120, 900, 20)
    card.place(high, room, live)
    assert not card.geometry().intersects(live)
    window.resize(900, card.height() + 120)
    short = QRect(400, 100, 60, 20)
    card.place(short, QRect(0, 48, 900, card.height() + 60), QRect())
    assert window.rect().contains(card.geometry()) and not card.geometry().intersects(short), "beside the token"
    window.resize(900, 900)
    card.place(QRect(280, 600, 20, 20), QRect(0, 48, 320, 800), QRect())
    assert card.geometry().right() < 320 and card.geometry().left() >= 0


def test_the_card_follows_its_token_when_the_conversation_scrolls(benches: BenchMaker) -> None:
    bench = asked(benches)
    for question in ("One?", "Two?", "Three?", "Four?", "Five?", "Six?"):
        bench.ask(question)
    card = hover(bench, " France")
    bar = bench.view._area.verticalScrollBar()
    assert bar.maximum() > 100
    before, value = card.pos(), bar.value()
    line = last(bench).text.mapTo(bench.window, QPoint())
    bar.setValue(value - 40)
    moved = last(bench).text.mapTo(bench.window, QPoint()) - line
    assert moved.y() == 40 and card.pos() - before == moved
    bar.setValue(0)
    assert not card.isVisible(), "the token is out of sight"
