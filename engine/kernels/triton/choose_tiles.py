"""Tiles for a model on this card: from the cache, from tuning, or the defaults."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping

import torch

from engine.kernels.triton.tiles import CANDIDATES, Role, Tile, TileCache, default_tile, fitted

Measure = Callable[[dict[Role, Tile]], float]


def choose_tiles(
    shapes: Mapping[Role, tuple[int, int]], dtype: torch.dtype, device: torch.device
) -> tuple[dict[Role, Tile], bool]:
    """A tile for each role, and whether all of them come from tuning on this card."""
    capability, card = torch.cuda.get_device_capability(device), torch.cuda.get_device_name(device)
    cache, name = TileCache(card), str(dtype).removeprefix("torch.")
    found = {role: cache.get(role, n, k, name) for role, (n, k) in shapes.items()}
    tiles = {role: found[role] or default_tile(role, n, k, capability) for role, (n, k) in shapes.items()}
    return tiles, all(found.values())


def tune(
    shapes: Mapping[Role, tuple[int, int]],
    dtype: torch.dtype,
    device: torch.device,
    measure: Measure,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[Role, Tile]:
    """Try every candidate tile of every role in the whole step, keep what is faster, and store the result.

    measure: seconds of a plain step with the given tiles; it raises for tiles that the card cannot run.
    """
    tiles, _ = choose_tiles(shapes, dtype, device)
    cache, name = TileCache(torch.cuda.get_device_name(device)), str(dtype).removeprefix("torch.")
    best = statistics.median(measure(tiles) for _ in range(3))
    done, total = 0, len(shapes) * len(CANDIDATES)
    for role, (n, k) in shapes.items():
        for candidate in CANDIDATES:
            progress(done, total)
            done += 1
            tile = fitted(candidate, n, k)
            if tile == tiles[role]:
                continue
            trial = tiles | {role: tile}
            seconds = _measured(measure, trial)
            if seconds is not None and seconds < best * 0.998:
                best, tiles = seconds, trial
    for role, (n, k) in shapes.items():
        cache.put(role, n, k, name, tiles[role])
    return tiles


def _measured(measure: Measure, tiles: dict[Role, Tile]) -> float | None:
    """Seconds, or None where a tile needs more shared memory or registers than the card has."""
    from triton.runtime.errors import OutOfResources

    try:
        return measure(tiles)
    except OutOfResources:
        return None
