"""Making the low-bit copy of a whole model on the CPU, matrix after matrix."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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
LARGEST = np.float32(65504.0)  # of the float16 that scales and lows are; no model that works has such weights
SENSIBLE = 1e30  # mean square of an input above which a model is broken, and its drafts may be anything
PIECE_VALUES = 2**23  # weights rounded at a time


@dataclass(frozen=True, slots=True)
class Watch:
    """How a long job reports and is ended."""

    progress: Callable[[LoadProgress], None] = lambda _: None
    cancelled: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """What is copied, and to how many bits.

    inputs: groups of matrices that share an input. output: the one that makes logits: the leading ones are computed
    again with the model's own rows, so that it need only be good enough to find them.
    """

    inputs: tuple[tuple[str, ...], ...]
    bits: int
    output: str


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
    seen = statistics(watch.cancelled) if plan.bits < AWARE_BELOW else {}
    sizes = [sum(source(name).rows * source(name).columns for name in names) for names in plan.inputs]
    copies: dict[str, PackedMatrix] = {}
    with ThreadPoolExecutor(1, "specular-rounding") as thread:
        for number, (names, known) in enumerate(zip(plan.inputs, _all_known(plan, seen, thread), strict=True)):
            if watch.cancelled():
                raise LoadCancelled("Loading was cancelled.")
            watch.progress(LoadProgress("Preparing the draft", number, len(sizes), sum(sizes[:number]), sum(sizes)))
            copies |= {name: pack(_rounded(source(name), plan.bits, known, threads)) for name in names}
    watch.progress(LoadProgress("Preparing the draft", len(sizes), len(sizes), sum(sizes), sum(sizes)))
    return copies


@dataclass(frozen=True, slots=True)
class _Known:
    """What rounding knows of an input: None where nothing, or nothing sensible."""

    mean_square: np.ndarray | None = None
    feedback: np.ndarray | None = None


def _all_known(plan: CopyPlan, seen: Statistics, thread: ThreadPoolExecutor) -> Iterator[_Known]:
    """Of each input of the plan, the next one computed by the thread while this one is used."""
    following: deque[Future[_Known]] = deque()
    for names in plan.inputs:
        following.append(thread.submit(_known, seen.get(names[0]), plan.output not in names))
        if len(following) > 1:
            yield following.popleft().result()
    while following:
        yield following.popleft().result()


def _known(sample: InputSample | None, passes_on: bool) -> _Known:
    from engine.lowbit.rounding_compiled import feedback_compiled

    if sample is None or not sample.mean_square.max() < SENSIBLE:  # true for NaN too
        return _Known()
    feedback = feedback_compiled(sample.rows) if passes_on and sample.rows is not None else None
    return _Known(sample.mean_square, feedback)


def _rounded(matrix: Matrix, bits: int, known: _Known, threads: int) -> LowBitCodes:
    """The codes of a matrix, rounded some rows at a time, so that little memory is taken beside them."""
    from engine.lowbit.rounding_compiled import round_matrix_compiled

    group = group_of(matrix.columns)
    step = max(1, PIECE_VALUES // matrix.columns)
    parts: list[LowBitCodes] = []
    for first in range(0, matrix.rows, step):
        stored = np.asarray(matrix.owner[0][first : first + step])
        weight = np.ascontiguousarray(as_float32(stored, KIND_NAMES[matrix.kind]))
        if not np.abs(weight).max() < LARGEST:  # true for NaN too
            weight = np.clip(np.nan_to_num(weight, nan=0.0), -LARGEST, LARGEST)
        if known.mean_square is None:
            parts.append(round_to_nearest(weight, bits, group))
        else:
            parts.append(round_matrix_compiled(weight, bits, group, known.mean_square, known.feedback, threads))
    codes, scale, low = (np.concatenate([getattr(part, of) for part in parts]) for of in ("codes", "scale", "low"))
    return LowBitCodes(codes, scale, low, parts[0].factors, bits, group)
