"""Sizes in the layout of an MLP whose neurons are chosen by planes, which `plane_dots` describes."""

from __future__ import annotations

UNIT = 64  # columns that a kernel takes at once; see engine.predict.planes.planes_fit
UNIT_BYTES = 32  # of a unit: 16 of gate's rests and 16 of up's, or 64 codes of a row of down
PAIR_BYTES = 4  # two float16 behind a group: the scales of gate and up, or scale and low of down
NEURONS_OF_BLOCK = 128  # a multiple of a tile of eight rows
HEADER = 8  # float32 in front of the squared reaches: squared threshold, errors of gate and up, padding
SPARE = 16  # entries behind a list of neurons that a prefetch may look at


def row_bytes(columns: int, group: int) -> int:
    """Bytes of a neuron's rests of gate and up, or of its row of down."""
    return columns // group * (group // UNIT * UNIT_BYTES + PAIR_BYTES)


def blocks_of(neurons: int) -> int:
    """Into how many lists the chosen neurons of a row fall."""
    return -(-neurons // NEURONS_OF_BLOCK)
