"""Typed access to the metadata keys of a GGUF file's architecture, refusing what makes no sense by its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.errors import ModelFileError
from engine.files.gguf_reader import GgufFile
from engine.files.wording import shown


@dataclass(frozen=True, slots=True)
class GgufValues:
    """prefix: the architecture and a dot. Each reader raises ModelFileError for a value that is missing or odd."""

    file: GgufFile
    prefix: str

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return self.prefix + key in self.file.metadata

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number; a list of one value per layer counts where all are alike."""
        value = self._get(key, default)
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]
        if not isinstance(value, int):
            raise ModelFileError(f"{self.file.path.name} has {self.prefix}{key} = {shown(value)}, not a whole number.")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A number as it was meant: 1e-05, not 9.999999747378752e-06, which is what float32 makes of it."""
        value = self._get(key, default)
        if not isinstance(value, int | float):
            raise ModelFileError(f"{self.file.path.name} has {self.prefix}{key} = {shown(value)}, not a number.")
        return float(f"{value:.7g}")

    def text(self, key: str, default: str) -> str:
        """A text."""
        return str(self.file.metadata.get(self.prefix + key, default))

    def _get(self, key: str, default: float | None) -> Any:
        value = self.file.metadata.get(self.prefix + key, default)
        if value is None:
            raise ModelFileError(f"{self.file.path.name} lacks the metadata {self.prefix}{key}.")
        return value
