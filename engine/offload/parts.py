"""The parts of a model that are placed one by one: each layer's attention and MLP, and the output matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.files.config import ModelConfig
from engine.model import programme as p

ATTENTION, MLP, OUTPUT = "attention", "mlp", "output"


@dataclass(frozen=True, slots=True)
class Part:
    """Matrices that a pass reads one after the other. layer: None for the output matrix. nbytes: of all of them.

    tensors: their names, in the order of a pass.
    """

    index: int
    layer: int | None
    kind: str
    tensors: tuple[str, ...]
    nbytes: int

    @property
    def name(self) -> str:
        """For people."""
        if self.layer is None:
            return "the output matrix"
        return f"layer {self.layer}'s {'attention' if self.kind == ATTENTION else 'MLP'}"


def part_index(layer: int, kind: str) -> int:
    """A layer's part in the order of a pass."""
    return 2 * layer + (kind == MLP)


def parts_of(config: ModelConfig, sizes: Mapping[str, int]) -> tuple[Part, ...]:
    """The parts of a model in the order of a pass. sizes: bytes of every tensor by name.

    What is not in a part (the embedding, also where it is the output matrix too; norms; biases) is always in the fast
    memory.
    """
    found: list[Part] = []

    def add(layer: int | None, kind: str, names: list[str]) -> None:
        present = tuple(name for name in names if name in sizes)
        found.append(Part(len(found), layer, kind, present, sum(sizes[name] for name in present)))

    for layer in range(config.layers):
        at = f"model.layers.{layer}."
        add(layer, ATTENTION, [f"{at}self_attn.{part}_proj.weight" for part in "qkvo"])
        add(layer, MLP, [f"{at}mlp.{part}_proj.weight" for part in ("gate", "up", "down")])
    if p.output_matrix(config, frozenset(sizes)) != p.EMBEDDING:
        add(None, OUTPUT, [p.OUTPUT])
    return tuple(found)
