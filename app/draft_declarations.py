"""What the settings page shows for each dial of the draft, and which of them a device has no use for. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.declaration import QT_TRANSLATE_NOOP, RECIPE, Declaration
from engine.recipe import Ingredients
from engine.settings import MAX_GAMMA

ALL = (0, QT_TRANSLATE_NOOP("Settings", "All"))


def _counts(*values: int) -> tuple[tuple[int, str], ...]:
    return (ALL, *((value, f"{value:,}".replace(",", "\u202f")) for value in values))


def _share(label: str, help_words: str, low: float, high: float) -> Declaration:
    """A slider over a share of the model's parts, in steps of 5 %."""
    return Declaration(label, help_words, RECIPE, "slider", low=low, high=high, step=0.05, percent=True)


SPECULATION = Declaration(
    QT_TRANSLATE_NOOP("Settings", "Speculation"),
    QT_TRANSLATE_NOOP("Settings", "Draft several tokens cheaply and check them at once."),
    RECIPE,
    "switch",
    simple=True,
)
OWN = Declaration(
    QT_TRANSLATE_NOOP("Settings", "Recipe"),
    QT_TRANSLATE_NOOP("Settings", "Automatic takes what calibration found, or else the model's default."),
    RECIPE,
    "choice",
    choices=((False, QT_TRANSLATE_NOOP("Settings", "Automatic")), (True, QT_TRANSLATE_NOOP("Settings", "My own"))),
)
WEIGHTS = Declaration(
    QT_TRANSLATE_NOOP("Settings", "Draft weights"),
    QT_TRANSLATE_NOOP("Settings", "Fewer bits draft faster and miss more often."),
    RECIPE,
    "choice",
    choices=(
        (16, QT_TRANSLATE_NOOP("Settings", "Same")),
        (8, QT_TRANSLATE_NOOP("Settings", "8 bit")),
        (4, QT_TRANSLATE_NOOP("Settings", "4 bit")),
        (3, QT_TRANSLATE_NOOP("Settings", "3 bit")),
    ),
)
OUTPUT_TOKENS = Declaration(
    QT_TRANSLATE_NOOP("Settings", "Output tokens"),
    QT_TRANSLATE_NOOP("Settings", "The draft proposes only the most frequent tokens and those of the chat."),
    RECIPE,
    "list",
    choices=_counts(32768, 16384, 8192, 4096),
)
SPARSITY = _share(
    QT_TRANSLATE_NOOP("Settings", "Input channels dropped"),
    QT_TRANSLATE_NOOP("Settings", "Small inputs of each matrix count as zero, and their weights are not read."),
    0.0,
    0.9,
)
NEURONS = _share(
    QT_TRANSLATE_NOOP("Settings", "MLP neurons kept"),
    QT_TRANSLATE_NOOP("Settings", "A predictor leaves the others out of the draft."),
    0.1,
    1.0,
)
HEADS = _share(
    QT_TRANSLATE_NOOP("Settings", "Attention heads kept"),
    QT_TRANSLATE_NOOP("Settings", "A predictor leaves the others out of the draft."),
    0.1,
    1.0,
)
SKIPPED = Declaration(
    QT_TRANSLATE_NOOP("Settings", "Skipped sub-layers"),
    QT_TRANSLATE_NOOP("Settings", "Attention blocks left out of the draft."),
    RECIPE,
    "slider",
    low=0,
    high=24,
)
WINDOW = Declaration(
    QT_TRANSLATE_NOOP("Settings", "Positions attended to"),
    QT_TRANSLATE_NOOP("Settings", "The draft looks back no further than this in long chats."),
    RECIPE,
    "list",
    choices=_counts(2048, 1024, 512, 256),
)
GAMMA_FIXED = Declaration(
    QT_TRANSLATE_NOOP("Settings", "Draft length γ"),
    QT_TRANSLATE_NOOP("Settings", "Automatic follows the measured gain and stops drafting when it loses."),
    RECIPE,
    "choice",
    choices=((False, QT_TRANSLATE_NOOP("Settings", "Automatic")), (True, QT_TRANSLATE_NOOP("Settings", "Fixed"))),
)
GAMMA = Declaration(
    QT_TRANSLATE_NOOP("Settings", "Fixed γ"),
    QT_TRANSLATE_NOOP("Settings", "Tokens drafted in each cycle when γ is fixed."),
    RECIPE,
    "slider",
    low=1,
    high=MAX_GAMMA,
)

OWN_DIALS = (
    "draft_weight_bits",
    "output_tokens",
    "input_sparsity",
    "neuron_share",
    "head_share",
    "skipped_sublayers",
    "kv_window",
)
"""Settings that count only with a recipe of one's own."""


def usable(able: Ingredients) -> Mapping[str, bool]:
    """Whether each dial, save the weights, changes anything on a device."""
    return {
        "output_tokens": able.reduced_vocabulary,
        "input_sparsity": able.input_sparsity,
        "neuron_share": able.neurons,
        "head_share": able.heads,
        "skipped_sublayers": True,
        "kv_window": able.kv_window,
    }


def missing_widths(able: Ingredients) -> tuple[Any, ...]:
    """Choices of `WEIGHTS` that a device has no draft with."""
    return tuple(bits for bits, _ in WEIGHTS.choices if bits not in able.weight_bits)
