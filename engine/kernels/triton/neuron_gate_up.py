"""Gate and up (or OPT's one matrix in front of a ReLU) of the chosen neurons only, for one row.

Each program takes some places of the list; programs behind its end leave at once, so that one grid serves every count.
Where the list was finished before the kernel's predecessor is, the weights are on their way before the activations
exist. What a neuron gives is stored at its place in the list, for neuron_down.py.
Oracle: `engine.lowbit.codes.dequantise` with `engine.kernels.reference.operations`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor
from engine.kernels.triton.neuron_parts import (
    group_terms,
    group_totals,
    inverse_rms,
    load_blocks,
    load_rows,
    nibble_dots,
    pair_dots,
)


@triton.jit
def neuron_gate_up_kernel(
    planes,  # int32 [2, K / 8]: int8 activations, stream * gain / factors where NORMED (see draft_matmul.py)
    scales,  # float32 [K / 8]
    codes,  # int32 [2 neurons, K * BITS / 32], gates then ups; without a gate [neurons, …]
    groups,  # int32 [the same rows, K / group]: scale and low as float16
    sums,  # two bits: float32 [2, neurons], what neuron_planes.py left of the high halves
    bias,  # float32 [neurons], read if HAS_BIAS
    squares,  # [PARTS] float32
    chosen,  # int32 [neurons]
    counters,  # int32 [2], see neuron_choice.py
    activated,  # float32 [neurons]: results, by place in the list
    neurons,
    choosers,  # programs that make the list
    epsilon,
    K: tl.constexpr,
    BITS: tl.constexpr,  # 4: whole codes; 2: the lower halves of codes whose upper ones are in `sums`
    GROUP_W: tl.constexpr,  # words of a group
    BLOCK: tl.constexpr,
    BLOCK_W: tl.constexpr,  # words of a row or the next power of two
    GATED: tl.constexpr,
    NORMED: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    LOOKS_AHEAD: tl.constexpr,  # the list comes from a kernel before the predecessor
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    WORDS: tl.constexpr = K * BITS // 32
    first = tl.program_id(0) * BLOCK
    if DEPENDENT:
        if LOOKS_AHEAD:
            if tl.load(counters + 1, volatile=True) < choosers:
                wait_for_predecessor()
        else:
            wait_for_predecessor()
    count = tl.load(counters, cache_modifier=".cg")
    if first < count:
        place = first + tl.arange(0, BLOCK)
        inside = place < count
        neuron = tl.load(chosen + place, mask=inside, other=0, cache_modifier=".cg")
        words, terms = load_rows(codes, groups, neuron, inside, WORDS, BLOCK_W, GROUP_W)
        if GATED:
            up_words, up_terms = load_rows(codes, groups, neuron + neurons, inside, WORDS, BLOCK_W, GROUP_W)
        if DEPENDENT:
            if LOOKS_AHEAD:
                wait_for_predecessor()
            launch_dependents()  # not earlier: the next kernel reads the list before its own wait
        scale, low = group_terms(terms)
        xa, xb, xs = load_blocks(planes, scales, 0, 4 // BITS, K // 8, BLOCK_W)
        if BITS == 4:
            totals = group_totals(xa, xb, xs, GROUP_W, BLOCK_W)
            of_groups = nibble_dots(words, xa, xb, xs, BLOCK, BLOCK_W, GROUP_W)
            result = tl.sum(of_groups * scale + low * totals[None, :], 1)
        else:
            ya, yb, ys = load_blocks(planes, scales, 1, 2, K // 8, BLOCK_W)
            of_groups = pair_dots(words, xa, xb, xs, ya, yb, ys, BLOCK, BLOCK_W, GROUP_W)
            result = tl.load(sums + neuron, mask=inside, other=0.0) + tl.sum(of_groups * scale, 1)
        if GATED:
            scale, low = group_terms(up_terms)
            if BITS == 4:
                of_groups = nibble_dots(up_words, xa, xb, xs, BLOCK, BLOCK_W, GROUP_W)
                up = tl.sum(of_groups * scale + low * totals[None, :], 1)
            else:
                of_groups = pair_dots(up_words, xa, xb, xs, ya, yb, ys, BLOCK, BLOCK_W, GROUP_W)
                up = tl.load(sums + neurons + neuron, mask=inside, other=0.0) + tl.sum(of_groups * scale, 1)
        if NORMED:
            inverse = inverse_rms(squares, K, epsilon, PARTS, PARTS_PADDED)
            result *= inverse
            if GATED:
                up *= inverse
        if HAS_BIAS:
            result += tl.load(bias + neuron, mask=inside, other=0.0)
        if GATED:
            result = result / (1.0 + tl.exp(-result)) * up
        else:
            result = tl.where(result < 0, 0.0, result)
        tl.store(activated + place, result, mask=inside)
    elif first == 0 and LOOKS_AHEAD and DEPENDENT:  # nothing chosen: still, this kernel must end after its predecessor
        wait_for_predecessor()
