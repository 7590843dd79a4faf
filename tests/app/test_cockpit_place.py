"""Where the cockpit is in the window: beside the conversation, as a drawer, hidden; made when it is first shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cockpit_rig import cockpit_of
from PySide6.QtCore import Qt
from window_bench import BenchMaker

from app.settings_store import SettingsStore
from app.ui.cockpit_place import WIDEST, WIDTH


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
