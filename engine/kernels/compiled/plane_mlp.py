"""The MLP of a draft whose neurons are chosen by the upper two bits of gate and up, token by token.

Each block takes some neurons the whole way: their upper planes for every one of them, scores, the choice, the rests and
the activation of the chosen. It leaves a list of its own, so that blocks need not wait for each other.
Oracle: `engine.predict.planes.chosen_mlp`.
"""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.lowbit_layout import ENDS_BYTES
from engine.kernels.compiled.lowbit_linear import NATIVE, rows_kernel
from engine.kernels.compiled.plane_dots import add_rests, plane_scores, weighted_codes
from engine.kernels.compiled.plane_layout import HEADER, NEURONS_OF_BLOCK, PAIR_BYTES, UNIT, UNIT_BYTES
from engine.kernels.compiled.vector_lanes import silu_times
from engine.kernels.compiled.vector_words import field, index_at, load_f32, store_i32, store_i64

SOON = 4  # neurons of a list: the time their rests take to come from memory

rows_2 = rows_kernel(2, UNIT)


@njit(nogil=True)
def plane_blocks(step):
    """Blocks of `plane_mlp`, and lists of chosen neurons a row."""
    return (field(step, t.N) + NEURONS_OF_BLOCK - 1) // NEURONS_OF_BLOCK


@njit(nogil=True)
def plane_mlp(step, rows, block):
    """One block of neurons: target[row, n0 + i] = silu(gate) * up of the i-th neuron it chose for the row.

    SOURCE: int8 rows [K] in groups of GROUP; WEIGHT, SCALE: upper planes of gate and up, BIAS: rests, N: neurons.
    EXTRA_A: int32 lists [rows, N], EXTRA_B: int64 counts [rows, blocks]; EXTRA_C, EXTRA_D: float32 scratch rows [2 N]
    and their stride; FACTORS: down, as plane_down's WEIGHT; EXTRA_E: float32 squared threshold, two errors, padding to
    HEADER, squared reaches [N].
    """
    neurons, k, group = field(step, t.N), field(step, t.K), field(step, t.GROUP)
    n0 = block * NEURONS_OF_BLOCK
    n1 = min(neurons, n0 + NEURONS_OF_BLOCK)
    x, xs = field(step, t.SOURCE), field(step, t.SOURCE_STRIDE)
    gates, stride = field(step, t.EXTRA_C), field(step, t.EXTRA_D)
    ups, groups, units = gates + neurons * 4, k // group, group // UNIT
    tile_bytes = groups * (group * 2 + ENDS_BYTES)
    rows_2(field(step, t.WEIGHT), tile_bytes, units, groups, x, xs, k, gates, stride, n0, n1, neurons, rows)
    rows_2(field(step, t.SCALE), tile_bytes, units, groups, x, xs, k, ups, stride, n0, n1, neurons, rows)
    for row in range(rows):
        out = field(step, t.TARGET) + row * field(step, t.TARGET_STRIDE) + n0 * 4
        chosen = field(step, t.EXTRA_A) + (row * neurons + n0) * 4
        gate, up = gates + row * stride, ups + row * stride
        count = choose(field(step, t.EXTRA_E), gate, up, out, n0, n1, chosen)
        activate(
            field(step, t.BIAS),
            field(step, t.FACTORS),
            units,
            groups,
            x + row * xs,
            k,
            gate,
            up,
            chosen,
            count,
            n0,
            out,
        )
        store_i64(field(step, t.EXTRA_B) + (row * plane_blocks(step) + block) * 8, count)


@njit(nogil=True)
def choose(parameters, gate, up, scratch, n0, n1, chosen):
    """List the neurons of [n0, n1) with a score above the threshold, as int32; returns how many, at least one.

    Where none is above it, the first is listed: whoever reads a list may then count on an entry.
    """
    limit = load_f32(parameters)
    reach = parameters + (HEADER + n0) * 4
    gate_error, up_error = load_f32(parameters + 4), load_f32(parameters + 8)
    plane_scores(gate + n0 * 4, up + n0 * 4, reach, scratch, n1 - n0, gate_error, up_error)
    count = 0
    for n in range(n0, n1):  # written always and counted where it holds: a branch would be mispredicted
        store_i32(chosen + count * 4, n)
        count += load_f32(scratch + (n - n0) * 4) > limit
    if count == 0:
        store_i32(chosen, n0)
    return max(count, 1)


@njit(nogil=True)
def activate(rests, down, units, groups, x, k, gate, up, chosen, count, n0, out):
    """out[i] = silu(gate) * up of the listed neurons, their rests added; gate and up are overwritten from n0 on.

    Their rows of down, as long as their rests, are fetched for `plane_down`. The i-th neuron is written to place
    n0 + i, which is never behind its own.
    """
    row_bytes = groups * (units * UNIT_BYTES + PAIR_BYTES)
    for i in range(count):
        n, soon = index_at(chosen, i), index_at(chosen, min(i + SOON, count - 1))
        to = (n0 + i) * 4
        add_rests(
            NATIVE,
            rests + n * row_bytes,
            rests + soon * row_bytes,
            down + n * row_bytes,
            units,
            groups,
            x,
            k,
            gate + n * 4,
            up + n * 4,
            gate + to,
            up + to,
        )
    silu_times(gate + n0 * 4, up + n0 * 4, out, (count + 7) // 8 * 8)


@njit(nogil=True)
def plane_down(step, rows, block):
    """One group of columns of target[row] = sum over the chosen neurons of source[row, i] * their row of down.

    WEIGHT: neuron-major rows; N: columns, K: neurons, GROUP: columns of a group. EXTRA_A, EXTRA_B: lists and counts as
    `plane_mlp` leaves them; EXTRA_C: lists a row.
    """
    width, neurons, group = field(step, t.N), field(step, t.K), field(step, t.GROUP)
    units = group // UNIT
    group_bytes = units * UNIT_BYTES + PAIR_BYTES
    row_bytes = width // group * group_bytes
    lists = field(step, t.EXTRA_C)
    for row in range(rows):
        counts = field(step, t.EXTRA_B) + row * lists * 8
        chosen = field(step, t.EXTRA_A) + row * neurons * 4
        values = field(step, t.SOURCE) + row * field(step, t.SOURCE_STRIDE)
        out = field(step, t.TARGET) + row * field(step, t.TARGET_STRIDE)
        for u in range(units):
            weighted_codes(
                lists,
                counts,
                chosen,
                values,
                NEURONS_OF_BLOCK,
                field(step, t.WEIGHT),
                row_bytes,
                block * group_bytes + u * UNIT_BYTES,
                block * group_bytes + units * UNIT_BYTES,
                out + (block * group + u * UNIT) * 4,
            )
