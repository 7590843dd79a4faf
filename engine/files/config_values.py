"""Reading values out of config.json, each checked: what makes no sense is refused with key, value and rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import ModelFileError
from engine.files.wording import shown


@dataclass(frozen=True, slots=True)
class Values:
    """The contents of a JSON object. Each reader raises ModelFileError with one sentence.

    A key that is missing or null has the default; where that is None too, the file lacks the key.
    """

    raw: Mapping[str, Any]

    def has(self, key: str) -> bool:
        """Whether the key is there and not null."""
        return self.raw.get(key) is not None

    def size(self, key: str, default: int | None = None) -> int:
        """A whole number above 0."""
        value = self._get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**31:
            raise bad(key, value, "must be a whole number above 0")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number above 0."""
        value = self._get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value <= 0:
            raise bad(key, value, "must be a number above 0")
        return float(value)

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise bad(key, value, "must be true or false")
        return value

    def choice(self, key: str, default: str, allowed: tuple[str, ...]) -> str:
        """One of the allowed texts."""
        value = self._get(key, default)
        if value not in allowed:
            raise bad(key, value, f"must be one of {', '.join(allowed)}")
        return str(value)

    def ids(self, key: str) -> tuple[int, ...]:
        """A token id or a list of them; empty where there is none."""
        value = self.raw.get(key)
        ids = value if isinstance(value, list) else [] if value is None else [value]
        for token in ids:
            if not isinstance(token, int) or isinstance(token, bool) or token < 0:
                raise bad(key, value, "must be a token id or a list of them")
        return tuple(ids)

    def numbers(self, key: str, count: int) -> tuple[float, ...]:
        """A list of `count` finite numbers above 0."""
        value = self._get(key, None)
        if not isinstance(value, list) or len(value) != count:
            raise bad(key, value, f"must be a list of {count} numbers")
        return tuple(Values({key: item}).number(key) for item in value)

    def per_layer(self, key: str, layers: int) -> list[Any]:
        """A list with a value for each layer."""
        value = self._get(key, None)
        if not isinstance(value, list) or len(value) != layers:
            raise bad(key, value, f"must be a list of {layers} values, one a layer")
        return value

    def _get(self, key: str, default: Any) -> Any:
        value = self.raw.get(key)
        if value is not None:
            return value
        if default is None:
            raise ModelFileError(f"config.json lacks {key}.")
        return default


def bad(key: str, value: object, rule: str) -> ModelFileError:
    """The error for a value that breaks a rule ("must be …")."""
    return ModelFileError(f"config.json has {key} = {shown(value)}, but it {rule}.")
