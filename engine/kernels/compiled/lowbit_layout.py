"""Sizes in the layout of packed low-bit weights, which `lowbit_dots` describes; no compiler needed to read them."""

from __future__ import annotations

TILE = 8  # rows of a tile
ENDS_BYTES = 32  # float16 scales and lows of a tile's rows, behind the codes of each group
PLANES_COLUMNS = 32  # 3-bit planes need groups of a multiple of so many columns
EDGE_BYTES = 8  # of an input row and group: float32 scale, and scale times the sum of the int8 values
