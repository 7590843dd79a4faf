"""What the settings mean to the engine, and that each is declared in full."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from fake_engine import model_info

import app.declaration
import app.draft_declarations
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
from engine.recipe import Ingredients, Recipe
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
        Path(module.__file__ or "").read_text(encoding="utf-8")
        for module in (settings, app.declaration, app.draft_declarations)
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
        assert values.speculating(None).gamma == values.gamma


def test_untouched_settings_leave_recipe_and_gamma_to_the_engine() -> None:
    assert AppSettings().speculating(model_info()) == Speculation(enabled=True, gamma=None, recipe=None)
    dialled = AppSettings(draft_weight_bits=16, neuron_share=0.5)
    assert dialled.speculating(model_info()).recipe is None  # dials count only with a recipe of one's own
    assert AppSettings(draft_own=True).speculating(None).recipe is None
    assert AppSettings().sampling() == Sampling()


EVERY_DIAL = AppSettings(
    draft_own=True,
    draft_weight_bits=3,
    output_tokens=8192,
    input_sparsity=0.3,
    neuron_share=0.5,
    head_share=0.75,
    skipped_sublayers=2,
    kv_window=512,
)


def test_a_recipe_of_ones_own_is_spelled_out() -> None:
    able = replace(model_info(), ingredients=Ingredients((16, 8, 4, 3), True, True, True, True, True))
    assert EVERY_DIAL.recipe(able) == Recipe(3, 0.3, 0.5, 0.75, (8, 21), (), 8192, 512)
    assert AppSettings(draft_own=True).recipe(able) == Recipe()


def test_dials_that_the_device_has_no_use_for_count_as_not_set() -> None:
    bare = replace(model_info(), ingredients=Ingredients((16, 4)), recipe=Recipe(4, skipped_mlp=(1,)))
    assert EVERY_DIAL.recipe(bare) == Recipe(4, skipped_attention=(8, 21))


def test_all_tokens_of_a_small_vocabulary_stay() -> None:
    small = replace(model_info(), vocabulary=8192)
    recipe = EVERY_DIAL.recipe(small)
    assert recipe is not None and recipe.reduced_vocabulary is None


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
