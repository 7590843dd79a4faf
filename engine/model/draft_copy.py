"""The draft's own copies of matrices on the CPU: int8 rows, and neuron-major down projections."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.errors import LoadCancelled
from engine.kernels.compiled.quantise import quantise_rows
from engine.kernels.compiled.team import Team
from engine.lowbit.codes import LowBitCodes, group_of
from engine.lowbit.copies import KIND_NAMES
from engine.lowbit.rounding_compiled import round_matrix_compiled
from engine.model.matrix import Matrix
from engine.model.weights import as_float32
from engine.records import LoadProgress

KIND_I8 = 3


def quantised(matrix: Matrix, team: Team) -> Matrix:
    """An int8 copy with one float32 scale a row, made by all threads."""
    out = np.empty((matrix.rows, matrix.columns), np.int8)
    scales = np.empty(matrix.rows, np.float32)

    def share(member: int) -> None:
        first, last = matrix.rows * member // team.size, matrix.rows * (member + 1) // team.size
        quantise_rows(matrix.address, matrix.kind, out, scales, first, last)

    team.run(share)
    return Matrix.of(out, KIND_I8, scales)


def quantised_all(
    source: Callable[[str], Matrix],
    names: tuple[str, ...],
    team: Team,
    progress: Callable[[LoadProgress], None],
    cancelled: Callable[[], bool],
) -> dict[str, Matrix]:
    """int8 copies of the named matrices. Raises LoadCancelled between two of them."""
    sizes = [source(name).rows * source(name).columns for name in names]
    copies: dict[str, Matrix] = {}
    for number, name in enumerate(names):
        if cancelled():
            raise LoadCancelled("Loading was cancelled.")
        progress(LoadProgress("Preparing the draft", number, len(names), sum(sizes[:number]), sum(sizes)))
        copies[name] = quantised(source(name), team)
    progress(LoadProgress("Preparing the draft", len(names), len(names), sum(sizes), sum(sizes)))
    return copies


def transposed(matrix: Matrix) -> Matrix:
    """The same values with rows and columns swapped: a down projection with one contiguous row a neuron."""
    return Matrix.of(np.ascontiguousarray(matrix.owner[0].T), matrix.kind)


def neuron_major_codes(matrix: Matrix) -> LowBitCodes:
    """4-bit codes of a down projection turned round, [neurons, hidden], in groups of the hidden size."""
    values = as_float32(np.asarray(matrix.owner[0]), KIND_NAMES[matrix.kind])
    return round_matrix_compiled(np.ascontiguousarray(values.T), 4, group_of(matrix.rows))


def size_of(matrices: dict[str, Matrix]) -> int:
    """Bytes the copies take."""
    return sum(part.nbytes for matrix in matrices.values() for part in matrix.owner if part is not None)
