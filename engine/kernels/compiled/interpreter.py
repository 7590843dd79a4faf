"""Runs a compiled programme: every pass (plain, draft, verify, prefill) is this one loop over a table."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.activations import NEURONS_OF_BLOCK, gated_silu, relu
from engine.kernels.compiled.add_norm import add_norm
from engine.kernels.compiled.add_positions import add_positions
from engine.kernels.compiled.attend import attend
from engine.kernels.compiled.blocks import finish, stretch_start, take
from engine.kernels.compiled.embed import embed
from engine.kernels.compiled.gathered_down import COLUMNS_OF_BLOCK, gathered_down
from engine.kernels.compiled.linear import GATHERED_ROWS, block_rows, block_start, gathered_linear, linear
from engine.kernels.compiled.lowbit_linear import lowbit_block_rows, lowbit_block_start, lowbit_linear
from engine.kernels.compiled.plane_mlp import plane_blocks, plane_down, plane_mlp
from engine.kernels.compiled.quantise_input import quantise
from engine.kernels.compiled.rotate_store import rotate_store
from engine.kernels.compiled.scatter import scatter
from engine.kernels.compiled.vector_words import field
from engine.kernels.compiled.waiting import EARLY_BYTES, read_early, wait_for


@njit(nogil=True)
def block_count(step, first_row, rows):
    """Into how many blocks an instruction falls; they write disjoint results and may run in any order."""
    operation = field(step, t.OPERATION)
    if operation == t.LINEAR:
        return (field(step, t.N) + block_rows(step) - 1) // block_rows(step) if rows > first_row else 0
    if operation == t.LOWBIT_LINEAR:
        return (field(step, t.N) + lowbit_block_rows(step) - 1) // lowbit_block_rows(step) if rows > first_row else 0
    if operation == t.ATTEND:
        return rows * field(step, t.EXTRA_C)
    if operation == t.GATED_SILU or operation == t.RELU:
        return (field(step, t.N) + NEURONS_OF_BLOCK - 1) // NEURONS_OF_BLOCK
    if operation == t.GATHERED_LINEAR:
        return (field(step, t.N) + GATHERED_ROWS - 1) // GATHERED_ROWS
    if operation == t.GATHERED_DOWN:
        return (field(step, t.N) + COLUMNS_OF_BLOCK - 1) // COLUMNS_OF_BLOCK
    if operation == t.PLANE_MLP:
        return plane_blocks(step)
    if operation == t.PLANE_DOWN:
        return field(step, t.N) // field(step, t.GROUP)
    return rows - first_row  # the others: a block a row


@njit(nogil=True)
def run_block(step, tokens, position, first_row, rows, block, thread):
    """Compute one block of one instruction."""
    operation = field(step, t.OPERATION)
    if operation == t.LINEAR:
        linear(step, first_row, rows, block)
    elif operation == t.LOWBIT_LINEAR:
        lowbit_linear(step, first_row, rows, block)
    elif operation == t.ATTEND:
        attend(step, position, block, thread)
    elif operation == t.ADD_NORM:
        add_norm(step, first_row + block)
    elif operation == t.GATED_SILU:
        gated_silu(step, rows, block)
    elif operation == t.ROTATE_STORE:
        rotate_store(step, position, block)
    elif operation == t.EMBED:
        embed(step, tokens, block)
    elif operation == t.GATHERED_LINEAR:
        gathered_linear(step, rows, block)
    elif operation == t.GATHERED_DOWN:
        gathered_down(step, rows, block)
    elif operation == t.PLANE_MLP:
        plane_mlp(step, rows, block)
    elif operation == t.PLANE_DOWN:
        plane_down(step, rows, block)
    elif operation == t.QUANTISE:
        quantise(step, first_row + block)
    elif operation == t.SCATTER:
        scatter(step, first_row + block)
    elif operation == t.RELU:
        relu(step, rows, block)
    elif operation == t.ADD_POSITIONS:
        add_positions(step, position, block)


@njit(nogil=True)
def next_stretch(step, left, thread, threads):
    """Where the thread's stretch begins in the next matrix that is read in stretches; 0 for none in `left` rows."""
    if field(step, t.READS_NEXT) == 0 or field(step, t.READS_NEXT) >= left:
        return 0
    reader = step + field(step, t.READS_NEXT) * t.COLUMNS * 8
    block = stretch_start(block_count(reader, 0, 1), thread, threads)
    packed = field(reader, t.OPERATION) == t.LOWBIT_LINEAR
    return lowbit_block_start(reader, block) if packed else block_start(reader, block)


@njit("void(int64, int64, int64, int64, int64)", nogil=True, cache=True)
def run(programme, instructions, control, tokens, thread):
    """One thread's part of a pass over `rows` tokens at `position`; any number of threads may run it at once.

    Addresses of int64 arrays: programme [instructions, COLUMNS], control [CONTROL], tokens [rows]. The control's
    COUNTERS is the address of `counter_bytes` an instruction, zeroed before the pass. thread: below THREADS.
    """
    rows, position, counters = field(control, t.ROWS), field(control, t.POSITION), field(control, t.COUNTERS)
    tail, threads = rows - field(control, t.TAIL), field(control, t.THREADS)
    stride = t.COUNTER_LINE * (threads + 1)
    awaited, early = 0, EARLY_BYTES  # where the thread will read next, and how much of it has been asked for
    unsure = 0  # first instruction whose blocks may still be running elsewhere
    for i in range(instructions):
        step = programme + i * t.COLUMNS * 8
        mine = counters + i * stride
        first_row = tail if field(step, t.ON_TAIL) else 0
        blocks = block_count(step, first_row, rows)
        block = take(mine, blocks, thread, threads)
        while block >= 0:
            run_block(step, tokens, position, first_row, rows, block, thread)
            finish(mine)
            block = take(mine, blocks, thread, threads)
        if field(step, t.SYNC):
            reads = next_stretch(step, instructions - i, thread, threads)
            if reads != awaited:
                awaited, early = reads, 0
            for j in range(unsure, i + 1):
                earlier = programme + j * t.COLUMNS * 8
                first = tail if field(earlier, t.ON_TAIL) else 0
                early = wait_for(counters + j * stride, block_count(earlier, first, rows), awaited, early)
            early = read_early(awaited, early)
            unsure = i + 1
