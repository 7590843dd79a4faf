"""The cockpit in the window: shown, hidden, as a drawer; fed by replies, replays and readings; at rest when unseen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fake_engine import FakeEngine, kv_memory, paris
from PySide6.QtCore import Qt
from PySide6.QtGui import QWindowStateChangeEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel
from window_bench import Bench, BenchMaker

from app import cockpit_controller, monitor, theme
from app.conversation import Reply
from app.settings import AppSettings
from app.settings_store import SettingsStore
from app.ui.cockpit import Cockpit
from app.ui.cockpit_place import WIDEST, WIDTH
from app.ui.reply_view import ReplyView
from app.verdict import CALIBRATE
from engine.probes.nvml import NvmlProbe
from engine.recipe import Recipe
from engine.records import LoadProgress, ModelInfo
from nvml_stub import CARD, NvmlStub
from plan_builder import offload
from reply_builders import cycle, long_reply

OPEN = AppSettings(cockpit_folded=())


def cockpit_of(bench: Bench) -> Cockpit:
    bench.qtbot.waitUntil(lambda: bench.window.cockpit.cockpit is not None, timeout=5000)
    found = bench.window.cockpit.cockpit
    assert found is not None
    return found


def settled(bench: Bench) -> Cockpit:
    cockpit = cockpit_of(bench)
    bench.qtbot.waitUntil(lambda: not cockpit.updating, timeout=5000)
    return cockpit


@dataclass
class CardEngine(FakeEngine):
    """Its models are on a card."""

    def load(
        self,
        model: str,
        *,
        context: int | None = None,
        virtual_memory: bool = True,
        progress: Callable[[LoadProgress], None] = lambda _: None,
        **options: object,
    ) -> ModelInfo:
        info = super().load(model, context=context, virtual_memory=virtual_memory, progress=progress, **options)
        self.info = replace(info, card=CARD)
        return self.info


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> NvmlStub:
    """A card that answers, read a hundred times a second; the monitor rests 50 ms after the last event."""
    stub = NvmlStub()
    monkeypatch.setattr(monitor, "make_card_probe", lambda: NvmlProbe(stub))
    monkeypatch.setitem(monitor.Monitor.__init__.__kwdefaults__, "card_probe", lambda: NvmlProbe(stub))
    monkeypatch.setitem(monitor.Monitor.__init__.__kwdefaults__, "period", 0.01)
    monkeypatch.setattr(cockpit_controller, "LINGER_MS", 50)
    return stub


# Where it is


def test_a_wide_window_has_it_beside_the_conversation(benches: BenchMaker) -> None:
    bench = benches()
    place, cockpit = bench.window.cockpit._place, cockpit_of(bench)
    assert place.docked and cockpit.isVisible() and WIDTH <= place.side.width() <= WIDEST
    assert place.side.geometry().right() == place.width() - 1
    assert bench.view.mapTo(place, bench.view.rect().topRight()).x() < place.side.x()
    assert bench.window.top_bar.cockpit_button.isChecked() and not cockpit.close_button.isVisible()


def test_it_is_hidden_and_shown_by_key_and_button_and_that_is_kept(benches: BenchMaker, tmp_path: Path) -> None:
    bench = benches()
    cockpit_of(bench)
    before = bench.view.width()
    bench.window.cockpit_action.trigger()
    assert not bench.window.cockpit.shown and bench.view.width() > before
    bench.qtbot.mouseClick(bench.window.top_bar.cockpit_button, Qt.MouseButton.LeftButton)
    assert bench.window.cockpit.shown and bench.view.width() == before
    assert bench.window.cockpit_action.shortcut().toString() == "Ctrl+J"
    bench.window.cockpit_action.trigger()
    bench.window.close()
    kept = SettingsStore(tmp_path / "config").load().settings
    assert kept.cockpit_visible is False
    second = benches(settings=kept)
    assert not second.window.cockpit.shown and second.window.cockpit.cockpit is None


@pytest.mark.parametrize(("width", "docked"), [(1280, True), (1279, False), (700, False)])
def test_below_1280_it_is_a_drawer_that_begins_closed(benches: BenchMaker, width: int, docked: bool) -> None:
    bench = benches()
    bench.window.resize(width, 700)
    place = bench.window.cockpit._place
    assert place.docked is docked and place.shown is docked
    if docked:
        return
    bench.qtbot.waitUntil(
        lambda: place.width() == width - bench.window.side_bar.width() * (width >= 1000), timeout=5000
    )
    room = bench.view.width()
    bench.window.cockpit_action.trigger()
    cockpit = cockpit_of(bench)
    assert place.shown and cockpit.isVisible() and bench.view.width() == room
    assert place.side.geometry().right() == place.width() - 1 and place.side.width() <= place.width()
    assert cockpit.close_button.isVisible()
    bench.window.escape_action.trigger()
    assert not place.shown
    bench.window.cockpit_action.trigger()
    bench.qtbot.mouseClick(cockpit.close_button, Qt.MouseButton.LeftButton)
    assert not place.shown and bench.settings.current.cockpit_visible
    bench.window.resize(1400, 700)
    assert place.shown and place.docked


def test_ctrl_j_in_the_settings_comes_back_to_it(benches: BenchMaker) -> None:
    bench = benches()
    cockpit_of(bench)
    bench.window.show_settings()
    bench.window.cockpit_action.trigger()
    assert not bench.window.in_settings and bench.window.cockpit.shown


def test_pyqtgraph_is_imported_when_it_is_first_shown(tmp_path: Path) -> None:
    code = (
        "import sys; from PySide6.QtWidgets import QApplication; app = QApplication([]);"
        "from fake_engine import FakeEngine; from app.host import EngineHost;"
        "from app.live_settings import LiveSettings;"
        "from app.settings import AppSettings; from app.settings_store import SettingsStore; from pathlib import Path;"
        "from app.ui.main_window import MainWindow;"
        f"live = LiveSettings(SettingsStore(Path({str(tmp_path)!r})), AppSettings(cockpit_visible=False));"
        "window = MainWindow(EngineHost(FakeEngine), live); window.resize(1440, 900); window.show();"
        "[app.processEvents() for _ in range(20)]; hidden = [m for m in ('numpy', 'pyqtgraph') if m in sys.modules];"
        "window.toggle_cockpit(); shown = 'pyqtgraph' in sys.modules; window.close(); print(hidden, shown)"
    )
    root = Path(__file__).resolve().parents[2]
    paths = [str(root), str(root / "tests"), str(root / "tests" / "app")]
    run = [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}; {code}"]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == "[] True"


# What it shows


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


# The verdict


def slow_engine() -> FakeEngine:
    """Speculation that costs more than it brings: two drafts as dear as a plain step each, never right."""
    engine = FakeEngine()
    engine.recording.draft_seconds = 0.05
    engine.recording.cycles.clear()
    for _ in range(12):
        engine.recording.cycle(ghosts=" a b", correction=" c")
    return engine


def test_the_verdict_is_on_the_reply_and_its_button_does_what_it_says(benches: BenchMaker) -> None:
    bench = benches(slow_engine())
    bench.ready()
    cockpit = settled(bench)
    assert cockpit.verdict.sentence.text().startswith("No reply yet")
    bench.ask("One?")
    settled(bench).settle()
    assert cockpit.verdict.sentence.text().startswith("Slower than plain (0.3×)")
    assert cockpit.verdict.button.isVisible()
    cockpit.verdict.button.click()
    assert bench.settings.current.speculation is False
    assert bench.window.composer.speculation_chip.text() == "Speculation off"
    cockpit.settle()
    assert "Speculation is off from now on" in cockpit.verdict.sentence.text()


def test_the_verdict_on_a_stored_reply_proposes_nothing(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.window.show_demo()
    replay = bench.window.replays.replay
    assert replay is not None
    replay.show_all()
    cockpit = settled(bench)
    cockpit.settle()
    assert cockpit.figures.statistics.cycles > 8 and cockpit.verdict.verdict is not None
    assert cockpit.verdict.verdict.facts and cockpit.verdict.verdict.action is None


def test_a_verdict_may_lead_to_calibration(benches: BenchMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benches()
    cockpit, asked = settled(bench), []
    bench.window.cockpit.calibration_asked.connect(lambda: asked.append(True))
    monkeypatch.setattr(bench.window.jobs, "calibrate", lambda: None)
    cockpit.verdict.applied.emit(CALIBRATE)
    assert asked == [True]


def test_an_earlier_reply_by_the_models_own_recipe_is_known(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.ask("One?")
    verdicts = bench.window.cockpit.verdicts
    first = settled(bench).figures.statistics
    assert verdicts.situation().earlier is None and verdicts.situation().speculated
    bench.settings.set("speculation", False)
    bench.ask("Two?")
    settled(bench)
    situation = verdicts.situation()
    assert situation.earlier == first.speed_up is not None
    assert not situation.speculated and situation.info == bench.host.info
    assert len(situation.recent) == situation.statistics.cycles


# Memory and machine


def test_the_memory_of_a_model_on_the_cpu_is_ram(benches: BenchMaker) -> None:
    bench = benches(settings=OPEN)
    bench.ready()
    cockpit = settled(bench)
    bench.qtbot.waitUntil(lambda: "KV used 2.0 MiB" in cockpit.memory.legend.texts(), timeout=5000)
    assert cockpit.memory.button.text() == "RAM"
    assert "Weights 257 MiB" in cockpit.memory.legend.texts()
    assert cockpit.memory.kv_head.detail.text() == "host virtual memory" and not cockpit.memory.fallback.isVisible()
    words = cockpit.memory.kv.accessibleDescription()
    for expected in ("Reserved 512 MiB", "Evicted 1", "Fragmentation 1.0 MiB", "Conversations 2", "Pool 1.0 MiB"):
        assert expected in words
    assert "Pages: create 4 · 14.0 µs" in words and "Pages: unmap 0" in words
    assert cockpit.bus.head.value.text() == cockpit.use.head.value.text() == "n/a"
    bench.qtbot.waitUntil(lambda: "KV mapped 3.0 MiB" in cockpit.history.legend.words, timeout=5000)
    assert cockpit.history.legend.words[0].startswith("in use ") and cockpit.history.plot.level is not None
    assert cockpit.bus.head.value.toolTip() == cockpit.bus.plot.empty_words != ""


def test_a_fallback_tells_its_reason(benches: BenchMaker) -> None:
    plain = replace(kv_memory(), backend="a plain tensor", reason="it was switched off", page_bytes=0, pool=0)
    bench = benches(FakeEngine(kv=plain), settings=OPEN)
    bench.ready()
    cockpit = settled(bench)
    bench.qtbot.waitUntil(cockpit.memory.fallback.isVisible, timeout=5000)
    assert cockpit.memory.fallback.text() == "No virtual memory, because it was switched off."
    assert "Pool n/a" in cockpit.memory.kv.accessibleDescription()
    labels = [label for label in cockpit.memory.kv.findChildren(QLabel) if label.text() == "n/a"]
    assert labels and {label.toolTip() for label in labels} == {"A plain tensor has no pages."}


def test_the_card_that_the_model_is_on(benches: BenchMaker, nvml: NvmlStub) -> None:
    bench = benches(CardEngine(hold_reply=True), settings=OPEN)
    bench.ready()
    bench.type_and_send("One?")
    bench.held()
    cockpit = cockpit_of(bench)
    bench.qtbot.waitUntil(lambda: cockpit.use.head.value.text() == "47 %", timeout=5000)
    assert cockpit.memory.button.text() == "GPU memory"
    assert (cockpit.memory.head.value.text(), cockpit.memory.head.detail.text()) == ("3.0 GiB", "of 12 GiB")
    assert cockpit.use.head.detail.text() == "61 °C 180 W"
    bench.qtbot.waitUntil(lambda: cockpit.bus.head.value.text() == "2", timeout=5000)
    assert cockpit.layers.map.summary().startswith("GPU 30")
    bench.engine.go.set()


def test_a_model_of_which_parts_are_streamed(benches: BenchMaker, nvml: NvmlStub) -> None:
    bench = benches(CardEngine(hold_reply=True, offloaded=offload(30, streamed=(28, 29))), settings=OPEN)
    bench.ready()
    cockpit = cockpit_of(bench)
    bench.qtbot.waitUntil(lambda: cockpit.layers.map.summary() == "GPU 28, streamed 2", timeout=5000)
    bench.qtbot.waitUntil(lambda: "Streaming slots 40 MiB" in cockpit.memory.legend.texts(), timeout=5000)
    assert cockpit.memory.head.detail.text() == "of 900 MiB budget"
    bench.type_and_send("One?")
    bench.held()
    bench.engine.offloaded = offload(30, streamed=(27, 28, 29))  # the budget was changed while the reply is written
    bench.qtbot.waitUntil(lambda: cockpit.layers.map.summary().startswith("GPU 27, streamed 3"), timeout=5000)
    bench.engine.go.set()


def test_no_library_is_touched_without_a_model_on_a_card(benches: BenchMaker, nvml: NvmlStub) -> None:
    bench = benches(settings=OPEN)
    cockpit = cockpit_of(bench)
    bench.qtbot.waitUntil(lambda: cockpit.memory.legend.texts() != [], timeout=5000)
    bench.ready()
    bench.ask("One?")
    bench.window.close()
    assert nvml.calls == []


def test_the_card_may_sleep_while_nothing_happens_or_nobody_looks(benches: BenchMaker, nvml: NvmlStub) -> None:
    bench = benches(CardEngine(hold_reply=True), settings=OPEN)
    bench.ready()
    bench.qtbot.waitUntil(lambda: nvml.calls[-1:] == ["nvmlShutdown"], timeout=5000)
    bench.type_and_send("One?")
    bench.held()
    bench.qtbot.waitUntil(lambda: nvml.open == 1, timeout=5000)
    for hide, show in (
        (bench.window.toggle_cockpit, bench.window.toggle_cockpit),
        (bench.window.show_settings, bench.window.show_chat),
        (lambda: minimise(bench, True), lambda: minimise(bench, False)),
    ):
        hide()
        bench.qtbot.waitUntil(lambda: nvml.open == 0, timeout=5000)
        calls = len(nvml.calls)
        bench.qtbot.wait(60)
        assert len(nvml.calls) == calls
        show()
        bench.qtbot.waitUntil(lambda: nvml.open == 1, timeout=5000)
    bench.engine.go.set()


def minimise(bench: Bench, minimised: bool) -> None:
    """As a desktop would; the offscreen platform sends no event of its own."""
    before = bench.window.windowState()
    if minimised:
        bench.window.setWindowState(before | Qt.WindowState.WindowMinimized)
    else:
        bench.window.setWindowState(before & ~Qt.WindowState.WindowMinimized)
    QApplication.sendEvent(bench.window, QWindowStateChangeEvent(before))
    assert bench.window.isMinimized() is minimised


@pytest.mark.parametrize("number", [12, 9, 18])
def test_a_missing_or_unfit_driver_is_told_in_the_cockpit_and_the_window_closes(
    benches: BenchMaker, nvml: NvmlStub, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    nvml.init_error = number
    with caplog.at_level("WARNING"):
        bench = benches(CardEngine(), settings=OPEN)
        bench.ready()
        bench.ask("One?")
        cockpit = cockpit_of(bench)
        bench.qtbot.waitUntil(lambda: cockpit.use.head.value.toolTip() != "", timeout=5000)
        assert cockpit.use.head.value.text() == cockpit.memory.head.value.text() == "n/a"
        assert cockpit.use.card.empty_words == cockpit.use.head.value.toolTip()
        bench.window.close()
    assert len(caplog.records) == 1 and "nvmlShutdown" not in nvml.calls


def test_a_driver_that_fails_in_mid_session_costs_figures_only(
    benches: BenchMaker, nvml: NvmlStub, caplog: pytest.LogCaptureFixture
) -> None:
    bench = benches(CardEngine(hold_reply=True), settings=OPEN)
    bench.ready()
    bench.type_and_send("One?")
    bench.held()
    cockpit = cockpit_of(bench)
    bench.qtbot.waitUntil(lambda: cockpit.use.head.value.text() == "47 %", timeout=5000)
    with caplog.at_level("WARNING"), nvml.failing_with(15):
        bench.qtbot.waitUntil(lambda: cockpit.use.head.value.text() == "n/a", timeout=5000)
        assert cockpit.use.head.value.toolTip() == "The driver has lost the card."
        bench.engine.go.set()
        bench.window.close()
    assert len(caplog.records) == 1


# Looks


def test_every_control_of_the_cockpit_has_a_name_and_every_plot_a_summary(benches: BenchMaker) -> None:
    bench = benches(settings=OPEN)
    bench.ready()
    bench.ask("One?")
    cockpit = settled(bench)
    buttons = [button for button in cockpit.findChildren(QAbstractButton) if button.isVisible()]
    assert len(buttons) >= 8 and all(button.accessibleName() or button.text() for button in buttons)
    plots = [cockpit.acceptance.over_time, cockpit.acceptance.by_position, cockpit.speed.tokens, cockpit.speed.speed]
    assert all(plot.accessibleName() and any(sign.isdigit() for sign in plot.summary()) for plot in plots)


def test_sections_fold_by_keyboard(benches: BenchMaker) -> None:
    cockpit = settled(benches())
    assert cockpit.layers.button.focusPolicy() & Qt.FocusPolicy.TabFocus
    cockpit.layers.button.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(cockpit.layers.button, Qt.Key.Key_Space)
    assert not cockpit.layers.open and not cockpit.layers.map.isVisible()


@pytest.mark.parametrize("name", ["dark", "light", "high-contrast-light"])
def test_it_takes_the_colours_of_every_theme(benches: BenchMaker, name: str) -> None:
    bench = benches()
    bench.ready()
    bench.ask("One?")
    cockpit = settled(bench)
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    look = theme.apply(app, name)
    picture = cockpit.grab().toImage()
    assert picture.pixelColor(3, picture.height() - 3).name().upper() == look.surface.upper()
    theme.apply(app, "light")
