"""The layer map: where layers are, what drafts leave out, figures by layer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_engine import model_info
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QColor, QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from app import theme
from app.layer_parts import LayerPlace, Place, draft_shares, layer_places, skipped
from app.widgets.layer_map import ROW, LayerMap, density, tick_layers
from engine.recipe import Recipe
from nvml_stub import CARD
from plan_builder import offload
from reply_builders import cycle

RECIPE = Recipe(
    weight_bits=4, input_sparsity=0.2, neuron_share=0.5, head_share=0.75, skipped_attention=(2, 5), skipped_mlp=(7, 99)
)
DRAFTED = replace(cycle(4, [" a"], " b", [" g"]).record, recipe=RECIPE)
PLAIN = cycle(5, [], " p").record


@pytest.fixture
def layers(qtbot: QtBot) -> LayerMap:
    found = LayerMap()
    qtbot.addWidget(found)
    found.resize(344, found.height())
    found.show()
    found.set_model(model_info())
    return found


def test_everything_is_where_the_model_is() -> None:
    assert layer_places(model_info(), None) == (LayerPlace(Place.CPU, Place.CPU),) * 30
    assert layer_places(replace(model_info(), card=CARD), None) == (LayerPlace(Place.CARD, Place.CARD),) * 30


def test_a_plan_says_where_each_part_is() -> None:
    plan = offload(30, streamed=(4,), half=(5,), host=(6,)).plan
    places = layer_places(replace(model_info(), card=CARD), plan)
    assert [place.whole for place in places[3:8]] == [Place.CARD, Place.STREAMED, Place.STREAMED, Place.CPU, Place.CARD]
    assert places[5] == LayerPlace(Place.CARD, Place.STREAMED)
    assert layer_places(model_info(), plan)[3] == LayerPlace(Place.CPU, Place.CPU)


def test_streamed_parts_are_drawn_counted_and_told(layers: LayerMap) -> None:
    info = replace(model_info(), card=CARD)
    layers.set_model(info, offload(30, streamed=(4, 8), half=(5,), host=(6,)).plan)
    look = theme.active()
    assert pixel(layers, 3, 2).name() == pixel(layers, 5, 2).name() == look.color("gpu").name()
    assert layers.summary() == "GPU 26, streamed 3, CPU 1"
    colours = {
        layers.grab().toImage().pixelColor(round(layers._cell_left(5)) + x, y).name()
        for x in range(7)
        for y in (6, 7, 8)
    }
    assert look.color("wait").name() in colours and look.color("gpu").name() not in colours
    assert layers.text_of(4).startswith("Layer 5: brought in for every full pass")
    assert layers.text_of(5).startswith("Layer 6: attention on the GPU, MLP brought in for every full pass")
    layers.show_cycles([DRAFTED])
    layers.set_model(info, None)
    assert layers.summary() == "GPU 30, skipped 3"  # another plan keeps the cycles


def test_what_a_draft_computes_of_each_layer() -> None:
    shares = draft_shares(DRAFTED, 8)
    assert shares is not None and len(shares) == 8
    assert [share.attention for share in shares] == [0.75, 0.75, 0, 0.75, 0.75, 0, 0.75, 0.75]
    assert [share.mlp for share in shares] == [0.5] * 7 + [0]
    assert {share.inputs for share in shares} == {0.8}
    assert draft_shares(PLAIN, 8) is None
    assert skipped(DRAFTED, 8) == 3  # layer 99 is not there


def pixel(layers: LayerMap, layer: int, y: float) -> QColor:
    left, right = layers._cell_left(layer), layers._cell_left(layer + 1)
    return layers.grab().toImage().pixelColor(round((left + right) / 2) - 1, round(y))


def test_rows_are_coloured_by_place_and_density(layers: LayerMap) -> None:
    look = theme.active()
    assert pixel(layers, 0, ROW / 2).name() == look.color("cpu").name()
    _, attention, mlp, _ = layers._tops()
    assert pixel(layers, 0, attention + 4).name() == look.color("free").name()  # nothing drafted yet
    layers.show_cycles([DRAFTED])
    assert pixel(layers, 0, attention + 4).name() == density(look, 0.75 * 0.8).name()
    assert pixel(layers, 0, mlp + 3 * 8 + 3).name() == density(look, 0.5 * 0.8).name()  # newest last
    assert pixel(layers, 0, mlp + 3).name() == look.color("free").name()
    left_out = pixel(layers, 2, attention + 1.5)
    assert left_out.name() not in (density(look, 0.75 * 0.8).name(), look.color("free").name())


def test_the_model_on_a_card_is_violet(layers: LayerMap) -> None:
    layers.set_model(replace(model_info(), card=CARD))
    assert pixel(layers, 29, ROW / 2).name() == theme.active().color("gpu").name()
    assert layers.summary() == "GPU 30"


def test_the_legend_counts(layers: LayerMap) -> None:
    assert layers.summary() == "CPU 30"
    layers.show_cycles([DRAFTED])
    assert layers.summary() == layers.accessibleDescription() == "CPU 30, skipped 3"
    layers.set_model(None)
    assert layers.summary() == "no model"


def test_a_layer_tells_its_figures(layers: LayerMap) -> None:
    assert layers.text_of(0) == "Layer 1: in RAM, computed by the CPU\nNo draft yet"
    layers.show_cycles([DRAFTED, PLAIN])
    assert layers.text_of(2).splitlines() == [
        "Layer 3: in RAM, computed by the CPU",
        "Draft, cycle 5:",
        "attention: left out",
        "MLP: 50 % of the neurons",
        "80 % of the input channels, 4-bit weights",
    ]


def test_hovering_a_layer_shows_them(layers: LayerMap) -> None:
    point = QPoint(round(layers._cell_left(7)) + 3, 5)
    assert layers.layer_at(point) == 7 and layers.layer_at(QPoint(2, 5)) is None
    QApplication.sendEvent(layers, QHelpEvent(QEvent.Type.ToolTip, point, layers.mapToGlobal(point)))
    assert QToolTip.text().startswith("Layer 8:")
    QToolTip.hideText()


def test_a_chosen_cycle_takes_the_place_of_the_last_ones(layers: LayerMap) -> None:
    other = replace(DRAFTED, index=1, recipe=Recipe())
    layers.show_cycles([DRAFTED])
    layers.choose(other)
    assert layers.newest is other and layers.summary() == "CPU 30"
    layers.show_cycles([DRAFTED, DRAFTED])
    assert layers.newest is other
    layers.choose(None)
    assert layers.newest is DRAFTED and layers.shown() == [DRAFTED, DRAFTED]


def test_cycles_that_look_alike_are_not_painted_anew(layers: LayerMap) -> None:
    layers.show_cycles([DRAFTED] * 4)
    layers.grab()
    before = layers._picture
    layers.show_cycles([replace(DRAFTED, index=n) for n in range(9)])
    assert layers._picture is before is not None
    layers.show_cycles([PLAIN, *[DRAFTED] * 3])
    assert layers._picture is None


@pytest.mark.parametrize(
    ("layers_count", "shown"),
    [
        (0, []),
        (1, [1]),
        (4, [1, 2, 3, 4]),
        (30, [1, 8, 16, 24, 30]),
        (32, [1, 8, 16, 24, 32]),
        (80, [1, 16, 32, 48, 64, 80]),
    ],
)
def test_numbers_below_the_map(layers_count: int, shown: list[int]) -> None:
    assert [layer + 1 for layer in tick_layers(layers_count)] == shown


def test_one_layer_and_many_fit(qtbot: QtBot, layers: LayerMap) -> None:
    for count in (1, 200):
        layers.set_model(replace(model_info(), layers=count))
        layers.show_cycles([DRAFTED])
        assert not layers.grab().isNull()
        assert layers.layer_at(QPoint(layers.width() - 1, 5)) == count - 1
