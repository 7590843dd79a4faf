"""Frozen dataclasses to plain JSON values and back, strictly: every field of the right type, and no field unknown."""

from __future__ import annotations

import math
import types
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class Misfit(ValueError):
    """A value does not have the shape it must have. The text is the end of a sentence that begins with the file."""


def to_plain(value: Any) -> Any:
    """Dictionaries, lists, strings and numbers for `json.dumps`."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], value: Any, where: str) -> T:
    """The dataclass `kind` that `to_plain` was given; a field that is missing takes its default, if it has one.

    `where` names the value in errors. Raises Misfit for anything unknown, missing or of another type.
    """
    if not isinstance(value, dict):
        raise Misfit(f"its {where} is no object")
    hints, known = _hints(kind), {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    for name in value:
        if name not in known:
            raise Misfit(f"its {where} has an unknown field {name[:40]!r}")
    given = {name: _converted(hints[name], item, f"{where}.{name}") for name, item in value.items()}
    for name, field in known.items():
        if name not in given and field.default is MISSING and field.default_factory is MISSING:
            raise Misfit(f"its {where}.{name} is missing")
    return kind(**given)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _converted(wanted: Any, value: Any, where: str) -> Any:
    origin = get_origin(wanted)
    if origin in (Union, types.UnionType):
        options = get_args(wanted)
        if value is None and type(None) in options:
            return None
        return _converted(next(option for option in options if option is not type(None)), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise Misfit(f"its {where} is no list")
        item_type = get_args(wanted)[0]
        return tuple([_converted(item_type, item, where) for item in value])
    if is_dataclass(wanted):
        return from_plain(wanted, value, where)  # type: ignore[arg-type]
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        if value not in [member.value for member in wanted]:
            raise Misfit(f"its {where} is none of its choices")
        return wanted(value)
    return _scalar(wanted, value, where)


def _scalar(wanted: Any, value: Any, where: str) -> Any:
    if wanted is float:
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
            return float(value)
        raise Misfit(f"its {where} is no number")
    if wanted in (int, bool, str):
        if type(value) is wanted and not (wanted is int and abs(value) >= 2**63):
            return value
        names = {int: "no whole number", bool: "neither true nor false", str: "no text"}
        raise Misfit(f"its {where} is {names[wanted]}")
    raise TypeError(f"{where}: values of type {wanted} cannot be read")


def is_time(value: float) -> bool:
    """Whether a number can be seconds of a reply."""
    return math.isfinite(value) and 0 <= value < 1e7
