"""The cockpit by keyboard, for assistive tools and in every theme."""

from __future__ import annotations

import pytest
from cockpit_rig import OPEN, settled
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication
from window_bench import BenchMaker

from app import theme


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
