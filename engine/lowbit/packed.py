"""Low-bit weights as the compiled kernels read them: see engine/kernels/compiled/lowbit_dots.py for the layout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.kernels.compiled.lowbit_layout import ENDS_BYTES, PLANES_COLUMNS, TILE
from engine.lowbit.codes import LowBitCodes


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """rows x columns values of `bits` in groups of `group` columns.

    data: uint8 [tiles, groups, bytes of a group of a tile]; rows beyond the last are zero.
    inverse: float32 [columns], what an input is multiplied with first: 1 / the factors of the codes.
    """

    rows: int
    columns: int
    bits: int
    group: int
    data: np.ndarray
    inverse: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes a pass reads of it."""
        return self.data.nbytes + self.inverse.nbytes


def container_bits(bits: int, group: int) -> int:
    """Bits a code takes in memory: 3-bit codes in groups that planes do not fit are stored as 4-bit ones."""
    return 4 if bits == 3 and group % PLANES_COLUMNS else bits


def packed_shape(rows: int, columns: int, bits: int, group: int) -> tuple[int, int, int]:
    """Shape of `PackedMatrix.data`. bits: as stored."""
    return -(-rows // TILE), columns // group, group * bits + ENDS_BYTES


def pack(codes: LowBitCodes) -> PackedMatrix:
    """The packed form of codes in numpy arrays; compiled on first use."""
    from engine.kernels.compiled.lowbit_pack import pack_tiles

    bits = container_bits(codes.bits, codes.group)
    data = np.zeros(packed_shape(codes.rows, codes.columns, bits, codes.group), np.uint8)
    scale, low = (np.ascontiguousarray(part).view(np.uint16) for part in (codes.scale, codes.low))
    pack_tiles(np.ascontiguousarray(codes.codes), scale, low, bits, codes.group, data)
    inverse = np.ascontiguousarray(1.0 / codes.factors, np.float32)
    return PackedMatrix(codes.rows, codes.columns, bits, codes.group, data, inverse)


def kept_rows(matrix: PackedMatrix, rows: np.ndarray) -> PackedMatrix:
    """A packed matrix of these rows (integers [count]) of another, in their order."""
    from engine.kernels.compiled.lowbit_pack import copy_rows

    count = len(rows)
    data = np.zeros(packed_shape(count, matrix.columns, matrix.bits, matrix.group), np.uint8)
    copy_rows(matrix.data, data, rows.astype(np.int32), np.arange(count, dtype=np.int32))
    return PackedMatrix(count, matrix.columns, matrix.bits, matrix.group, data, matrix.inverse)


def replace_row(source: PackedMatrix, target: PackedMatrix, row: int, place: int) -> None:
    """Write one row of `source` over row `place` of a matrix that `kept_rows` made of it."""
    from engine.kernels.compiled.lowbit_pack import copy_rows

    copy_rows(source.data, target.data, np.array([row], np.int32), np.array([place], np.int32))
