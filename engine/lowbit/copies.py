"""Making the low-bit copy of a whole model on the CPU, matrix after matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import LoadCancelled
from engine.kernels.compiled.team import Team
from engine.lowbit.codes import group_of, round_to_nearest
from engine.lowbit.packed import PackedMatrix, pack
from engine.lowbit.statistics import Statistics
from engine.model.matrix import Matrix
from engine.model.weights import as_float32
from engine.records import LoadProgress

KIND_NAMES = {0: "F32", 1: "F16", 2: "BF16"}
AWARE_BELOW = 8  # bits: at eight, rounding is too fine for the inputs' sizes to matter


@dataclass(frozen=True, slots=True)
class Watch:
    """How a long job reports and is ended."""

    progress: Callable[[LoadProgress], None] = lambda _: None
    cancelled: Callable[[], bool] = lambda: False


def make_copies(
    source: Callable[[str], Matrix],
    inputs: Sequence[tuple[str, ...]],
    bits: int,
    statistics: Callable[[Callable[[], bool]], Statistics],
    team: Team,
    watch: Watch,
) -> dict[str, PackedMatrix]:
    """The copy of every matrix named in `inputs`, whose members each share an input and therefore factors.

    statistics: computes those of the full model's inputs; asked only where rounding is coarse enough for them to
    matter. Raises LoadCancelled.
    """
    seen = statistics(watch.cancelled) if bits < AWARE_BELOW else {}
    sizes = [sum(source(name).rows * source(name).columns for name in names) for names in inputs]
    copies: dict[str, PackedMatrix] = {}
    for number, names in enumerate(inputs):
        if watch.cancelled():
            raise LoadCancelled("Loading was cancelled.")
        watch.progress(LoadProgress("Preparing the draft", number, len(inputs), sum(sizes[:number]), sum(sizes)))
        weights = [_values(source(name)) for name in names]
        mean_abs = seen[names[0]][0] if names[0] in seen else None
        factors = _factors(mean_abs)
        for name, weight in zip(names, weights, strict=True):
            copies[name] = pack(round_to_nearest(weight, bits, group_of(weight.shape[1]), factors))
    watch.progress(LoadProgress("Preparing the draft", len(inputs), len(inputs), sum(sizes), sum(sizes)))
    return copies


def _values(matrix: Matrix) -> np.ndarray:
    return np.ascontiguousarray(as_float32(np.asarray(matrix.owner[0]), KIND_NAMES[matrix.kind]))


def _factors(mean_abs: np.ndarray | None) -> np.ndarray | None:
    if mean_abs is None:
        return None
    root = np.sqrt(np.maximum(mean_abs, 1e-8))
    return np.clip(root / np.exp(np.log(root).mean()), 1e-2, 1e2).astype(np.float32)
