"""Every control of the window, its pages and its panes has a name for assistive tools: a walk over all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QScrollBar,
    QTextEdit,
    QWidget,
)
from window_bench import Bench, BenchMaker

from app.settings import AppSettings
from app.ui.compare_pane import ComparePane
from app.ui.main_window import MainWindow
from app.ui.message_editor import MessageEditor
from app.widgets.cycle_timeline import CycleTimeline
from app.widgets.painted import PaintedWidget

CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QTextEdit,
    PaintedWidget,
    CycleTimeline,
)


def nameless(root: QWidget) -> list[str]:
    """Controls without a name, hidden ones included; parts that Qt makes inside a control go with it."""
    found = []
    for widget in controls_of(root):
        if isinstance(widget, QAbstractButton) and not widget.isVisibleTo(root) and not widget.text():
            continue  # it gets its words as it is shown
        interface = QAccessible.queryAccessibleInterface(widget)
        name = interface.text(QAccessible.Text.Name) if interface is not None else widget.accessibleName()
        if not name.strip():
            found.append(place(widget))
    return found


def controls_of(root: QWidget) -> list[QWidget]:
    """What can be used or read, hidden or not."""
    found = [widget for widget in (root, *root.findChildren(QWidget)) if isinstance(widget, CONTROLS)]
    return [widget for widget in found if not isinstance(widget, QScrollBar) and not inside_control(widget)]


def inside_control(widget: QWidget) -> bool:
    """Whether it is a part of a spin box, a list box or a view."""
    parent = widget.parentWidget()
    while parent is not None:
        if isinstance(parent, QAbstractSpinBox | QComboBox | QAbstractItemView):
            return True
        parent = parent.parentWidget()
    return type(widget).__module__.startswith("pyqtgraph") or "Combo" in type(widget).__name__


def place(widget: QWidget) -> str:
    """Where it is, from itself outwards."""
    names = []
    while widget is not None:
        names.append(type(widget).__name__)
        widget = widget.parentWidget()
    return " in ".join(names[:4])


def talked(benches: BenchMaker) -> Bench:
    """A window in which a question has been answered, its cockpit open."""
    bench = benches(settings=AppSettings(expert=True, draft_own=True, gamma_fixed=True, keep_ghosts=True))
    bench.ready()
    bench.ask("One?")
    bench.qtbot.waitUntil(lambda: bench.window.cockpit.cockpit is not None, timeout=10_000)
    return bench


def test_the_window_and_its_cockpit(benches: BenchMaker) -> None:
    bench = talked(benches)
    cockpit = bench.window.cockpit.cockpit
    assert cockpit is not None
    cockpit.set_folded(())
    assert len(bench.window.findChildren(QAbstractButton)) > 25
    found = nameless(bench.window)
    assert not found, "\n".join(found)


def test_the_settings(benches: BenchMaker) -> None:
    bench = talked(benches)
    bench.window.show_settings()
    assert nameless(bench.window.settings_page) == []


def prove(bench: Bench) -> QWidget:
    return bench.window.jobs.prove_pane


def calibrate(bench: Bench) -> QWidget:
    return bench.window.jobs.calibration_pane


def compare(bench: Bench) -> QWidget:
    return ComparePane(bench.host, bench.window)


def edit(bench: Bench) -> QWidget:
    return MessageEditor("One?", False)


def manage(bench: Bench) -> QWidget:
    return bench.window.model_management.manager


def card(bench: Bench) -> QWidget:
    view = bench.view.turns()[-1]
    view.text.setFocus()
    bench.qtbot.keyClick(view.text, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    bench.qtbot.keyClick(view.text, Qt.Key.Key_Return)
    return bench.window


def sheet(bench: Bench) -> QWidget:
    bench.window.more_commands.show_sheet()
    return bench.window


def palette(bench: Bench) -> QWidget:
    bench.window.more_commands.show_palette()
    return bench.window


def log(bench: Bench) -> QWidget:
    bench.window.more_commands.show_log()
    return bench.window


def replay(bench: Bench) -> QWidget:
    bench.window.replays.start_last()
    return bench.window


@pytest.mark.parametrize("open_pane", [sheet, palette, log, replay, prove, calibrate, compare, edit, manage, card])
def test_panes_and_dialogs(benches: BenchMaker, open_pane: Callable[[Bench], QWidget]) -> None:
    bench = talked(benches)
    root = open_pane(bench)
    found = nameless(root)
    assert isinstance(root, MainWindow) or controls_of(root), "there is something to be named"
    assert not found, "\n".join(found)
