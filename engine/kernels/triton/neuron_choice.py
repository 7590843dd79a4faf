"""Which MLP neurons a draft computes: scores against a threshold that lies on the card, and the list of those above it.

The list is in no order. `counters` holds how many neurons it has and how many programs have finished their share of it;
the down projection, last to read the list, sets both to zero again (neuron_down.py). Layers share the list but not the
counters: a kernel that looks at them before its predecessor has ended must not meet those of the layer before, which
may not be zero yet. Scores are kept for whoever fits the threshold.
Oracles: `engine.predict.lowrank.LowRankPredictor`, `engine.predict.planes.PlanePredictor`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import dot4, launch_dependents, wait_for_predecessor
from engine.kernels.triton.neuron_parts import inverse_rms

CHOSEN, DONE = tl.constexpr(0), tl.constexpr(1)  # places in `counters`


@triton.jit
def append_chosen(chosen, counters, neuron, keep):
    """Add the neurons of a program that are to be kept to the list, with one atomic for their places."""
    flags = keep.to(tl.int32)
    first = tl.atomic_add(counters + CHOSEN, tl.sum(flags, 0), sem="relaxed")
    tl.store(chosen + first + tl.cumsum(flags, 0) - flags, neuron, mask=keep)
    tl.debug_barrier()  # all of the program's share is written before the program is counted
    tl.atomic_add(counters + DONE, 1, sem="acq_rel")


@triton.jit
def sketch_kernel(
    planes,  # int32 [2, K / 8]: int8 activations, see draft_matmul.py
    scales,  # float32 [K / 8]
    inward,  # int32 [RANK, 2, K / 8]: int8 weights in the same two planes
    steps,  # float32 [RANK]: a weight is its int8 times this
    squares,  # [PARTS] float32 partial sums of squares of the stream
    sketch,  # float32 [RANK]
    epsilon,
    K: tl.constexpr,
    BLOCK_W: tl.constexpr,  # K / 8 or the next power of two
    NORMED: tl.constexpr,  # the activations still lack 1 / rms
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """First half of a low-rank predictor: input @ inward, one value a program."""
    WORDS: tl.constexpr = K // 8
    rank = tl.program_id(0)
    word = tl.arange(0, BLOCK_W)
    inside = word < WORDS
    wa = tl.load(inward + rank * 2 * WORDS + word, mask=inside, other=0)
    wb = tl.load(inward + (rank * 2 + 1) * WORDS + word, mask=inside, other=0)
    step = tl.load(steps + rank)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    xa = tl.load(planes + word, mask=inside, other=0)
    xb = tl.load(planes + WORDS + word, mask=inside, other=0)
    xs = tl.load(scales + word, mask=inside, other=0.0)
    dots = signed_dot4(wa, xa) + signed_dot4(wb, xb)
    value = tl.sum(dots.to(tl.float32) * xs, 0) * step
    if NORMED:
        value *= inverse_rms(squares, K, epsilon, PARTS, PARTS_PADDED)
    tl.store(sketch + rank, value)


@triton.jit
def signed_dot4(weights, values):
    """The products of four signed bytes with four signed bytes: the weights are moved into 0 to 255 and back."""
    zero = weights * 0
    lifted = weights ^ -2139062144  # 0x80808080: adds 128 to each byte
    return dot4(lifted, values, zero) - 128 * dot4(zero + 0x01010101, values, zero)


@triton.jit
def low_rank_choice_kernel(
    sketch,  # [RANK], of any float type
    outward,  # [neurons, RANK] of a 16-bit type
    bias,  # float32 [neurons]
    threshold,  # float32 [1]
    scores,  # float32 [neurons]
    chosen,  # int32 [neurons]
    counters,  # int32 [2]
    neurons,
    RANK: tl.constexpr,  # a power of two
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Second half of a low-rank predictor: the neurons with sketch @ outward + bias above the threshold."""
    neuron = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = neuron < neurons
    rank = tl.arange(0, RANK)
    weights = tl.load(outward + neuron[:, None] * RANK + rank[None, :], mask=inside[:, None], other=0.0)
    start = tl.load(bias + neuron, mask=inside, other=0.0)
    limit = tl.load(threshold)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    score = start + tl.sum(weights.to(tl.float32) * tl.load(sketch + rank).to(tl.float32)[None, :], 1)
    tl.store(scores + neuron, score, mask=inside)
    append_chosen(chosen, counters, neuron, inside & (score > limit))
