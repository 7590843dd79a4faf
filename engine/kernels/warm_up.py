"""Compile the CPU kernels ahead of the first reply and keep them on disk: `python -m engine.kernels.warm_up`."""

from __future__ import annotations

import time

import numpy as np


def warm_up() -> float:
    """Compile what is not on disk yet; returns the seconds it took."""
    began = time.perf_counter()
    from engine.kernels.compiled import (
        exact_leaders,  # noqa: F401 (its functions are compiled when imported)
        interpreter,
        lowbit_pack,  # noqa: F401
        plane_pack,  # noqa: F401
        round_groups,  # noqa: F401
        unit_factor,  # noqa: F401
    )
    from engine.kernels.compiled.peak import peak_of
    from engine.kernels.compiled.quantise import quantise_rows

    control = np.zeros(8, np.int64)
    interpreter.run(control.ctypes.data, 0, control.ctypes.data, control.ctypes.data, 0)
    peak_of(np.ones(8, np.float32).ctypes.data, 8)
    source, out, scales = np.ones((1, 8), np.float32), np.empty((1, 8), np.int8), np.empty(1, np.float32)
    quantise_rows(source.ctypes.data, 0, out, scales, 0, 1)
    return time.perf_counter() - began


if __name__ == "__main__":
    print(f"Compiled CPU kernels ready after {warm_up():.1f} s")
