"""The budget's slider: what is shown while it moves, when a budget counts as chosen, and what a note offers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.budget_picture import picture_of, with_streamed
from app.budget_scale import STEPS, BudgetScale
from app.outlooks import Answered, Question
from app.ui.budget_editor import BudgetEditor
from engine.offload.outlook import Help, Outlook
from engine.probes.reading import Measure
from engine.records import LoadProgress

GB = 10**9
QUESTION = Question("m", None, None)


def outlook(**changes: object) -> Outlook:
    """A 7B model in 8 GB of a card of 12."""
    made = Outlook(
        asked=8 * GB,
        limit=8 * GB,
        verdict="fits streamed",
        on_card=True,
        total=Measure(12.0 * GB),
        free=Measure(11.0 * GB),
        kv=2 * GB,
        workspace=GB,
        least=5 * GB,
        whole=18 * GB,
        context=4096,
        resident=3 * GB,
        slots=GB // 2,
        draft=GB,
        streamed=9 * GB,
        peak=7_500_000_000,
        parts=65,
        streamed_parts=40,
        plain=1.5,
        speculative=9.24,
        measured_rates=True,
        helps=(Help("budget", 11 * GB, "fits", 40.0), Help("context", 2048, "fits streamed", 10.5)),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


TOO_LARGE = outlook(
    verdict="does not fit",
    resident=None,
    slots=None,
    draft=None,
    streamed=None,
    peak=None,
    plain=None,
    speculative=None,
    limit=4 * GB,
)


@pytest.fixture
def editor(qtbot: QtBot) -> BudgetEditor:
    widget = BudgetEditor()
    qtbot.addWidget(widget)
    widget.resize(690, 400)
    widget.set_value(8.0)
    widget.show()
    widget.show_answer(Answered(QUESTION, outlook(), "", Measure(7.25 * GB)))
    return widget


def test_the_scale_ends_with_what_is_free_and_has_a_place_for_every_budget() -> None:
    scale = BudgetScale.of(5 * GB, 18 * GB, 12.0 * GB, 8.0)
    assert (scale.low, scale.high) == (4.25, 12.0)
    assert scale.budget_at(0) == 4.25 and scale.budget_at(STEPS - 1) == 12.0 and scale.budget_at(STEPS) == 0.0
    assert scale.position_of(0.0) == STEPS and scale.position_of(99.0) == STEPS - 1
    values = [scale.budget_at(place) for place in range(STEPS)]
    assert values == sorted(set(values)), "each position is a budget of its own"
    assert all(scale.position_of(value) == place for place, value in enumerate(values))
    assert BudgetScale.of(5 * GB, 18 * GB, 12.0 * GB, 2.0).low == 2.0
    tiny = BudgetScale.of(20_000_000, 40_000_000, None, 0.0)
    assert tiny.low == 0.017 and len({tiny.budget_at(place) for place in range(STEPS)}) > 20


def test_the_waterfall_adds_up_to_the_memory() -> None:
    picture = picture_of(outlook())
    sizes = {part.name: part.bytes for part in picture.parts}
    assert sizes["Weights"] == 3 * GB and sizes["Streaming slots"] == GB // 2 and sizes["Draft copy"] == GB
    assert sizes["KV cache, full"] == 2 * GB and sizes["Workspace"] == GB
    assert sizes["Free"] == 3.5 * GB and sizes["Other programs"] == GB
    assert sum(size or 0 for size in sizes.values()) == 12 * GB
    assert picture.budget == 8 * GB
    listed = with_streamed(picture, outlook())
    assert {part.name for part in listed.parts} - set(sizes) == {"Streamed weights"}


def test_what_does_not_fit_has_no_figures_but_a_reason() -> None:
    known = {part.name for part in picture_of(TOO_LARGE).parts if part.bytes is not None}
    assert known == {"Other programs"}
    assert all(part.reason for part in picture_of(TOO_LARGE).parts if part.bytes is None)


def test_it_says_whether_the_model_fits_how_fast_it_is_and_what_helps(editor: BudgetEditor) -> None:
    assert editor.verdict.text() == "Fits with 40 of 65 parts streamed."
    assert editor.speed.text() == "About 1.5 tok/s plain, 9.2 with speculation."
    assert [row.words.text() for row in editor.helps] == [
        "A budget of 11.00 GB: fits, about 40.0 tok/s.",
        "A context of 2,048 tokens: fits streamed, about 10.5 tok/s.",
    ]
    assert [row.button.isVisible() for row in editor.helps] == [True, False]
    assert "Streamed weights 9.00 GB" in editor.legend.texts()
    assert editor.peak.text() == "Estimated peak 7.50 GB with a full context; measured since the load: 7.25 GB."
    editor.show_answer(Answered(QUESTION, outlook(verdict="fits", streamed=0, streamed_parts=0, helps=())))
    assert editor.verdict.text() == "Fits: all of the model stays in memory."
    assert not any(row.isVisible() for row in editor.helps) and not editor.peak.isVisible()
    editor.show_answer(Answered(QUESTION, TOO_LARGE))
    assert editor.verdict.text() == "Does not fit: at least 5.00 GB are needed." and not editor.speed.isVisible()
    editor.show_answer(Answered(QUESTION, None, "m does not exist."))
    assert editor.verdict.text() == "m does not exist." and not editor.bar.isVisible()


def test_a_peak_that_is_not_known_says_why(editor: BudgetEditor) -> None:
    editor.show_answer(Answered(QUESTION, outlook(), "", Measure(None, "Hidden by an earlier model.")))
    assert editor.peak.text().endswith("measured since the load: n/a.")
    assert editor.peak.toolTip() == "Hidden by an earlier model."


def test_a_moving_slider_asks_all_along_and_chooses_when_it_is_let_go(editor: BudgetEditor) -> None:
    moved: list[float] = []
    chosen: list[object] = []
    editor.moved.connect(moved.append)
    editor.value_changed.connect(chosen.append)
    editor.slider.setSliderDown(True)
    for place in (60, 30, STEPS):
        editor.slider.setValue(place)
    assert moved == [editor.scale.budget_at(60), editor.scale.budget_at(30), 0.0] and chosen == []
    assert editor.field.text() == "What is free"
    editor.slider.setSliderDown(False)
    assert chosen == [0.0]


def test_the_scale_stays_while_the_slider_is_held(editor: BudgetEditor) -> None:
    before = editor.scale
    editor.slider.setSliderDown(True)
    editor.show_answer(Answered(QUESTION, outlook(least=GB, whole=30 * GB)))
    assert editor.scale is before
    editor.slider.setSliderDown(False)
    editor.show_answer(Answered(QUESTION, outlook(least=GB, whole=30 * GB)))
    assert editor.scale != before and editor.field.value() == 8.0


def test_keys_choose_after_a_moment_and_the_field_takes_numbers(editor: BudgetEditor, qtbot: QtBot) -> None:
    chosen: list[object] = []
    editor.value_changed.connect(chosen.append)
    with qtbot.waitSignal(editor.value_changed, timeout=3000):
        qtbot.keyClick(editor.slider, Qt.Key.Key_Left)
        qtbot.keyClick(editor.slider, Qt.Key.Key_Left)
        assert chosen == []
    assert len(chosen) == 1
    editor.field.selectAll()
    with qtbot.waitSignal(editor.value_changed, timeout=3000):
        qtbot.keyClicks(editor.field, "6,5")
        qtbot.keyClick(editor.field, Qt.Key.Key_Return)
    assert chosen[1] == 6.5 and editor.field.text() == "6.50 GB"


def test_a_fix_that_is_a_budget_is_taken_by_its_button(editor: BudgetEditor, qtbot: QtBot) -> None:
    chosen: list[object] = []
    editor.value_changed.connect(chosen.append)
    qtbot.mouseClick(editor.helps[0].button, Qt.MouseButton.LeftButton)
    assert chosen == [11.0] and editor.field.value() == 11.0


def test_progress_and_notes_come_and_go(editor: BudgetEditor, qtbot: QtBot) -> None:
    assert not editor.progress.isVisible() and not editor.note.isVisible()
    editor.show_progress(LoadProgress("Bringing in layer 2's MLP", 3, 8, 30, 80))
    assert editor.progress.isVisible() and (editor.progress.value(), editor.progress.maximum()) == (3, 8)
    assert editor.progress_words.text() == "Bringing in layer 2's MLP, 3/8"
    editor.show_progress(None)
    editor.show_note("There is not enough memory.")
    assert editor.note.text() == "The budget has stayed as it was: There is not enough memory."
    assert not editor.again.isVisible() and not editor.progress.isVisible()
    editor.show_note("Here the budget can only change by loading the model again.", reload=True)
    with qtbot.waitSignal(editor.load_again):
        qtbot.mouseClick(editor.again, Qt.MouseButton.LeftButton)
