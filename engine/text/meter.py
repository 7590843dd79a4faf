"""Bounds on what one rendering of a chat template may use: time, and text produced."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any

from engine.errors import TemplateError

MAX_SECONDS = 2.0
MAX_TEXT = 4_000_000  # characters of one string, and items of one list
MAX_WORK = 64_000_000  # characters and items produced in all
MAX_ITEMS = 200_000  # values in one nested list or dictionary
MAX_BITS = 4096  # of one whole number


class TemplateRefused(TemplateError):
    """The template is unsafe or unbounded: it must not be tried again, whatever the messages."""


class Meter:
    """Counts the work of one rendering. Every method raises TemplateRefused once a bound is crossed."""

    def __init__(self, seconds: float = MAX_SECONDS) -> None:
        self._deadline = monotonic() + seconds
        self._seconds = seconds
        self._work = 0

    def charge(self, amount: int) -> None:
        """Account for `amount` characters or items that exist now or are about to."""
        self._work += amount + 1
        if amount > MAX_TEXT or self._work > MAX_WORK:
            raise TemplateRefused("The chat template was stopped: it makes more text than a prompt can hold.")
        if monotonic() > self._deadline:
            raise TemplateRefused(f"The chat template was stopped: it ran for more than {self._seconds:g} seconds.")

    def made(self, value: Any) -> Any:
        """Account for a value just made: a string's characters, a container's items. Returns it."""
        self.charge(len(value) if isinstance(value, str | bytes) else self.items(value))
        return value

    def held(self, value: Any) -> Any:
        """Account for a value that was only found or gathered: no string of it is new. Returns it."""
        self.charge(self.items(value))
        return value

    def printed(self, *values: Any) -> None:
        """Account for the text of values about to be printed, joined or formatted."""
        for value in values:
            self.charge(self._walk(value, characters=True))

    def items(self, value: Any) -> int:
        """Values in a nested container, each counted as often as it can be reached; iterators count once."""
        return self._walk(value, characters=False)

    def _walk(self, value: Any, *, characters: bool) -> int:
        total, items, waiting = 0, 0, [value]
        while waiting:
            value = waiting.pop()
            items += 1
            if isinstance(value, str | bytes):
                total += len(value) if characters else 0
            elif isinstance(value, int):
                self._check_bits(value.bit_length())
            elif isinstance(value, Mapping):
                self._check_items(items + len(waiting) + 2 * len(value))
                waiting += [*value.keys(), *value.values()]
            elif isinstance(value, list | tuple | set | frozenset):
                self._check_items(items + len(waiting) + len(value))
                waiting += value
        return total + items

    def product(self, left: Any, right: Any) -> None:
        """Account for `left * right` before it is made."""
        for factor, count in ((left, right), (right, left)):
            if isinstance(factor, str | list | tuple) and isinstance(count, int):
                size = len(factor) if isinstance(factor, str) else self.items(factor)
                self.charge(size * max(count, 0))
        if isinstance(left, int) and isinstance(right, int):
            self._check_bits(left.bit_length() + right.bit_length())

    def power(self, left: Any, right: Any) -> None:
        """Account for `left ** right` before it is made."""
        if isinstance(left, int) and isinstance(right, int):
            self._check_bits(left.bit_length() * max(right, 1))

    def _check_items(self, count: int) -> None:
        if count > MAX_ITEMS:
            raise TemplateRefused("The chat template was stopped: it builds a list too large for a prompt.")

    def _check_bits(self, bits: int) -> None:
        if bits > MAX_BITS:
            raise TemplateRefused("The chat template was stopped: it computes with a number too large.")
