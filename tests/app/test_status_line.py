"""The status line: figures from the statistics, honest about what was not measured and about a loss."""

from __future__ import annotations

import pytest
from fake_engine import Recording, model_info, paris
from pytestqt.qtbot import QtBot

from app.states import HostState
from app.ui.status_line import StatusLine, factor, state_words
from engine.records import PrefillProgress
from engine.statistics import ReplyStatistics


def folded(recording: Recording) -> ReplyStatistics:
    statistics = ReplyStatistics()
    for event in recording.cycles:
        statistics = statistics.with_cycle(event.record)
    return statistics


@pytest.fixture
def line(qtbot: QtBot) -> StatusLine:
    widget = StatusLine()
    qtbot.addWidget(widget)
    widget.resize(1440, widget.height())
    widget.show()
    return widget


def test_before_the_first_cycle_there_are_no_figures(line: StatusLine) -> None:
    line.show_statistics(ReplyStatistics(), final=True)
    assert not line.speed.isVisible() and not line.speed_up.isVisible()


def test_figures_are_those_of_the_statistics(line: StatusLine) -> None:
    statistics = folded(paris())
    line.show_statistics(statistics, final=True)
    assert line.speed.text() == f"{statistics.tokens_per_second:.1f} tok/s"
    assert line.acceptance.text() == "88 % acceptance"
    assert line.per_cycle.text() == "4.0 tokens per cycle"
    assert line.speed_up.text() == f"{statistics.speed_up:.1f}× plain, measured 20.0 tok/s"
    assert statistics.speed_up is not None and statistics.speed_up > 1
    assert line.speed.isVisible()


def test_a_loss_is_called_slower(line: StatusLine) -> None:
    recording = Recording(draft_seconds=0.05)
    recording.cycle(accepted=" a", ghosts=" b c", correction=" d")
    line.show_statistics(folded(recording), final=True)
    assert line.speed_up.text().startswith("0.5× plain, slower than plain")


@pytest.mark.parametrize(
    ("gain", "shown"), [(2.64, "2.6×"), (1.0, "1.0×"), (0.999, "0.99×"), (0.96, "0.96×"), (0.9, "0.9×")]
)
def test_a_loss_never_reads_as_one(gain: float, shown: str) -> None:
    assert factor(gain) == shown


def test_what_was_not_measured_is_na_with_a_reason(line: StatusLine) -> None:
    recording = Recording(plain_seconds=None)
    recording.cycle(plain=" a")
    line.show_statistics(folded(recording), final=True)
    assert line.acceptance.text() == "n/a acceptance" and "drafted" in line.acceptance.toolTip()
    assert line.speed_up.text() == "n/a speed-up" and "measured" in line.speed_up.toolTip()


def test_running_figures_rest_between_refreshes_and_the_last_is_always_shown(line: StatusLine) -> None:
    recording = Recording()
    recording.cycle(plain=" a")
    line.show_statistics(folded(recording), final=False)
    first = line.per_cycle.text()
    recording.cycle(accepted=" b c d", bonus=" e")
    line.show_statistics(folded(recording), final=False)
    assert line.per_cycle.text() == first == "1.0 tokens per cycle"
    line.show_statistics(folded(recording), final=True)
    assert line.per_cycle.text() == "2.5 tokens per cycle"


def test_device_and_lossless_belong_to_a_loaded_model(line: StatusLine) -> None:
    assert not line.lossless.isVisible() and line.device_text == ""
    line.show_model(model_info())
    assert line.lossless.isVisible() and line.device_text == "CPU, 2 threads · fp16"
    assert "full model" in line.lossless.toolTip()


def test_the_prompt_being_read_is_told_until_the_first_cycle(line: StatusLine) -> None:
    line.show_prefill(PrefillProgress(512, 2048, 0))
    assert line.state_text == "No model"
    line.show_state(HostState.GENERATING)
    line.show_prefill(PrefillProgress(512, 2048, 0))
    assert line.state_text == "Reading the prompt, 512 of 2048 tokens"
    line.show_statistics(folded(paris()), final=False)
    assert line.state_text == "Generating"


@pytest.mark.parametrize(("width", "visible"), [(1440, 4), (850, 3), (700, 2)])
def test_a_narrow_line_keeps_speed_and_speed_up(line: StatusLine, width: int, visible: int) -> None:
    line.show_statistics(folded(paris()), final=True)
    line.resize(width, line.height())
    shown = [figure for figure in (line.speed, line.acceptance, line.per_cycle, line.speed_up) if figure.isVisible()]
    assert len(shown) == visible and shown[0] is line.speed and shown[-1] is line.speed_up


@pytest.mark.parametrize("state", list(HostState))
def test_every_state_has_words(state: HostState) -> None:
    assert state_words(state)
