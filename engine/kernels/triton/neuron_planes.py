"""Choosing MLP neurons of a gated layer by the upper two bits of gate and up.

A four-bit code is 4 * high + rest. This kernel reads the plane of the high halves for every neuron, takes each rest for
its middle, 1.5, and keeps the neurons whose gated product times `reach` is above the threshold. What the high halves
add to gate and up is stored, so that neuron_gate_up.py reads only the rests, and only of the chosen.
Oracle: `engine.predict.planes.PlanePredictor`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor
from engine.kernels.triton.neuron_choice import append_chosen
from engine.kernels.triton.neuron_parts import (
    MIDDLE,
    REST,
    group_terms,
    group_totals,
    inverse_rms,
    load_blocks,
    load_rows,
    pair_dots,
)


@triton.jit
def plane_choice_kernel(
    planes,  # int32 [2, K / 8]: int8 activations, stream * gain / factors where NORMED
    scales,  # float32 [K / 8]
    codes,  # int32 [2 neurons, K / 16]: high halves, gates then ups
    groups,  # int32 [2 neurons, K / group]: scale and low as float16
    reach,  # float32 [neurons]: norm of the neuron's row of the down projection
    threshold,  # float32 [1]
    squares,  # [PARTS] float32
    sums,  # float32 [2, neurons]: what low values and high halves add to gate and up, without 1 / rms
    scores,  # float32 [neurons]
    chosen,  # int32 [neurons]
    counters,  # int32 [2]
    neurons,
    epsilon,
    K: tl.constexpr,
    GROUP_W: tl.constexpr,  # words of sixteen codes of a group
    BLOCK: tl.constexpr,
    BLOCK_W: tl.constexpr,  # K / 16 or the next power of two
    NORMED: tl.constexpr,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    neuron = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = neuron < neurons
    gates, gate_terms = load_rows(codes, groups, neuron, inside, K // 16, BLOCK_W, GROUP_W)
    ups, up_terms = load_rows(codes, groups, neuron + neurons, inside, K // 16, BLOCK_W, GROUP_W)
    distance = tl.load(reach + neuron, mask=inside, other=0.0)
    limit = tl.load(threshold)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    xa, xb, xs = load_blocks(planes, scales, 0, 2, K // 8, BLOCK_W)
    ya, yb, ys = load_blocks(planes, scales, 1, 2, K // 8, BLOCK_W)
    totals = group_totals(xa, xb, xs, GROUP_W, BLOCK_W) + group_totals(ya, yb, ys, GROUP_W, BLOCK_W)
    scale, low = group_terms(gate_terms)
    of_groups = pair_dots(gates, xa, xb, xs, ya, yb, ys, BLOCK, BLOCK_W, GROUP_W)
    gate = tl.sum(of_groups * scale * REST + low * totals[None, :], 1)
    gate_middle = tl.sum(scale * totals[None, :], 1) * MIDDLE
    scale, low = group_terms(up_terms)
    of_groups = pair_dots(ups, xa, xb, xs, ya, yb, ys, BLOCK, BLOCK_W, GROUP_W)
    up = tl.sum(of_groups * scale * REST + low * totals[None, :], 1)
    up_middle = tl.sum(scale * totals[None, :], 1) * MIDDLE
    tl.store(sums + neuron, gate, mask=inside)
    tl.store(sums + neurons + neuron, up, mask=inside)
    gate += gate_middle
    up += up_middle
    if NORMED:
        inverse = inverse_rms(squares, K, epsilon, PARTS, PARTS_PADDED)
        gate *= inverse
        up *= inverse
    score = tl.abs(gate / (1.0 + tl.exp(-gate)) * up) * distance
    tl.store(scores + neuron, score, mask=inside)
    append_chosen(chosen, counters, neuron, inside & (score > limit))
