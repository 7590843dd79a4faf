"""The settings page: every declared setting has a working editor, and a change counts at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_engine import model_info
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QAbstractButton, QApplication
from pytestqt.qtbot import QtBot

from app.declaration import HIDDEN
from app.draft_declarations import OWN_DIALS
from app.live_settings import LiveSettings
from app.settings import AppSettings, declaration, default_of, names
from app.settings_store import SettingsStore
from app.ui.setting_editors import SliderEditor
from app.ui.setting_rows import help_text
from app.ui.settings_pane import SettingsPane
from app.ui.switches import Segmented, Switch
from engine.recipe import Ingredients, Recipe

SHOWN = [name for name in names() if declaration(name).group != HIDDEN]


@pytest.fixture
def live(tmp_path: Path, qtbot: QtBot) -> Any:
    settings = LiveSettings(SettingsStore(tmp_path), AppSettings())
    yield settings
    settings.flush()


@pytest.fixture
def pane(live: LiveSettings, qtbot: QtBot) -> SettingsPane:
    widget = SettingsPane(live)
    qtbot.addWidget(widget)
    widget.resize(1190, 850)
    widget.show()
    return widget


def button(pane: SettingsPane, name: str, words: str) -> QAbstractButton:
    editor = pane.row(name).editor
    return next(found for found in editor.findChildren(QAbstractButton) if found.text() == words)


@pytest.mark.parametrize("name", SHOWN)
def test_every_setting_has_a_named_control(pane: SettingsPane, name: str) -> None:
    editor = pane.row(name).editor
    assert (editor.focusProxy() or editor).accessibleName() == declaration(name).label


def be_expert(live: LiveSettings) -> None:
    """Show every row, and let the page lay them out."""
    live.set("expert", True)
    QApplication.processEvents()


def test_help_names_range_and_default() -> None:
    assert help_text(declaration("neuron_share"), 1.0).endswith("10 to 100 %, default 100 %.")
    assert help_text(declaration("gamma"), 4).endswith("1 to 15, default 4.")
    assert help_text(declaration("temperature"), 0.0).endswith("0 to 2, default 0.")
    assert help_text(declaration("speculation"), True).endswith("Default: on.")
    assert help_text(declaration("draft_weight_bits"), 8).endswith("Default: 8 bit.")


def test_a_click_changes_the_setting(pane: SettingsPane, live: LiveSettings, qtbot: QtBot) -> None:
    switch = pane.row("speculation").editor
    assert isinstance(switch, Switch)
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton)
    assert live.current.speculation is False
    be_expert(live)
    live.set("draft_own", True)
    qtbot.mouseClick(button(pane, "draft_weight_bits", "Same"), Qt.MouseButton.LeftButton)
    assert live.current.draft_weight_bits == 16


def test_keys_move_a_slider_by_one_step_and_by_ten(pane: SettingsPane, live: LiveSettings, qtbot: QtBot) -> None:
    editor = pane.row("temperature").editor
    assert isinstance(editor, SliderEditor)
    qtbot.keyClick(editor.slider, Qt.Key.Key_Right)
    assert live.current.temperature == 0.05
    qtbot.keyClick(editor.slider, Qt.Key.Key_PageUp)
    assert live.current.temperature == 0.55
    qtbot.keyClick(editor.slider, Qt.Key.Key_End)
    assert live.current.temperature == 2.0


def test_arrow_keys_move_between_segments(pane: SettingsPane, live: LiveSettings, qtbot: QtBot) -> None:
    first = button(pane, "theme", "System")
    first.setFocus()
    qtbot.keyClick(first, Qt.Key.Key_Right)
    assert live.current.theme == "light"


def test_the_fixed_length_is_asked_only_where_it_counts(pane: SettingsPane, live: LiveSettings, qtbot: QtBot) -> None:
    be_expert(live)
    assert not pane.row("gamma").isVisible()
    qtbot.mouseClick(button(pane, "gamma_fixed", "Fixed"), Qt.MouseButton.LeftButton)
    assert pane.row("gamma").isVisible() and live.current.gamma_fixed


def test_dials_of_ones_own_recipe_are_there_only_where_they_count(
    pane: SettingsPane, live: LiveSettings, qtbot: QtBot
) -> None:
    be_expert(live)
    assert not any(pane.row(name).isVisible() for name in OWN_DIALS)
    qtbot.mouseClick(button(pane, "draft_own", "My own"), Qt.MouseButton.LeftButton)
    assert live.current.draft_own and all(pane.row(name).isVisible() for name in OWN_DIALS)
    qtbot.mouseClick(button(pane, "draft_own", "Automatic"), Qt.MouseButton.LeftButton)
    assert not any(pane.row(name).isVisible() for name in OWN_DIALS)


def test_dials_that_the_device_has_no_use_for_are_disabled_with_the_reason(
    pane: SettingsPane, live: LiveSettings, qtbot: QtBot
) -> None:
    be_expert(live)
    live.set("draft_own", True)
    pane.show_model(replace(model_info(), ingredients=Ingredients((16, 4), kv_window=True)))
    reason = "Not possible for this model on this device."
    for name in OWN_DIALS[1:]:
        row = pane.row(name)
        disabled = name not in ("skipped_sublayers", "kv_window")
        assert row.editor.isEnabled() is not disabled
        assert row.help_words.endswith(reason) is disabled
        described = row.editor.focusProxy() or row.editor
        assert described.accessibleDescription().endswith(reason) is disabled
    widths = {words: button(pane, "draft_weight_bits", words) for words in ("Same", "8 bit", "4 bit", "3 bit")}
    assert {words for words, found in widths.items() if found.isEnabled()} == {"Same", "4 bit"}
    assert "Not all are possible" in widths["8 bit"].toolTip() and widths["4 bit"].toolTip() == ""
    qtbot.mouseClick(widths["3 bit"], Qt.MouseButton.LeftButton)
    assert live.current.draft_weight_bits == 8
    pane.show_model(None)
    assert all(pane.row(name).editor.isEnabled() for name in OWN_DIALS)
    assert all(found.isEnabled() for found in widths.values())
    assert not any("this device" in pane.row(name).help_words for name in OWN_DIALS)


def test_the_draft_in_use_is_told_and_whether_it_was_measured(pane: SettingsPane) -> None:
    row = pane.calibration
    assert row.help_words == "Finds the fastest draft for the model on this computer, in about two minutes."
    info = replace(model_info(), recipe=Recipe(4, reduced_vocabulary=8192))
    pane.show_model(info)
    assert row.help_words.endswith(" In use: 4-bit weights, 8,192 output tokens.")
    pane.show_model(replace(info, calibrated=True))
    assert row.help_words.endswith(" In use, measured here: 4-bit weights, 8,192 output tokens.")


def test_a_seed_that_is_no_number_goes_back(pane: SettingsPane, live: LiveSettings, qtbot: QtBot) -> None:
    be_expert(live)
    field = pane.row("seed").editor
    qtbot.keyClicks(field, "42")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert live.current.seed == 42
    field.selectAll()
    qtbot.keyClicks(field, "-7x")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert live.current.seed == 42 and field.text() == "42"
    field.clear()
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert live.current.seed is None


def test_reset_brings_back_all_but_the_model(pane: SettingsPane, live: LiveSettings, qtbot: QtBot) -> None:
    changed = {"model": "/m", "temperature": 1.0, "speculation": False, "seed": 5, "system_prompt": "S", "gamma": 9}
    for name, value in changed.items():
        live.set(name, value)
    qtbot.mouseClick(pane.reset_button, Qt.MouseButton.LeftButton)
    assert live.current == AppSettings(model="/m")
    assert pane.row("system_prompt").editor.toPlainText() == ""


@pytest.mark.parametrize("name", [name for name in SHOWN if name != "model"])
def test_a_change_from_elsewhere_is_shown_and_not_sent_back(pane: SettingsPane, live: LiveSettings, name: str) -> None:
    other = {
        "context": 4096,
        "budget_gb": 8.0,
        "draft_weight_bits": 16,
        "output_tokens": 8192,
        "kv_window": 512,
        "theme": "dark",
        "language": "zh_CN",
        "send_key": "ctrl+enter",
        "seed": 3,
        "system_prompt": "S",
        "max_new_tokens": 5,
        "top_k": 5,
    }
    default = default_of(name)
    value = other.get(name, not default if isinstance(default, bool) else declaration(name).high)
    if value == default:
        value = declaration(name).low
    sent: list[str] = []
    pane.row(name).changed.connect(lambda name, _: sent.append(name))
    live.set(name, value)
    assert getattr(live.current, name) == value != default
    assert sent == []


def test_the_wheel_does_not_change_a_value_without_focus(pane: SettingsPane, live: LiveSettings) -> None:
    slider = pane.row("temperature").editor.slider
    wheel = QWheelEvent(
        QPointF(5, 5),
        slider.mapToGlobal(QPointF(5, 5)),
        QPoint(0, 120),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(slider, wheel)
    assert live.current.temperature == 0.0


def test_segments_say_their_setting_to_screen_readers(pane: SettingsPane) -> None:
    editor = pane.row("theme").editor
    assert isinstance(editor, Segmented)
    assert {found.accessibleName() for found in editor.findChildren(QAbstractButton)} == {
        "Theme: System",
        "Theme: Light",
        "Theme: Dark",
        "Theme: High contrast",
    }


def test_a_group_can_be_scrolled_to(pane: SettingsPane, qtbot: QtBot) -> None:
    with qtbot.waitSignal(pane.group_in_view) as seen:
        pane.show_group("appearance")
    assert seen.args == ["appearance"]


def test_changes_are_written_a_moment_later_and_on_flush(tmp_path: Path, qtbot: QtBot) -> None:
    store = SettingsStore(tmp_path)
    live = LiveSettings(store, AppSettings())
    live.set("top_k", 7)
    assert not store.path.exists()
    live.flush()
    assert SettingsStore(tmp_path).load().settings.top_k == 7
    live.set("top_k", 8)
    qtbot.waitUntil(lambda: SettingsStore(tmp_path).load().settings.top_k == 8, timeout=3000)


def test_settings_that_cannot_be_kept_still_count_and_are_told_once(tmp_path: Path, qtbot: QtBot) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    live = LiveSettings(SettingsStore(blocker / "config"), AppSettings())
    told: list[str] = []
    live.not_kept.connect(told.append)
    for value in (1, 2):
        live.set("top_k", value)
        live.flush()
    assert live.current.top_k == 2 and len(told) == 1 and "will not be kept" in told[0]


# Simple and expert mode


def shown(pane: SettingsPane) -> set[str]:
    return {name for name in SHOWN if pane.row(name).isVisible()}


def test_simple_mode_shows_what_everyone_needs(pane: SettingsPane, live: LiveSettings) -> None:
    assert not live.current.expert
    simple = {"model", "context", "speculation", "temperature", "max_new_tokens", "system_prompt", "theme"}
    assert shown(pane) == simple | {"language", "keep_ghosts", "send_key"}
    assert pane.calibration.isVisible()


def test_expert_mode_shows_everything_that_counts(pane: SettingsPane, live: LiveSettings, qtbot: QtBot) -> None:
    qtbot.mouseClick(mode(pane, "Expert"), Qt.MouseButton.LeftButton)
    assert live.current.expert and shown(pane) == set(SHOWN) - {"gamma", *OWN_DIALS}
    live.set("gamma_fixed", True)
    live.set("draft_own", True)
    assert shown(pane) == set(SHOWN)
    qtbot.mouseClick(mode(pane, "Simple"), Qt.MouseButton.LeftButton)
    assert not live.current.expert and "gamma" not in shown(pane) and "top_k" not in shown(pane)
    assert live.current.gamma_fixed and live.current.draft_own  # hiding changes nothing


def mode(pane: SettingsPane, words: str) -> QAbstractButton:
    return next(found for found in pane.mode.findChildren(QAbstractButton) if found.text() == words)


def test_simple_mode_tells_of_changes_it_does_not_show(pane: SettingsPane, live: LiveSettings, qtbot: QtBot) -> None:
    assert not pane.hidden_note.isVisible()
    live.set("temperature", 1.0)
    assert not pane.hidden_note.isVisible()
    live.set("top_k", 5)
    live.set("gamma", 9)
    assert pane.hidden_note.isVisible()
    assert pane.hidden_note.text() == "Changed settings of expert mode: 2. Show them"
    qtbot.mouseClick(pane.hidden_note, Qt.MouseButton.LeftButton)
    assert live.current.expert and pane.row("top_k").isVisible() and not pane.hidden_note.isVisible()


def test_the_mode_has_a_name_for_screen_readers(pane: SettingsPane) -> None:
    assert {found.accessibleName() for found in pane.mode.findChildren(QAbstractButton)} == {
        "Settings shown: Simple",
        "Settings shown: Expert",
    }


# Reset by group


def test_each_group_is_reset_alone(pane: SettingsPane, live: LiveSettings, qtbot: QtBot) -> None:
    assert not any(found.isVisible() for found in pane.group_resets.values())
    for name, value in {"temperature": 1.0, "top_k": 5, "gamma": 9, "theme": "dark"}.items():
        live.set(name, value)
    assert {group for group, found in pane.group_resets.items() if found.isVisible()} == {
        "sampling",
        "recipe",
        "appearance",
    }
    qtbot.mouseClick(pane.group_resets["sampling"], Qt.MouseButton.LeftButton)
    assert live.current == AppSettings(gamma=9, theme="dark")
    assert not pane.group_resets["sampling"].isVisible() and pane.group_resets["recipe"].isVisible()


def test_resetting_the_model_group_keeps_the_model(pane: SettingsPane, live: LiveSettings, qtbot: QtBot) -> None:
    live.set("model", "/m")
    assert not pane.group_resets["model"].isVisible()
    live.set("context", 4096)
    qtbot.mouseClick(pane.group_resets["model"], Qt.MouseButton.LeftButton)
    assert live.current == AppSettings(model="/m")


def test_the_recipe_names_the_model_it_is_kept_for(pane: SettingsPane) -> None:
    assert pane._recipe_word is not None
    pane.show_model(model_info())
    assert pane._recipe_word.text() == "how the cheap variant is made; kept for SmolLM2 135M Instruct"
    pane.show_model(None)
    assert pane._recipe_word.text() == "how the cheap variant is made"
