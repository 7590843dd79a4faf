"""The window's commands: the sheet lists every shortcut, the palette finds and runs what is possible."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QLabel
from window_bench import Bench, BenchMaker

from app.states import HostState
from app.ui.command_palette import CommandPalette, match


def palette_of(bench: Bench) -> CommandPalette:
    bench.window.more_commands.show_palette()
    palette = bench.window.more_commands.palette
    assert palette is not None
    return palette


def test_the_sheet_lists_every_shortcut_of_the_window(benches: BenchMaker) -> None:
    bench = benches()
    bench.qtbot.waitUntil(bench.window.isActiveWindow)
    bench.qtbot.keyClick(bench.window, Qt.Key.Key_F1)
    sheet = bench.window.more_commands.sheet
    assert sheet is not None and sheet.isVisible()
    native = QKeySequence.SequenceFormat.NativeText
    shortcuts = {
        (action.text(), action.shortcut().toString(native))
        for action in bench.window.findChildren(QAction)
        if not action.shortcut().isEmpty()
        and action.shortcutContext() is Qt.ShortcutContext.WindowShortcut
        and action.parent() is bench.window
    }
    assert shortcuts <= set(sheet.rows) and ("Keyboard shortcuts", "F1") in shortcuts and len(shortcuts) >= 8
    assert ("The token before", "Alt+Left") in sheet.rows
    shown = {label.text() for label in sheet.findChildren(QLabel)}
    assert all(words in shown and keys in shown for words, keys in sheet.rows)
    bench.qtbot.mouseClick(sheet.close_button, Qt.MouseButton.LeftButton)
    assert not sheet.isVisible()


def test_no_two_commands_share_a_shortcut(benches: BenchMaker) -> None:
    keys = [action.shortcut().toString() for action in benches().window.actions() if not action.shortcut().isEmpty()]
    assert len(keys) == len(set(keys))


def test_the_palette_lists_what_is_possible_now(benches: BenchMaker) -> None:
    bench = benches()
    names = palette_of(bench).names()
    assert {"New chat", "Settings", "Open a model folder…", "Watch the demo", "Copy diagnostics"} <= set(names)
    assert not {"Unload the model", "Replay the last reply", "Calibrate the draft…"} & set(names)
    bench.ready()
    bench.ask("One?")
    names = palette_of(bench).names()
    assert {"Unload the model", "Replay the last reply", "Calibrate the draft…"} <= set(names)


def test_a_typed_part_finds_a_command_and_enter_runs_it(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.qtbot.keyClick(
        bench.window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    )
    palette = bench.window.more_commands.palette
    assert palette is not None and palette.isVisible() and palette.field.hasFocus()
    bench.qtbot.keyClicks(palette.field, "unload")
    assert palette.names() == ["Unload the model"]
    bench.qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    bench.reach(HostState.NO_MODEL)
    assert not palette.isVisible()


def test_arrows_move_in_the_palette_and_a_click_runs(benches: BenchMaker) -> None:
    bench = benches()
    palette = palette_of(bench)
    assert palette.list.currentRow() == 0
    bench.qtbot.keyClick(palette.field, Qt.Key.Key_Down)
    assert palette.list.currentRow() == 1
    bench.qtbot.keyClicks(palette.field, "settings")
    item = palette.list.item(0)
    bench.qtbot.mouseClick(
        palette.list.viewport(), Qt.MouseButton.LeftButton, pos=palette.list.visualItemRect(item).center()
    )
    assert bench.window.in_settings and not palette.isVisible()
    palette = palette_of(bench)
    assert palette.field.text() == "" and palette.list.count() > 10
    bench.qtbot.keyClicks(palette.field, "nothing like it")
    bench.qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert palette.names() == [] and palette.isVisible()


@pytest.mark.parametrize(
    ("typed", "best"),
    [("chat", "New chat"), ("NEW", "New chat"), ("nwc", "New chat"), ("xyz", None), ("", "New chat")],
)
def test_what_fits_what_was_typed(typed: str, best: str | None) -> None:
    assert (match("New chat", typed) is not None) == (best is not None)


def test_a_part_in_one_piece_fits_better_than_scattered_letters() -> None:
    whole, scattered = match("Show the log", "log"), match("Load, or go", "log")
    assert whole is not None and scattered is not None and whole < scattered


def test_diagnostics_are_copied_by_a_command(benches: BenchMaker) -> None:
    bench = benches()
    bench.ready()
    bench.window.more_commands.copy_diagnostics()
    assert "Model: SmolLM2 135M Instruct" in QGuiApplication.clipboard().text()
    assert bench.banner == "The diagnostics are in the clipboard."


def test_the_log_opens_and_closes_with_the_window(benches: BenchMaker) -> None:
    bench = benches()
    bench.window.more_commands.show_log()
    log = bench.window.more_commands.log
    assert log is not None and log.isVisible() and log.view.toPlainText() == "Nothing has been logged."
    bench.qtbot.mouseClick(log.copy_button, Qt.MouseButton.LeftButton)
    assert "Packages:" in QGuiApplication.clipboard().text() and log.told.text() == "Copied."
    bench.window.close()
    assert not log.isVisible()
