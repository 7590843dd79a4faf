"""The window's host and forecasts with the real engine and a small model: a budget moves it during a reply."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.host import EngineHost
from app.live_settings import LiveSettings
from app.main import make_engine
from app.settings import AppSettings
from app.settings_store import SettingsStore
from app.states import HostState
from app.ui.main_window import MainWindow
from builders import tiny_llama
from engine.offload.forecast import Forecaster
from engine.offload.rates import default_rates
from engine.records import CycleEvent, Event
from engine_rig import no_end_tokens, random_prompts, request

LOAD_MS = 100_000  # the first use on a machine compiles the kernels
PROMPT = random_prompts(1, 290, seed=51)[0]


@pytest.mark.timeout(200)
def test_a_real_model_moves_within_a_reply_and_back(qtbot: QtBot, tmp_path: Path) -> None:
    folder = no_end_tokens(
        tiny_llama(tmp_path / "m", layers=4, hidden=512, heads=8, kv_heads=2, std=0.06, dtype="float16")
    )
    host = EngineHost(make_engine)
    settings = LiveSettings(SettingsStore(tmp_path / "c"), AppSettings(expert=True, model=str(folder)))
    window = MainWindow(host, settings)
    window.budget.outlooks._make = quick_forecaster
    window.show()
    events: list[Event] = []
    host.events_ready.connect(lambda _, batch: events.extend(batch))

    def ask() -> list[int]:
        events.clear()
        assert host.send(request(PROMPT, 200)) is not None
        qtbot.waitUntil(lambda: host.state is HostState.READY, timeout=60_000)
        return [token for event in events if isinstance(event, CycleEvent) for token in event.record.emitted_ids]

    try:
        window.models.load(str(folder))
        qtbot.waitUntil(lambda: host.state is HostState.READY, timeout=LOAD_MS)
        expected = ask()
        window.show_settings()
        editor = window.settings_page.pane.budget
        qtbot.waitUntil(lambda: editor.verdict.text() == "Fits: all of the model stays in memory.", timeout=30_000)
        outlook = editor.bar._picture_shown
        assert outlook is not None and editor.peak.isVisible()
        basis = host.basis()
        assert basis is not None
        known = quick_forecaster().outlook(basis, None)
        between = editor.scale.position_of((known.least + known.whole) / 2e9)
        editor.slider.setSliderDown(True)
        with qtbot.waitSignal(window.budget.outlooks.answered, timeout=10_000) as answered:
            editor.slider.setValue(between)
        QApplication.processEvents()
        assert answered.args is not None and answered.args[0].outlook.streamed_parts > 0
        assert "parts streamed" in editor.verdict.text()

        events.clear()
        assert host.send(request(PROMPT, 200)) is not None
        editor.slider.setSliderDown(False)  # let go while the reply runs
        assert settings.current.budget_gb == editor.scale.budget_at(between)
        qtbot.waitUntil(lambda: not host.draining, timeout=60_000)
        made = [token for event in events if isinstance(event, CycleEvent) for token in event.record.emitted_ids]
        assert made == expected and host.info is not None
        offload = host.offload()
        assert (
            offload is not None
            and offload.plan.streamed
            and offload.plan.budget == int(settings.current.budget_gb * 1e9)
        )
        assert ask() == expected

        in_force = settings.current.budget_gb
        settings.set("budget_gb", 0.001)  # below the least
        qtbot.waitUntil(lambda: not host.draining, timeout=10_000)
        assert settings.current.budget_gb == in_force and "the budget is 0.00 GB" in editor.note.text()
        settings.set("budget_gb", 0.0)
        qtbot.waitUntil(lambda: not host.draining, timeout=10_000)
        offload = host.offload()
        assert offload is not None and not offload.plan.streamed and not editor.note.isVisible()
        assert ask() == expected
    finally:
        window.close()
        window.deleteLater()


def quick_forecaster() -> Forecaster:
    """The real one, which measures nothing."""
    made = Forecaster()
    made._rates["cpu"] = default_rates("cpu")
    return made
