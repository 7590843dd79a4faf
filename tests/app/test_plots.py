"""The plots: what they draw of given figures, their lines and words, their two looks."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.widgets.plot_frame import PlotFrame, nice_top
from app.widgets.plot_positions import PositionPlot
from app.widgets.plot_time import Curve, TimePlot, span_of
from app.widgets.plot_tokens import TokensPlot
from engine.profile import PositionShare

NAN = float("nan")


@pytest.fixture
def speed(qtbot: QtBot) -> TimePlot:
    plot = TimePlot("Speed", [Curve("speed", "accent")], line_label="plain {value}", unit="tok/s")
    return shown(qtbot, plot)


Plot = TypeVar("Plot", bound=PlotFrame)


def shown(qtbot: QtBot, plot: Plot) -> Plot:
    qtbot.addWidget(plot)
    plot.resize(170, plot.height())
    plot.show()
    return plot


def ranges(plot: PlotFrame) -> tuple[list[float], list[float]]:
    x, y = plot.box.viewRange()
    return [round(value, 6) for value in x], [round(value, 6) for value in y]


def tick_texts(plot: PlotFrame, side: str) -> list[str]:
    return [text for level in plot.axes[side]._tickLevels for _, text in level]


def test_an_empty_plot_shows_axes_and_says_so(speed: TimePlot) -> None:
    assert speed.empty_words == "no cycles yet"
    assert speed.accessibleDescription() == "no cycles yet"
    assert tick_texts(speed, "bottom") == ["−10 s", "now"] and tick_texts(speed, "left")[0] == "0"


def test_a_curve_ends_now_with_its_line_and_words(speed: TimePlot) -> None:
    speed.show_data(np.array([1.0, 2.0, 4.0]), [np.array([30.0, NAN, 34.0])], 13.5)
    x, y = speed.curves[0].getData()
    assert list(x) == [-3.0, -2.0, 0.0] and y[0] == 30 and np.isnan(y[1]) and y[2] == 34
    assert speed.empty_words == ""
    assert speed.level == 13.5 and speed.line_label.toPlainText() == "plain 13.5" and speed.line_label.isVisible()
    assert ranges(speed) == ([-10, 0], [0, 40])
    assert speed.summary() == "speed 34 tok/s, plain 13.5"


def test_the_words_of_the_line_follow_the_axis(speed: TimePlot) -> None:
    speed.show_data(np.array([0.0, 1.0]), [np.array([30.0, 30.0])], 20.0)
    first = speed.line_label.pos().x()
    speed.show_data(np.array([0.0, 25.0]), [np.array([30.0, 30.0])], 20.0)
    assert tick_texts(speed, "bottom")[0] == "−30 s"
    assert speed.line_label.pos().x() == pytest.approx(first * 3)


def test_a_line_beyond_the_axis_is_not_drawn(qtbot: QtBot) -> None:
    plot = TimePlot("Share", [Curve("share", "accent")], top=1.0, line_label="break-even")
    shown(qtbot, plot)
    plot.show_data(np.array([0.0]), [np.array([0.5])], 1.2)
    assert plot.level is None and not plot.line_label.isVisible()
    plot.show_data(np.array([0.0]), [np.array([0.5])], 0.4)
    assert plot.level == 0.4 and plot.line_label.isVisible()


def test_the_axis_does_not_jump_about(speed: TimePlot) -> None:
    tops = []
    for value in (30, 38, 36, 29, 5):
        speed.show_data(np.array([0.0]), [np.array([float(value)])])
        tops.append(ranges(speed)[1][1])
    assert tops == [40, 40, 40, 40, 6]


def test_clearing_says_why(speed: TimePlot) -> None:
    speed.show_data(np.array([0.0]), [np.array([5.0])], 3.0)
    speed.clear("not on a card")
    assert speed.empty_words == "not on a card" and speed.level is None
    assert speed.curves[0].getData()[0] is None or len(speed.curves[0].getData()[0]) == 0


@pytest.mark.parametrize(("seconds", "span"), [(0, 10), (10, 10), (10.1, 30), (59, 60), (100, 120), (900, 120)])
def test_spans(seconds: float, span: int) -> None:
    assert span_of(seconds) == span


@pytest.mark.parametrize(
    ("value", "top"), [(0.0, 0.001), (1.0, 1.0), (1.01, 2), (34.6, 40), (40, 40), (41, 50), (850, 1000), (0.52, 0.6)]
)
def test_round_tops(value: float, top: float) -> None:
    assert nice_top(value) == pytest.approx(top)


def shares(*pairs: tuple[int, int]) -> list[PositionShare]:
    return [PositionShare(i, cycles, kept) for i, (cycles, kept) in enumerate(pairs, 1)]


def test_positions_at_or_below_the_line_are_hollow(qtbot: QtBot) -> None:
    plot = PositionPlot()
    shown(qtbot, plot)
    assert plot.empty_words == "no drafts yet"
    plot.show_shares(shares((100, 90), (100, 70), (80, 40), (60, 18)), 0.5)
    assert plot.hollow == (3, 4) and plot.level == 0.5
    x, y = plot.points.getData()
    assert list(x) == [1, 2, 3, 4] and list(y) == [0.9, 0.7, 0.5, 0.3]
    brushes = [spot.brush().color().name().upper() for spot in plot.points.points()]
    dress = theme.active()
    assert brushes == [dress.accepted_dot.upper()] * 2 + [dress.surface.upper()] * 2
    assert plot.summary() == "1: 90 %, 2: 70 %, 3: 50 %, 4: 30 %, break-even 50 %"


def test_the_band_lies_around_the_points(qtbot: QtBot) -> None:
    plot = PositionPlot()
    shown(qtbot, plot)
    plot.show_shares(shares((40, 36), (30, 20)), None)
    low, high, middle = (item.getData()[1] for item in (plot._low, plot._high, plot._curve))
    assert (low < middle).all() and (middle < high).all()
    assert plot.hollow == () and not plot.line_label.isVisible()


def test_the_axis_of_positions_widens(qtbot: QtBot) -> None:
    plot = PositionPlot()
    shown(qtbot, plot)
    plot.show_shares(shares((4, 2)), None)
    assert tick_texts(plot, "bottom") == ["1", "2", "3", "4"]
    plot.show_shares(shares(*[(4, 2)] * 15), None)
    assert tick_texts(plot, "bottom") == ["1", "3", "5", "7", "9", "11", "13", "15"]


def test_tokens_are_bars_and_the_last_is_blue(qtbot: QtBot) -> None:
    plot = TokensPlot()
    shown(qtbot, plot)
    plot.show_shares((0.25, 0.1, 0.05, 0.6), 3.0)
    assert list(plot.bars.opts["height"]) == [0.25, 0.1, 0.05, 0.6]
    colours = [brush.color().name().upper() for brush in plot.bars.opts["brushes"]]
    assert colours == [theme.active().workspace.upper()] * 3 + [theme.active().bonus.upper()]
    assert plot.mean_label.toPlainText() == "mean 3.0" and plot.mean_label.pos().x() == 3.0
    assert plot.summary() == "1: 25 %, 2: 10 %, 3: 5 %, 4: 60 %, mean 3.0"


def test_plain_decoding_is_one_grey_bar(qtbot: QtBot) -> None:
    plot = TokensPlot()
    shown(qtbot, plot)
    plot.show_shares((1.0,), 1.0)
    assert [brush.color().name().upper() for brush in plot.bars.opts["brushes"]] == [theme.active().workspace.upper()]
    plot.show_shares((), None)
    assert plot.empty_words == "no cycles yet" and plot.mean_label.toPlainText() == ""


def test_every_plot_takes_the_colours_of_a_theme(qtbot: QtBot) -> None:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    plots = [TimePlot("Speed", [Curve("speed", "accent")]), PositionPlot(), TokensPlot()]
    for plot in plots:
        shown(qtbot, plot)
        plot.set_empty(None)
    plots[0].show_data(np.array([0.0, 1.0]), [np.array([1.0, 2.0])], 1.0)
    plots[1].show_shares(shares((9, 8), (9, 3)), 0.4)
    plots[2].show_shares((0.5, 0.5), 1.5)
    for name in ("dark", "light", "high-contrast-dark"):
        look = theme.apply(app, name)
        assert {plot.view.backgroundBrush().color().name().upper() for plot in plots} == {look.surface.upper()}
        assert plots[0].curves[0].opts["pen"].color().name().upper() == look.accent.upper()
        picture = plots[2].grab().toImage()
        seen = {picture.pixelColor(x, y).name().upper() for x in range(0, 170, 2) for y in range(0, 90, 2)}
        assert look.bonus.upper() in seen and look.surface.upper() in seen
    theme.apply(app, "light")


def test_the_wheel_passes_through_to_the_page(speed: TimePlot) -> None:
    for part in (speed.view, speed.view.viewport()):
        assert part.testAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    assert speed.childAt(80, 40) is None
