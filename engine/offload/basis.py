"""What a forecast of a budget rests on, gathered once for a model and asked about many budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.files.config import ModelConfig


@dataclass(frozen=True, slots=True)
class Basis:
    """A model's shape and tensors on "cuda" or "cpu", with so much context and drafts of these widths in bits.

    card: UUID of the card it is on, where it is on one. held: bytes that it takes already, which are its to place
    anew; 0 where it is not loaded.
    """

    config: ModelConfig
    sizes: Mapping[str, int]
    device: str
    context: int
    widths: tuple[int, ...]
    card: str | None = None
    held: int = 0
