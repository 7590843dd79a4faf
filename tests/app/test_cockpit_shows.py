"""What the cockpit shows of replies and replays, bit by bit, and how it rests when unseen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cockpit_rig import settled
from fake_engine import FakeEngine, paris
from PySide6.QtCore import Qt
from window_bench import BenchMaker

from app.conversation import Reply
from app.settings import AppSettings
from app.settings_store import SettingsStore
from app.ui.reply_view import ReplyView
from engine.recipe import Recipe
from reply_builders import cycle, long_reply


def test_it_begins_with_axes_and_words_and_no_zeros(benches: BenchMaker) -> None:
    cockpit = settled(benches())
    assert cockpit.acceptance.over_time.empty_words == cockpit.speed.speed.empty_words == "no cycles yet"
    assert cockpit.acceptance.by_position.empty_words == "no drafts yet"
    heads = [cockpit.acceptance.head, cockpit.acceptance.second_head, cockpit.speed.head, cockpit.speed.second_head]
    assert [head.value.text() for head in heads] == [""] * 4


def test_a_reply_fills_the_plots_with_the_status_lines_figures(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.ask("One?")
    cockpit = settled(bench)
    status = bench.window.status
    assert f"{cockpit.acceptance.head.value.text()} acceptance" == status.acceptance.text() == "88 % acceptance"
    assert f"{cockpit.speed.second_head.value.text()} tok/s" == status.speed.text()
    assert f"{cockpit.speed.head.value.text()} tokens per cycle" == status.per_cycle.text()
    assert len(cockpit.acceptance.by_position._positions) == 6
    assert sum(cockpit.speed.tokens.shares) == pytest.approx(1.0)
    assert cockpit.speed.speed.level == pytest.approx(1 / 0.05)
    assert cockpit.acceptance.over_time.level is not None
    assert cockpit.layers.map.summary() == "CPU 30"


def test_a_reply_without_drafts_says_so(benches: BenchMaker) -> None:
    engine = FakeEngine()
    engine.recording.cycles.clear()
    for word in ("The", " capital"):
        engine.recording.cycle(plain=word)
    bench = benches(engine)
    bench.ready()
    bench.ask("One?")
    cockpit = settled(bench)
    assert cockpit.acceptance.head.value.text() == "n/a" and cockpit.acceptance.head.value.toolTip()
    assert cockpit.acceptance.over_time.empty_words == "nothing drafted yet"
    assert cockpit.speed.tokens.shares == (1.0,)


def test_it_follows_the_open_chat(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.ask("One?")
    cockpit = settled(bench)
    assert cockpit.figures.statistics.cycles == len(paris().cycles)
    bench.window.new_chat()
    assert settled(bench).figures.reply is None
    assert cockpit.acceptance.over_time.empty_words == "no cycles yet"
    first = bench.listed(0)
    bench.window.chat.open_chat(first)
    assert settled(bench).figures.statistics.cycles == len(paris().cycles)


def test_a_replay_is_followed_and_labelled(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.ask("One?")
    cockpit = settled(bench)
    assert not cockpit.replay_tag.isVisible()
    reply = bench.window.chat.chats.current.turns[0].reply
    assert reply is not None and bench.window.replays.start(reply.reply_id)
    replay = bench.window.replays.replay
    assert replay is not None
    replay.step(2)
    followed = cockpit.figures.reply
    assert followed is not None and followed is not reply and followed.statistics.cycles < len(paris().cycles)
    assert cockpit.replay_tag.isVisible()
    bench.window.replays.close()
    assert cockpit.figures.reply is reply and not cockpit.replay_tag.isVisible()


def test_a_long_old_reply_comes_bit_by_bit(benches: BenchMaker) -> None:
    bench = benches()
    cockpit = settled(bench)
    reply = Reply(5)
    for event in long_reply(20_000):
        reply.append(event)
    cockpit.follow(reply)
    cockpit.refresh()
    assert cockpit.figures.pending and cockpit.updating
    bench.qtbot.waitUntil(lambda: not cockpit.figures.pending, timeout=20_000)
    assert sum(settled(bench).figures.profile.tokens) == 4000


def test_the_last_state_is_always_drawn(benches: BenchMaker) -> None:
    bench = benches()
    cockpit = settled(bench)
    reply = Reply(5)
    for number in range(9):
        reply.append(cycle(number, [" a"], " b", [" g"]))
        cockpit.follow(reply)
        cockpit.refresh()
    settled(bench)
    assert cockpit.acceptance.by_position._positions == cockpit.figures.profile.positions
    assert cockpit.speed.tokens.shares == cockpit.figures.profile.token_shares


def test_hidden_it_does_nothing_and_catches_up_when_shown(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    cockpit = settled(bench)
    bench.window.toggle_cockpit()
    bench.ask("One?")
    assert not cockpit.updating and cockpit.figures.profile.tokens == ()
    bench.window.toggle_cockpit()
    assert settled(bench).figures.statistics.cycles == sum(cockpit.figures.profile.tokens) > 0


def test_a_folded_section_is_not_updated_and_is_remembered(benches: BenchMaker, tmp_path: Path) -> None:
    bench = benches()
    bench.ready()
    cockpit = settled(bench)
    assert cockpit.speed.open and not cockpit.use.open
    bench.qtbot.mouseClick(cockpit.speed.button, Qt.MouseButton.LeftButton)
    assert not cockpit.speed.open and not cockpit.speed.speed.isVisible()
    bench.ask("One?")
    settled(bench)
    assert cockpit.speed.tokens.shares == ()
    bench.window.close()
    kept = SettingsStore(tmp_path / "config").load().settings
    assert set(kept.cockpit_folded) == {"kv", "use", "bus", "history", "speed"}
    second = benches(settings=kept)
    assert not settled(second).speed.open


def test_unfolding_shows_what_it_missed(benches: BenchMaker) -> None:
    bench = benches(settings=AppSettings(cockpit_folded=("acceptance", "speed")))
    bench.ready()
    bench.ask("One?")
    cockpit = settled(bench)
    cockpit.speed.button.click()
    settled(bench)
    assert sum(cockpit.speed.tokens.shares) == pytest.approx(1.0)


def test_a_selected_cycle_shows_its_layers_until_another_reply_comes(benches: BenchMaker) -> None:
    engine = FakeEngine()
    skipping = replace(engine.recording.cycles[1].record, recipe=Recipe(skipped_mlp=(3,)))
    engine.recording.cycles[1] = replace(engine.recording.cycles[1], record=skipping)
    bench = benches(engine)
    bench.ready()
    bench.ask("One?")
    cockpit = settled(bench)
    assert cockpit.layers.map.summary() == "CPU 30"
    reply = bench.view.turns()[-1]
    assert isinstance(reply, ReplyView)
    reply.timeline.cycle_selected.emit(1)
    assert cockpit.layers.map.summary() == "CPU 30, skipped 1"
    assert cockpit.layers.head.detail.text() == "draft density, cycle 2"
    bench.ask("Two?")
    assert settled(bench).layers.map.summary() == "CPU 30"
    assert cockpit.layers.head.detail.text() == "draft density, last 4 cycles"
