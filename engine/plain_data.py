"""Frozen dataclasses to plain JSON values and back, strictly: every field of the right type, and no field unknown."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
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
    wanted: Any = kind
    try:
        made: T = _reader(wanted)(value)
    except Misfit as error:
        raise Misfit(f"its {where}{error}") from None
    return made


Reader = Callable[[Any], Any]


@cache
def _reader(wanted: Any) -> Reader:
    """What reads values of a type; made once a type. It raises Misfit with the place below the value and the reason."""
    origin = get_origin(wanted)
    if origin in (Union, types.UnionType):
        return _optional(_reader(next(option for option in get_args(wanted) if option is not type(None))))
    if origin is tuple:
        return _list(_reader(get_args(wanted)[0]))
    if is_dataclass(wanted):
        return _object(wanted)
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return _choice(wanted)
    if wanted is float:
        return _number
    if wanted in _SCALARS:
        return _scalar(wanted, _SCALARS[wanted])
    raise TypeError(f"Values of type {wanted} cannot be read.")


def _object(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    readers = {f.name: _reader(hints[f.name]) for f in fields(kind)}
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Misfit(" is no object")
        given = {}
        for name, item in value.items():
            reader = readers.get(name)
            if reader is None:
                raise Misfit(f" has an unknown field {name[:40]!r}")
            try:
                given[name] = reader(item)
            except Misfit as error:
                raise Misfit(f".{name}{error}") from None
        for name in needed:
            if name not in given:
                raise Misfit(f".{name} is missing")
        return kind(**given)

    return read


def _optional(reader: Reader) -> Reader:
    return lambda value: None if value is None else reader(value)


def _list(reader: Reader) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise Misfit(" is no list")
        return tuple([reader(item) for item in value])

    return read


def _choice(kind: type[Enum]) -> Reader:
    members = {member.value: member for member in kind}

    def read(value: Any) -> Any:
        if not isinstance(value, str) or value not in members:
            raise Misfit(" is none of its choices")
        return members[value]

    return read


def _number(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value)
    raise Misfit(" is no number")


_SCALARS = {int: " is no whole number", bool: " is neither true nor false", str: " is no text"}


def _scalar(wanted: Any, complaint: str) -> Reader:
    whole = wanted is int

    def read(value: Any) -> Any:
        if type(value) is not wanted or (whole and not -(2**63) < value < 2**63):
            raise Misfit(complaint)
        return value

    return read


def is_time(value: float) -> bool:
    """Whether a number can be seconds of a reply."""
    return math.isfinite(value) and 0 <= value < 1e7
