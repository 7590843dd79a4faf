"""Making the low-bit copy of a whole model on the CPU, matrix after matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import LoadCancelled
from engine.lowbit.codes import LowBitCodes, group_of, round_to_nearest
from engine.lowbit.packed import PackedMatrix, pack
from engine.lowbit.statistics import InputSample, Statistics
from engine.model.matrix import Matrix
from engine.model.weights import as_float32
from engine.records import LoadProgress

KIND_NAMES = {0: "F32", 1: "F16", 2: "BF16"}
AWARE_BELOW = 8  # bits: at eight, rounding to nearest is as good as any
PIECE_VALUES = 2**22  # weights rounded to nearest at a time


@dataclass(frozen=True, slots=True)
class Watch:
    """How a long job reports and is ended."""

    progress: Callable[[LoadProgress], None] = lambda _: None
    cancelled: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """What is copied: groups of matrices that share an input, and the bits of each matrix."""

    inputs: tuple[tuple[str, ...], ...]
    bits: Callable[[str], int]


def make_copies(
    source: Callable[[str], Matrix],
    plan: CopyPlan,
    statistics: Callable[[Callable[[], bool]], Statistics],
    threads: int,
    watch: Watch,
) -> dict[str, PackedMatrix]:
    """The copy of every matrix of the plan.

    statistics: computes those of the full model's inputs; asked only where rounding is coarse enough for them to
    matter. Raises LoadCancelled.
    """
    coarse = any(plan.bits(name) < AWARE_BELOW for names in plan.inputs for name in names)
    seen = statistics(watch.cancelled) if coarse else {}
    sizes = [sum(source(name).rows * source(name).columns for name in names) for names in plan.inputs]
    copies: dict[str, PackedMatrix] = {}
    for number, names in enumerate(plan.inputs):
        if watch.cancelled():
            raise LoadCancelled("Loading was cancelled.")
        watch.progress(LoadProgress("Preparing the draft", number, len(sizes), sum(sizes[:number]), sum(sizes)))
        copies |= _copies_of(names, source, plan, seen.get(names[0]), threads)
    watch.progress(LoadProgress("Preparing the draft", len(sizes), len(sizes), sum(sizes), sum(sizes)))
    return copies


def _copies_of(
    names: Sequence[str], source: Callable[[str], Matrix], plan: CopyPlan, sample: InputSample | None, threads: int
) -> dict[str, PackedMatrix]:
    """Of the matrices that share one input."""
    from engine.lowbit.rounding_compiled import feedback_compiled, round_matrix_compiled

    coarse = [name for name in names if plan.bits(name) < AWARE_BELOW]
    feedback = None if not coarse or sample is None or sample.rows is None else feedback_compiled(sample.rows)
    made: dict[str, PackedMatrix] = {}
    for name in names:
        bits, matrix = plan.bits(name), source(name)
        group = group_of(matrix.columns)
        if bits >= AWARE_BELOW or sample is None:
            codes = _nearest(matrix, bits, group)
        else:
            weight = _values(matrix, 0, matrix.rows)
            codes = round_matrix_compiled(weight, bits, group, sample.mean_square, feedback, threads)
        made[name] = pack(codes)
    return made


def _nearest(matrix: Matrix, bits: int, group: int) -> LowBitCodes:
    """Rounded to nearest a few rows at a time, so that little memory is taken beside the codes."""
    step = max(1, PIECE_VALUES // matrix.columns)
    starts = range(0, matrix.rows, step)
    parts = [round_to_nearest(_values(matrix, first, first + step), bits, group) for first in starts]
    codes, scale, low = (np.concatenate([getattr(part, of) for part in parts]) for of in ("codes", "scale", "low"))
    return LowBitCodes(codes, scale, low, parts[0].factors, bits, group)


def _values(matrix: Matrix, first: int, last: int) -> np.ndarray:
    return np.ascontiguousarray(as_float32(np.asarray(matrix.owner[0][first:last]), KIND_NAMES[matrix.kind]))
