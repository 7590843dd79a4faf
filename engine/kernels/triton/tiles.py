"""Block sizes of the fixed-width matrix kernel: measured defaults, and per shape and card what tuning found.

A tile changes the order in which K is summed, and so the last bits of a result. It is therefore read once at load
and stays for the life of the runner: plain and speculative passes always share it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from engine.files.paths import cache_dir, ensure_folder


class Role(str, Enum):
    """What a matrix does in a layer; the best tile depends on it as much as on the shape."""

    QKV = "qkv"
    OUTPUT = "output"
    GATE_UP = "gate_up"
    DOWN = "down"
    LOGITS = "logits"


@dataclass(frozen=True, slots=True)
class Tile:
    """rows x columns of the weight in one step of a program, warps, pipeline stages, values prefetched ahead."""

    block_n: int
    block_k: int
    warps: int
    stages: int
    ahead: int = 0


# Measured on an H200 with 4096-wide and 8192-wide shapes; older cards have less shared memory for the pipeline.
_NARROW = {
    Role.QKV: Tile(64, 128, 4, 4),
    Role.OUTPUT: Tile(16, 512, 4, 4, 512),
    Role.GATE_UP: Tile(64, 128, 4, 3),
    Role.DOWN: Tile(16, 256, 4, 6, 512),
    Role.LOGITS: Tile(128, 64, 4, 5),
}
_WIDE = {
    Role.QKV: Tile(64, 128, 4, 4),
    Role.OUTPUT: Tile(64, 128, 4, 4, 512),
    Role.GATE_UP: Tile(64, 128, 4, 4, 512),
    Role.DOWN: Tile(32, 128, 4, 8),
    Role.LOGITS: Tile(64, 128, 4, 4),
}
_OLDER = {role: Tile(32, 128, 4, 3) for role in Role}
_TURING = {role: Tile(32, 64, 4, 2) for role in Role}
WIDE_FROM = 6144  # the smaller side of a matrix

CANDIDATES = (
    Tile(16, 256, 4, 4, 512),
    Tile(16, 256, 4, 8, 512),
    Tile(16, 512, 4, 4, 512),
    Tile(32, 128, 4, 4),
    Tile(32, 128, 4, 8),
    Tile(32, 256, 4, 4, 512),
    Tile(64, 64, 4, 5),
    Tile(64, 128, 4, 3),
    Tile(64, 128, 4, 4, 512),
    Tile(128, 64, 4, 5),
)


def default_tile(role: Role, n: int, k: int, capability: tuple[int, int]) -> Tile:
    """A sensible tile for a matrix [n, k] on a card of this compute capability, shrunk to fit small shapes."""
    if capability < (8, 0):
        tile = _TURING[role]
    elif capability < (9, 0) or capability >= (12, 0):  # consumer cards: about 100 KiB of shared memory
        tile = _OLDER[role]
    else:
        tile = (_WIDE if min(n, k) >= WIDE_FROM else _NARROW)[role]
    return fitted(tile, n, k)


def fitted(tile: Tile, n: int, k: int) -> Tile:
    """The tile, halved until it is not larger than the matrix (never below what tensor cores take)."""
    block_n, block_k = tile.block_n, tile.block_k
    while block_n > 16 and block_n > n:
        block_n //= 2
    while block_k > 32 and block_k > k:
        block_k //= 2
    ahead = tile.ahead if k >= 1024 else 0
    return Tile(block_n, block_k, tile.warps, tile.stages, ahead)


class TileCache:
    """Tiles found by tuning on one card, kept in a JSON file; a missing or broken file counts as empty."""

    def __init__(self, card: str) -> None:
        safe = "".join(c if c.isalnum() else "-" for c in card)
        self._path = cache_dir() / "tiles" / f"{safe}.json"
        self._tiles = self._read(self._path)

    def get(self, role: Role, n: int, k: int, dtype: str) -> Tile | None:
        """The tuned tile of a shape, if there is one."""
        return self._tiles.get(self._key(role, n, k, dtype))

    def put(self, role: Role, n: int, k: int, dtype: str, tile: Tile) -> None:
        """Remember a tile and write the file."""
        self._tiles[self._key(role, n, k, dtype)] = tile
        ensure_folder(self._path.parent)
        text = json.dumps({key: asdict(value) for key, value in self._tiles.items()}, indent=1)
        partial = self._path.with_suffix(".part")
        partial.write_text(text, "utf-8")
        partial.replace(self._path)

    @staticmethod
    def _key(role: Role, n: int, k: int, dtype: str) -> str:
        return f"{role.value} {n}x{k} {dtype}"

    @staticmethod
    def _read(path: Path) -> dict[str, Tile]:
        try:
            values = json.loads(path.read_text("utf-8"))
            return {str(key): Tile(**value) for key, value in values.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
