"""What fills a memory: the parts from readings, the bar and its list, n/a with reasons."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from fake_engine import kv_memory, model_info
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from app.memory_parts import (
    DRAFT,
    FREE,
    KV_MAPPED,
    KV_POOL,
    KV_USED,
    NO_MODEL,
    OTHERS,
    PARTLY_READ,
    SHARED,
    SLOTS,
    WEIGHTS,
    WORKSPACE,
    MemoryPicture,
    memory_picture,
    size_text,
)
from app.monitor import Sample
from app.widgets.memory_bar import MemoryBar, MemoryLegend, tooltip_of
from engine.memory.report import KvMemory
from engine.probes.reading import CardReading, HostReading, Measure, nothing_known
from nvml_stub import CARD
from plan_builder import offload

GIB, MIB = 2.0**30, 2.0**20
INFO = replace(model_info(), weights_bytes=round(4 * GIB), draft_bytes=round(2 * GIB))
ON_CARD = replace(INFO, card=CARD)
UNKNOWN = Measure(None, "Not told.")


def host(own: float = 7.0, mapped: float = 4.0, available: float = 20.0) -> HostReading:
    nothing = Measure(0.0)
    return HostReading(
        Measure(32 * GIB), Measure(available * GIB), Measure(own * GIB), Measure(mapped * GIB), nothing, nothing
    )


def card(own: Measure, used: Measure | None = None, total: Measure | None = None) -> CardReading:
    used, total = used or Measure(9 * GIB), total or Measure(12 * GIB)
    return replace(nothing_known(CARD, "Not told."), total=total, used=used, own=own)


def sample(card_reading: CardReading | None = None, kv: KvMemory | None = None, **values: float) -> Sample:
    return Sample(1.0, host(**values), card_reading, kv or kv_memory())


def sizes(picture: MemoryPicture) -> dict[str, float | None]:
    return {part.name: None if part.bytes is None else round(part.bytes / MIB) for part in picture.parts}


def test_the_parts_of_a_card_add_up_to_all_of_it() -> None:
    picture = memory_picture(sample(card(Measure(7 * GIB))), ON_CARD)
    assert picture.on_card and picture.own.value == 7 * GIB
    assert sizes(picture) == {
        WEIGHTS: 4096,
        DRAFT: 2048,
        KV_USED: 2,
        KV_MAPPED: 1,
        KV_POOL: 1,
        WORKSPACE: 1020,
        FREE: 3072,
        OTHERS: 2048,
    }
    assert sum(part.bytes or 0 for part in picture.parts) == 12 * GIB


def test_ram_counts_mapped_files_once() -> None:
    picture = memory_picture(sample(own=7, mapped=4, available=20), INFO)
    assert not picture.on_card and picture.total.value == 32 * GIB
    # Of 12 GiB in use 3 are this program's; its other 4 are file pages, which the system would give away.
    assert sizes(picture)[OTHERS] == 9 * 1024
    assert sizes(picture)[FREE] == 16 * 1024
    assert sizes(picture)[WORKSPACE] == 1020
    assert sum(part.bytes or 0 for part in picture.parts) == 32 * GIB


def test_weights_that_were_not_read_yet_leave_the_workspace_unknown() -> None:
    picture = memory_picture(sample(own=3, mapped=1), INFO)
    workspace = next(part for part in picture.parts if part.name == WORKSPACE)
    assert (workspace.bytes, workspace.reason) == (None, PARTLY_READ)
    assert sum(part.bytes or 0 for part in picture.parts) <= 32 * GIB


def test_what_cannot_be_told_apart_is_one_part_with_the_reason() -> None:
    picture = memory_picture(sample(card(UNKNOWN)), ON_CARD)
    found = sizes(picture)
    assert WORKSPACE not in found and OTHERS not in found
    assert found[SHARED] == 9 * 1024 - 6144 - 4 and found[FREE] == 3072
    shared = next(part for part in picture.parts if part.name == SHARED)
    assert "Not told." in tooltip_of(shared)


def test_a_lost_card_has_no_figures_but_the_models_own() -> None:
    picture = memory_picture(sample(nothing_known(CARD, "Lost.", lost=True)), ON_CARD)
    assert sizes(picture) == {
        WEIGHTS: 4096,
        DRAFT: 2048,
        KV_USED: 2,
        KV_MAPPED: 1,
        KV_POOL: 1,
        FREE: None,
        SHARED: None,
    }
    assert {part.reason for part in picture.parts if part.bytes is None} == {"Lost."}


def test_without_a_model_its_parts_say_so() -> None:
    picture = memory_picture(Sample(1.0, host(), None, None), None)
    assert {part.reason for part in picture.parts if part.bytes is None} == {NO_MODEL}
    assert sizes(picture)[WORKSPACE] == 7 * 1024


def test_a_plan_has_slots_and_a_budget() -> None:
    plan = offload(10, streamed=(1, 2), half=(3,))
    reading = replace(sample(card(Measure(7 * GIB))), offload=plan)
    picture = memory_picture(reading, ON_CARD)
    # 7 always, 5 of the output matrix, 7 whole layers of 30 and one attention of 10.
    assert sizes(picture)[WEIGHTS] == 7 + 5 + 7 * 30 + 10
    assert sizes(picture)[SLOTS] == 2 * 20
    assert picture.budget == 900 * MIB
    assert sum(part.bytes or 0 for part in picture.parts) == 12 * GIB
    assert memory_picture(sample(card(Measure(7 * GIB))), ON_CARD).budget is None


def test_the_budget_is_marked(qtbot: QtBot) -> None:
    bar = MemoryBar()
    qtbot.addWidget(bar)
    bar.resize(360, bar.height())
    for budget, place in ((6 * 1024, 180.0), (13 * 1024, None)):
        plan = offload(10, streamed=(1,), budget=budget)
        bar.set_picture(memory_picture(replace(sample(card(Measure(7 * GIB))), offload=plan), ON_CARD))
        assert bar.budget_at() == place
    bar.set_picture(memory_picture(sample(), INFO))
    assert bar.budget_at() is None


def test_a_plain_tensor_has_no_pool() -> None:
    plain = replace(kv_memory(), page_bytes=0, pool=0, backend="a plain tensor", reason="it was switched off")
    assert KV_POOL not in sizes(memory_picture(sample(kv=plain), INFO))


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (900, "900 B"),
        (512 * 1024, "512 KiB"),
        (2 * MIB, "2.0 MiB"),
        (257 * MIB, "257 MiB"),
        (5.5 * GIB, "5.5 GiB"),
        (24 * GIB, "24 GiB"),
        (1023.9 * MIB, "1.0 GiB"),
    ],
)
def test_sizes_for_people(size: float, text: str) -> None:
    assert size_text(size) == text


@pytest.fixture
def picture() -> MemoryPicture:
    return memory_picture(sample(card(Measure(7 * GIB))), ON_CARD)


def test_ours_stand_left_others_right_and_free_between(qtbot: QtBot, picture: MemoryPicture) -> None:
    bar = MemoryBar()
    qtbot.addWidget(bar)
    bar.resize(360, bar.height())
    bar.set_picture(picture)
    pieces = {part.name: box for part, box in bar.pieces()}
    assert FREE not in pieces
    assert pieces[WEIGHTS].left() == 0 and pieces[WEIGHTS].width() == pytest.approx(120)
    assert pieces[DRAFT].left() == pytest.approx(120) and pieces[DRAFT].width() == pytest.approx(60)
    assert pieces[OTHERS].right() == 360 and pieces[OTHERS].width() == pytest.approx(60)
    assert pieces[WORKSPACE].right() < pieces[OTHERS].left()
    assert pieces[KV_USED].width() > 1  # 2 MiB of 12 GiB can still be seen
    assert "Weights 4.0 GiB" in bar.accessibleDescription()


def test_nothing_is_drawn_of_a_memory_of_unknown_size(qtbot: QtBot) -> None:
    bar = MemoryBar()
    qtbot.addWidget(bar)
    assert bar.pieces() == []
    bar.set_picture(memory_picture(sample(nothing_known(CARD, "Lost.")), ON_CARD))
    assert bar.pieces() == []


def test_the_list_names_every_part(qtbot: QtBot, picture: MemoryPicture) -> None:
    legend = MemoryLegend()
    qtbot.addWidget(legend)
    legend.resize(344, 20)
    legend.show()
    legend.set_picture(picture)
    assert legend.texts()[:2] == ["Weights 4.0 GiB", "Draft copy 2.0 GiB"]
    assert legend.columns() == 2
    two = legend.height()
    legend.resize(200, two)
    assert legend.columns() == 1 and legend.height() == pytest.approx(2 * two, abs=2)
    boxes = [box for _, box in legend.rows()]
    assert all(a.bottom() <= b.top() + 0.01 for a, b in pairwise(boxes))
    legend.set_picture(memory_picture(sample(nothing_known(CARD, "Lost.")), ON_CARD))
    assert "Free n/a" in legend.texts()


def tip_at(widget: QWidget, point: QPoint) -> str:
    QToolTip.hideText()
    QApplication.sendEvent(widget, QHelpEvent(QEvent.Type.ToolTip, point, widget.mapToGlobal(point)))
    return QToolTip.text()


def test_tooltips_give_figures_and_reasons(qtbot: QtBot, picture: MemoryPicture) -> None:
    bar, legend = MemoryBar(), MemoryLegend()
    for widget in (bar, legend):
        qtbot.addWidget(widget)
        widget.resize(360, 120)
        widget.show()
    bar.set_picture(picture)
    assert tip_at(bar, QPoint(10, 10)) == "Weights: 4.0 GiB"
    assert tip_at(bar, QPoint(250, 10)) == "Free: 3.0 GiB"
    legend.set_picture(memory_picture(sample(nothing_known(CARD, "Lost.")), ON_CARD))
    row = next(box for part, box in legend.rows() if part.name == FREE)
    assert tip_at(legend, row.center().toPoint()) == "Free: n/a\nLost."
    QToolTip.hideText()
