"""Runs a compiled programme: every pass (plain, draft, verify, prefill) is this one loop over a table."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.add_norm import add_norm
from engine.kernels.compiled.attend import attend
from engine.kernels.compiled.blocks import COUNTER_BYTES, finish, take, wait_for
from engine.kernels.compiled.embed import embed
from engine.kernels.compiled.gated_silu import NEURONS_OF_BLOCK, gated_silu
from engine.kernels.compiled.gathered_down import COLUMNS_OF_BLOCK, gathered_down
from engine.kernels.compiled.linear import GATHERED_ROWS, block_rows, gathered_linear, linear
from engine.kernels.compiled.lowbit_linear import lowbit_block_rows, lowbit_linear
from engine.kernels.compiled.plane_mlp import plane_blocks, plane_down, plane_mlp
from engine.kernels.compiled.quantise_input import quantise
from engine.kernels.compiled.rotate_store import rotate_store
from engine.kernels.compiled.scatter import scatter
from engine.kernels.compiled.vector_words import field


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
    if operation == t.GATED_SILU:
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


@njit("void(int64, int64, int64, int64, int64)", nogil=True, cache=True)
def run(programme, instructions, control, tokens, thread):
    """One thread's part of a pass over `rows` tokens at `position`; any number of threads may run it at once.

    Addresses of int64 arrays: programme [instructions, COLUMNS], control [CONTROL], tokens [rows]. The control's
    COUNTERS is the address of COUNTER_BYTES an instruction, zeroed before the pass. `thread` names scratch memory.
    """
    rows, position, counters = field(control, t.ROWS), field(control, t.POSITION), field(control, t.COUNTERS)
    tail = rows - field(control, t.TAIL)
    unsure = 0  # first instruction whose blocks may still be running elsewhere
    for i in range(instructions):
        step = programme + i * t.COLUMNS * 8
        mine = counters + i * COUNTER_BYTES
        first_row = tail if field(step, t.ON_TAIL) else 0
        blocks = block_count(step, first_row, rows)
        block = take(mine)
        while block < blocks:
            run_block(step, tokens, position, first_row, rows, block, thread)
            finish(mine)
            block = take(mine)
        if field(step, t.SYNC):
            for j in range(unsure, i + 1):
                earlier = programme + j * t.COLUMNS * 8
                first = tail if field(earlier, t.ON_TAIL) else 0
                wait_for(counters + j * COUNTER_BYTES, block_count(earlier, first, rows))
            unsure = i + 1
