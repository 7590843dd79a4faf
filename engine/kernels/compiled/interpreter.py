"""Runs a compiled programme: every pass (plain, draft, verify, prefill) is this one loop over a table."""

from __future__ import annotations

import numba
import numpy as np
from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.add_norm import add_norm
from engine.kernels.compiled.attend import attend
from engine.kernels.compiled.barrier import meet
from engine.kernels.compiled.embed import embed
from engine.kernels.compiled.gated_silu import gated_silu
from engine.kernels.compiled.gathered_down import gathered_down
from engine.kernels.compiled.linear import gathered_linear, linear
from engine.kernels.compiled.rotate_store import rotate_store


@njit("void(int64[:, ::1], int64[::1], int64[::1], int64, int64)", nogil=True, cache=True)
def run(programme, control, tokens, thread, threads):
    """One thread's part of a pass over `rows` tokens at `position`.

    programme: [instructions, COLUMNS]; control: [CONTROL]; tokens: [rows]. All threads run the same table and meet
    after each instruction marked SYNC; control[BARRIER] is the address of the int64 they meet at, zero at the start.
    """
    rows, position = control[t.ROWS], control[t.POSITION]
    meetings = 0
    for i in range(programme.shape[0]):
        step = programme[i]
        first_row = rows - control[t.TAIL] if step[t.ON_TAIL] else 0
        operation = step[t.OPERATION]
        if operation == t.LINEAR:
            linear(step, first_row, rows, thread, threads)
        elif operation == t.ADD_NORM:
            add_norm(step, first_row, rows, thread, threads)
        elif operation == t.ROTATE_STORE:
            rotate_store(step, position, rows, thread, threads)
        elif operation == t.ATTEND:
            attend(step, position, rows, thread, threads)
        elif operation == t.GATED_SILU:
            gated_silu(step, rows, thread, threads)
        elif operation == t.EMBED:
            embed(step, tokens, rows, thread, threads)
        elif operation == t.GATHERED_LINEAR:
            gathered_linear(step, rows, thread, threads)
        elif operation == t.GATHERED_DOWN:
            gathered_down(step, rows, thread, threads)
        if step[t.SYNC] and threads > 1:
            meetings += 1
            meet(control[t.BARRIER], meetings * threads)
