"""Compile-time constants among the arguments of an intrinsic."""

from __future__ import annotations

from numba.core import types


def literals(*arguments: types.Type) -> list[int] | None:
    if all(isinstance(argument, types.IntegerLiteral) for argument in arguments):
        return [argument.literal_value for argument in arguments]
    return None
