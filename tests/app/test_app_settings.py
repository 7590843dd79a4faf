"""What the settings mean to the engine, and that each is declared in full."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import app.declaration
from app import settings
from app.declaration import GROUPS, HIDDEN
from app.settings import (
    AppSettings,
    checked,
    declaration,
    default_of,
    names,
)
from app.skipping import spread_over
from engine.recipe import Recipe
from engine.settings import Sampling, Speculation

SHOWN = [name for name in names() if declaration(name).group != HIDDEN]


@pytest.mark.parametrize("name", names())
def test_every_default_is_in_its_own_range(name: str) -> None:
    assert checked(name, default_of(name)) == default_of(name)


@pytest.mark.parametrize("name", SHOWN)
def test_every_shown_setting_has_words_and_a_group(name: str) -> None:
    declared = declaration(name)
    assert declared.label and declared.help.endswith(".")
    assert declared.group in [group for group, _, _ in GROUPS]
    if declared.kind in ("slider", "number", "seed"):
        assert declared.low < declared.high and declared.step > 0
    if declared.kind in ("choice", "list"):
        assert len(declared.choices) >= 2


def test_every_word_of_the_page_is_marked_for_translation() -> None:
    """The translation tool reads the source: each word must stand there inside a QT_TRANSLATE_NOOP call."""
    marked = "\n".join(
        Path(module.__file__ or "").read_text(encoding="utf-8") for module in (settings, app.declaration)
    )
    found = set(re.findall(r'QT_TRANSLATE_NOOP\(\s*"Settings",\s*"([^"]+)"', marked))
    for name in SHOWN:
        assert {declaration(name).label, declaration(name).help} <= found
    assert {title for _, title, _ in GROUPS} <= found


def test_the_extremes_of_every_range_are_accepted_by_the_engine() -> None:
    for end in ("low", "high"):
        values = AppSettings()
        for name in ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed", "gamma"):
            values = values.with_value(name, getattr(declaration(name), end))
        values = values.with_value("gamma_fixed", True)
        assert isinstance(values.sampling(), Sampling)
        assert values.speculating(30).gamma == values.gamma


def test_untouched_settings_leave_recipe_and_gamma_to_the_engine() -> None:
    assert AppSettings().speculating(30) == Speculation(enabled=True, gamma=None, recipe=None)
    assert AppSettings().sampling() == Sampling()


def test_a_touched_recipe_is_spelled_out() -> None:
    settings = AppSettings(draft_weight_bits=16, neuron_share=0.5, skipped_sublayers=2)
    assert settings.recipe(30) == Recipe(weight_bits=16, neuron_share=0.5, skipped_attention=(8, 21))


@pytest.mark.parametrize("layers", [1, 4, 5, 30, 32, 80])
@pytest.mark.parametrize("count", [0, 1, 4, 24])
def test_skipped_layers_are_distinct_and_spare_the_ends(count: int, layers: int) -> None:
    skipped = spread_over(count, layers)
    assert len(skipped) == min(count, max(0, layers - 4)) == len(set(skipped))
    assert list(skipped) == sorted(skipped)
    assert all(2 <= layer < layers - 2 for layer in skipped)


def test_a_value_out_of_range_is_refused_with_the_range() -> None:
    with pytest.raises(ValueError, match="temperature is 3, but must be from 0 to 2"):
        AppSettings().with_value("temperature", 3)
