"""How a setting is declared: its words, its range, and the check that every value passes. No Qt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


def QT_TRANSLATE_NOOP(context: str, text: str) -> str:
    """Mark `text` for translation under `context` without translating it yet."""
    return text


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the settings page needs to know of one setting.

    kind: the editor: "switch", "choice", "list", "slider", "number", "seed", "text", "path", "budget" or "hidden".
    low, high, step: the range of a number; percent shows 0 to 1 as 0 to 100 %.
    choices: (value, label) pairs of a choice.
    reload: the model must be loaded again before a change counts; restart: the window must be opened again.
    simple: shown in simple mode too; the others only in expert mode.
    """

    label: str
    help: str
    group: str
    kind: str
    low: float = 0.0
    high: float = 0.0
    step: float = 1.0
    percent: bool = False
    choices: tuple[tuple[Any, str], ...] = ()
    reload: bool = False
    restart: bool = False
    simple: bool = False


MODEL, RECIPE, SAMPLING, PROMPT, APPEARANCE, HIDDEN = "model", "recipe", "sampling", "prompt", "appearance", "hidden"

GROUPS: tuple[tuple[str, str, str], ...] = (
    (MODEL, QT_TRANSLATE_NOOP("Settings", "Model"), ""),
    (
        RECIPE,
        QT_TRANSLATE_NOOP("Settings", "Draft recipe"),
        QT_TRANSLATE_NOOP("Settings", "how the cheap variant is made"),
    ),
    (
        SAMPLING,
        QT_TRANSLATE_NOOP("Settings", "Sampling"),
        QT_TRANSLATE_NOOP("Settings", "how the full model chooses a token"),
    ),
    (PROMPT, QT_TRANSLATE_NOOP("Settings", "System prompt"), ""),
    (APPEARANCE, QT_TRANSLATE_NOOP("Settings", "Appearance"), ""),
)
"""Groups in the order of the page: name, title, and a word beside the title."""


def check(name: str, declared: Declaration, default: Any, value: Any) -> Any:
    """`value` in the type of `default`. Raises ValueError with a sentence naming `name` where it cannot be.

    A setting of kind "seed" may also be None.
    """
    if declared.choices:
        for allowed, _ in declared.choices:
            if value == allowed and isinstance(value, bool) == isinstance(allowed, bool):
                return allowed
        raise ValueError(f"{name} is {value!r}, which is none of its choices.")
    if declared.kind == "seed" and value is None:
        return None
    if isinstance(default, tuple):
        if isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(v, str) for v in value):
            return tuple(value)
    elif isinstance(default, bool | str):
        if isinstance(value, type(default)):
            return value
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return _in_range(name, value, declared, whole=not isinstance(default, float))
    raise ValueError(f"{name} is {value!r}, which is of a wrong kind.")


def _in_range(name: str, value: float, declared: Declaration, *, whole: bool) -> float | int:
    if not declared.low <= value <= declared.high:
        raise ValueError(f"{name} is {value:g}, but must be from {declared.low:g} to {declared.high:g}.")
    if whole and value != int(value):
        raise ValueError(f"{name} is {value:g}, but must be a whole number.")
    return int(value) if whole else float(value)
