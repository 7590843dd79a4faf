"""A weight in host memory as the compiled kernels see it: an address, a storage kind, a shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

KIND_OF_DTYPE = {"float32": 0, "float16": 1, "bfloat16": 2}  # as in kernels/compiled/vector_ir, without its compiler


@dataclass(frozen=True, slots=True)
class Matrix:
    """rows x columns values stored as `kind` at `address`; int8 rows carry float32 scales at `scales`.

    `owner` keeps the memory alive.
    """

    address: int
    kind: int
    rows: int
    columns: int
    owner: Any
    scales: int = 0

    @classmethod
    def of(cls, array: np.ndarray, kind: int, scales: np.ndarray | None = None) -> Matrix:
        """Describe a C-contiguous array of two dimensions (bfloat16 comes as uint16)."""
        if not array.flags.c_contiguous or array.ndim != 2:
            raise ValueError(f"a matrix must be contiguous and two-dimensional, not {array.shape}")
        scale_address = 0 if scales is None else scales.ctypes.data
        return cls(array.ctypes.data, kind, array.shape[0], array.shape[1], (array, scales), scale_address)
