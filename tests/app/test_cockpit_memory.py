"""The memory section and the machine: RAM, a card, drivers that fail, and that nothing is read without need."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cockpit_rig import OPEN, CardEngine, cockpit_of, settled
from fake_engine import FakeEngine, kv_memory
from PySide6.QtCore import Qt
from PySide6.QtGui import QWindowStateChangeEvent
from PySide6.QtWidgets import QApplication, QLabel
from window_bench import Bench, BenchMaker

from app import cockpit_controller, monitor
from engine.probes.nvml import NvmlProbe
from nvml_stub import NvmlStub
from plan_builder import offload


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> NvmlStub:
    """A card that answers, read a hundred times a second; the monitor rests 50 ms after the last event."""
    stub = NvmlStub()
    monkeypatch.setattr(monitor, "make_card_probe", lambda: NvmlProbe(stub))
    monkeypatch.setitem(monitor.Monitor.__init__.__kwdefaults__, "card_probe", lambda: NvmlProbe(stub))
    monkeypatch.setitem(monitor.Monitor.__init__.__kwdefaults__, "period", 0.01)
    monkeypatch.setattr(cockpit_controller, "LINGER_MS", 50)
    return stub


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
