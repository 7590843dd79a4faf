"""A-B: the same prompt plainly and with speculation, compared as it comes; the outcome stays with the chat."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest
from fake_engine import FakeEngine, Recording, paris, text_of
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from window_bench import Bench, BenchMaker

from app.recorded import recording_of
from app.states import HostState
from app.ui.compare_pane import ComparePane
from app.ui.reply_view import ReplyView
from engine.comparison import Comparison
from engine.errors import PromptTooLong
from engine.records import Event
from engine.settings import GenerateRequest
from engine.statistics import ReplyStatistics
from reply_builders import cycle, finished, long_reply

ANSWER = text_of(paris().events())


def by_plain_decoding(words: str = ANSWER, seconds: float = 0.05) -> Recording:
    """The same words and ids as Paris, a token a step."""
    recording = Recording(verify_seconds=seconds)
    ids = [token for event in paris().cycles for token in event.record.emitted_ids]
    pieces = [piece for event in paris().cycles for piece in event.pieces]
    for piece, token in zip(pieces, ids, strict=True):
        recording.cycle(plain=piece)
        event = recording.cycles[-1]
        recording.cycles[-1] = replace(event, record=replace(event.record, next_id=token, emitted_ids=(token,)))
    assert text_of(recording.events()) == words
    return recording


@dataclass(slots=True)
class TwoWays(FakeEngine):
    """Answers plain requests by one recording and the others by another, and can be held in either."""

    plain: Recording = field(default_factory=by_plain_decoding)
    hold_plain: bool = False
    hold_fast: bool = False
    refuse_fast: bool = False

    def generate(self, request: GenerateRequest) -> Iterator[Event]:
        fast = request.speculation.enabled
        self.recording = paris() if fast else self.plain
        self.hold_reply = self.hold_fast if fast else self.hold_plain
        if fast and self.refuse_fast:
            self.requests.append(request)
            raise PromptTooLong("The prompt has 9000 tokens, but the context holds 8192.")
        yield from FakeEngine.generate(self, request)


def asked(benches: BenchMaker, engine: FakeEngine) -> Bench:
    bench = benches(engine)
    bench.ready()
    bench.ask("What is the capital of France?")
    return bench


def compare(bench: Bench) -> ComparePane:
    """Choose it in the reply's menu."""
    view = next(turn for turn in bench.view.turns() if isinstance(turn, ReplyView))
    words = "Compare with plain decoding…"
    next(action for action in view._menu.actions() if action.text() == words).trigger()
    return bench.window.comparisons.pane


def ended(bench: Bench, pane: ComparePane) -> None:
    bench.qtbot.waitUntil(lambda: not pane.run.running, timeout=10_000)


def replayed(bench: Bench, pane: ComparePane) -> None:
    bench.qtbot.waitUntil(lambda: pane.replay is not None and not pane.replay.playing, timeout=10_000)


def kept(bench: Bench) -> Comparison | None:
    return bench.window.chat.chats.current.turns[0].comparison


def figures(bench: Bench) -> str:
    return next(turn for turn in bench.view.turns() if isinstance(turn, ReplyView))._figures.text()


def test_both_replies_are_compared_and_the_outcome_is_kept(benches: BenchMaker) -> None:
    engine = TwoWays()
    bench = asked(benches, engine)
    pane = compare(bench)
    assert pane.isVisible()
    ended(bench, pane)
    sums = ReplyStatistics()
    for event in paris().cycles:
        sums = sums.with_cycle(event.record)
    outcome = kept(bench)
    assert outcome is not None and outcome.identical
    assert outcome.compared == outcome.plain_tokens == outcome.speculative_tokens == sums.emitted
    assert outcome.speculative_seconds == pytest.approx(sums.seconds)
    assert outcome.plain_seconds == pytest.approx(0.05 * sums.emitted)
    factor = f"{outcome.plain_seconds / outcome.speculative_seconds:.1f}"
    assert pane.outcome.text() == f"Identical: {sums.emitted} tokens, {factor}× as fast as plain."
    assert figures(bench).endswith(f"compared with plain: identical, {factor}× as fast")
    replayed(bench, pane)
    assert pane.plain.text.source_text() == pane.fast.text.source_text() == ANSWER
    assert pane.plain.clock.text() == f"{outcome.plain_seconds:.1f} s"
    assert pane.fast.clock.text() == f"{outcome.speculative_seconds:.1f} s"
    pane.reject()


def test_the_engine_is_asked_the_same_twice_in_a_conversation_of_its_own(benches: BenchMaker) -> None:
    engine = TwoWays()
    bench = asked(benches, engine)
    pane = compare(bench)
    ended(bench, pane)
    first, plain, fast = engine.requests
    assert (plain.speculation.enabled, fast.speculation.enabled) == (False, True)
    assert plain.messages == fast.messages == first.messages
    assert plain.sampling == fast.sampling == replace(first.sampling, seed=0)  # the seed that the reply drew by
    assert plain.max_new_tokens == fast.max_new_tokens == first.max_new_tokens
    assert plain.conversation == fast.conversation != first.conversation
    assert bench.said == ["What is the capital of France?", ANSWER]  # the chat is untouched
    pane.reject()


def test_the_plain_reply_is_replayed_while_the_second_is_made(benches: BenchMaker) -> None:
    engine = TwoWays(plain=by_plain_decoding(seconds=5.0))
    bench = asked(benches, engine)
    engine.hold_fast = True
    pane = compare(bench)
    bench.qtbot.waitUntil(lambda: pane.fast.tokens > 0, timeout=10_000)
    assert pane.replay is not None and pane.replay.playing
    assert pane.plain.title.text() == "Plain decoding, replayed" and pane.plain.tokens < 3
    assert "Identical so far: 5 tokens" in pane.progress.text()
    bench.qtbot.waitUntil(lambda: pane.plain.clock.text() not in ("0.0 s", ""), timeout=5000)
    assert abs(float(pane.plain.clock.text()[:-2]) - float(pane.fast.clock.text()[:-2])) < 0.35
    engine.go.set()
    ended(bench, pane)
    assert pane.outcome.text().startswith("Identical: ")
    pane.reject()
    assert not pane.replay.playing


def other_word(recording: Recording, place: int) -> Recording:
    event = recording.cycles[place]
    changed = replace(event, record=replace(event.record, next_id=1, emitted_ids=(1,)), pieces=(" else",))
    recording.cycles[place] = changed
    return recording


def test_a_difference_is_marked_in_both_and_kept(benches: BenchMaker) -> None:
    bench = asked(benches, TwoWays(plain=other_word(by_plain_decoding(), 7)))
    pane = compare(bench)
    ended(bench, pane)
    outcome = kept(bench)
    assert outcome is not None and (outcome.difference, outcome.compared) == (7, 7) and not outcome.identical
    assert pane.outcome.text().startswith("Different from token 8 on.")
    assert pane.plain.text._selected_cycle == 7 and pane.fast.text._selected_cycle == 2
    assert figures(bench).endswith("compared with plain: different from token 8")
    pane.reject()


def test_a_reply_that_ends_earlier_is_different(benches: BenchMaker) -> None:
    short = by_plain_decoding()
    del short.cycles[-3:]
    bench = asked(benches, TwoWays(plain=short))
    pane = compare(bench)
    ended(bench, pane)
    outcome = kept(bench)
    assert outcome is not None and outcome.difference == outcome.plain_tokens == outcome.speculative_tokens - 3
    pane.reject()


def test_slower_is_said_as_plainly(benches: BenchMaker) -> None:
    bench = asked(benches, TwoWays(plain=by_plain_decoding(seconds=0.001)))
    pane = compare(bench)
    ended(bench, pane)
    assert pane.outcome.text().startswith("Slower than plain: 0.1× as fast. Identical: ")
    pane.reject()


def test_stopping_the_first_run_keeps_nothing(benches: BenchMaker) -> None:
    engine = TwoWays()
    bench = asked(benches, engine)
    engine.hold_plain = True
    pane = compare(bench)
    bench.held()
    bench.qtbot.mouseClick(pane.stop_button, Qt.MouseButton.LeftButton)
    ended(bench, pane)
    assert kept(bench) is None and pane.outcome.text() == "Stopped before anything could be compared."
    assert len(engine.requests) == 2
    pane.reject()


def test_stopping_the_second_run_keeps_what_was_equal(benches: BenchMaker) -> None:
    engine = TwoWays()
    bench = asked(benches, engine)
    engine.hold_fast = True
    pane = compare(bench)
    bench.qtbot.waitUntil(lambda: pane.fast.tokens == 5, timeout=10_000)
    pane.run.stop()
    ended(bench, pane)
    outcome = kept(bench)
    assert outcome is not None and outcome.stopped and not outcome.identical and outcome.compared == 5
    assert pane.outcome.text() == "Stopped. Identical so far: 5 tokens."
    assert figures(bench).endswith("compared with plain: identical so far, 5 tokens")
    engine.hold_fast = False
    bench.qtbot.mouseClick(pane.again_button, Qt.MouseButton.LeftButton)
    ended(bench, pane)
    assert pane.outcome.text().startswith("Identical: ")
    pane.reject()


def test_closing_the_pane_stops_the_run(benches: BenchMaker) -> None:
    engine = TwoWays()
    bench = asked(benches, engine)
    engine.hold_fast = True
    pane = compare(bench)
    bench.qtbot.waitUntil(lambda: pane.fast.tokens == 5, timeout=10_000)
    pane.close()
    bench.reach(HostState.READY)
    assert not pane.run.running and not pane.isVisible()


def test_a_refused_second_run_is_told(benches: BenchMaker) -> None:
    engine = TwoWays()
    bench = asked(benches, engine)
    engine.refuse_fast = True
    pane = compare(bench)
    ended(bench, pane)
    assert pane.outcome.text() == "The prompt has 9000 tokens, but the context holds 8192." and kept(bench) is None
    pane.reject()


def test_a_fault_of_the_engine_ends_it_with_a_sentence(benches: BenchMaker) -> None:
    engine = TwoWays()
    bench = asked(benches, engine)
    engine.reply_error = ZeroDivisionError("division by zero")
    pane = compare(bench)
    ended(bench, pane)
    assert pane.outcome.text() == "Unexpected fault in the engine: division by zero." and kept(bench) is None
    bench.reach(HostState.FAILED)
    pane.reject()


def test_another_model_in_between_interrupts_it(benches: BenchMaker) -> None:
    engine = TwoWays()
    bench = asked(benches, engine)
    engine.hold_plain = True
    pane = compare(bench)
    bench.held()
    bench.window.models.load("starter")
    ended(bench, pane)
    assert kept(bench) is None and pane.outcome.text() in (
        "The comparison was interrupted.",
        "Stopped before anything could be compared.",
    )
    bench.reach(HostState.READY)
    pane.reject()


def test_without_a_model_or_while_it_writes_the_reason_is_told(benches: BenchMaker) -> None:
    engine = TwoWays()
    bench = asked(benches, engine)
    engine.hold_fast = True
    bench.type_and_send("And of Spain?")
    bench.held()
    assert not compare(bench).isVisible()
    assert bench.banner == "A comparison can start when the engine is free."
    engine.go.set()
    bench.reach(HostState.READY)
    bench.window.models.unload()
    bench.reach(HostState.NO_MODEL)
    compare(bench)
    assert bench.banner.startswith("No model is loaded.") and not bench.window.comparisons.pane.isVisible()


def test_the_outcome_goes_with_the_reply_and_ends_with_it(benches: BenchMaker) -> None:
    engine = TwoWays()
    bench = asked(benches, engine)
    pane = compare(bench)
    ended(bench, pane)
    pane.reject()
    turn = bench.window.chat.chats.current.turns[0]
    assert recording_of(turn).comparison == kept(bench) is not None
    bench.window.new_action.trigger()
    bench.window.chat.open_chat(bench.listed(0))
    assert "compared with plain: identical" in figures(bench)
    next(turn for turn in bench.view.turns() if isinstance(turn, ReplyView)).regenerate_button.click()
    bench.reach(HostState.READY)
    assert kept(bench) is None and "compared" not in figures(bench)


def test_twenty_thousand_tokens_and_a_line_without_a_space_keep_the_sides_as_they_are(benches: BenchMaker) -> None:
    bench = asked(benches, TwoWays())
    pane = ComparePane(bench.host, bench.window)
    pane.show()
    widths = pane.plain.width(), pane.fast.width(), pane.width()
    longest = 0.0
    events: list[Event] = [cycle(0, ["w" * 20_000], " and"), *long_reply(20_000), finished()]
    for start in range(0, len(events), 60):  # what comes at 300 tokens a second in a second
        began = time.thread_time()  # other programs may have the processor
        pane.fast.append_many(events[start : start + 60])
        QApplication.processEvents()
        longest = max(longest, time.thread_time() - began)
    assert (pane.plain.width(), pane.fast.width(), pane.width()) == widths
    assert pane.fast.tokens == 20_002 and longest < 0.3
    bar = pane.fast._area.verticalScrollBar()
    assert bar.value() == bar.maximum() > 10_000
    pane.close()


def in_the_first(bench: Bench, engine: TwoWays) -> None:
    engine.hold_plain = True
    compare(bench)
    bench.held()


def in_the_second(bench: Bench, engine: TwoWays) -> None:
    engine.hold_fast = True
    pane = compare(bench)
    bench.qtbot.waitUntil(lambda: pane.fast.tokens == 5, timeout=10_000)


def in_the_replay(bench: Bench, engine: TwoWays) -> None:
    engine.plain = by_plain_decoding(seconds=5.0)
    pane = compare(bench)
    ended(bench, pane)
    assert pane.replay is not None and pane.replay.playing


@pytest.mark.parametrize("state", [in_the_first, in_the_second, in_the_replay])
def test_the_window_closes_in_each_state(benches: BenchMaker, state: Callable[[Bench, TwoWays], None]) -> None:
    engine = TwoWays()
    bench = asked(benches, engine)
    state(bench, engine)
    bench.window.close()
    assert bench.host.state is HostState.CLOSED and not bench.window.comparisons.pane.isVisible()
    assert bench.window.comparisons.pane.replay is None
