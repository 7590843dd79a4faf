"""Texts with figures in them, written in English and translated when they are shown. Plain data: no Qt."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """A text with {names}, marked for translation, and what stands in their place."""

    text: str
    values: tuple[tuple[str, str], ...] = ()

    @property
    def english(self) -> str:
        """The text as it is written here."""
        return fill(self.text, self.values)


def words(text: str, **values: str) -> Words:
    """A text and its values."""
    return Words(text, tuple(values.items()))


def fill(text: str, values: Iterable[tuple[str, str]]) -> str:
    """`text` with every {name} replaced; braces in a value mean nothing."""
    for name, value in values:
        text = text.replace("{" + name + "}", value)
    return text


def factor(speed_up: float) -> str:
    """S with one decimal; just below 1 with two and rounded down, so that a loss never reads as "1.0"."""
    if speed_up < 1 and round(speed_up, 1) >= 1:
        return f"{math.floor(speed_up * 100) / 100:.2f}×"
    return f"{speed_up:.1f}×"


def one(value: float | None) -> str:
    """One decimal, or "n/a"."""
    return "n/a" if value is None else f"{value:.1f}"


def two(value: float | None) -> str:
    """Two decimals, or "n/a"."""
    return "n/a" if value is None else f"{value:.2f}"


def percent(share: float | None) -> str:
    """A share as whole per cent, or "n/a"."""
    return "n/a" if share is None else f"{share * 100:.0f} %"
