"""Whole rows of four-bit or two-bit codes times int8 activations: parts of the kernels that work neuron by neuron.

Activations are those of draft_matmul.py. A word of four-bit codes meets one block of eight activations; a word of
two-bit codes holds sixteen, code 4 j + b in bits 2 j of byte b, and meets two.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.draft_matmul import NIBBLES, ONES
from engine.kernels.triton.hardware import dot4

PAIRS = tl.constexpr(0x03030303)
MIDDLE = tl.constexpr(1.5)  # of the rests 0 to 3
REST = tl.constexpr(4.0)  # codes that share a high half


@triton.jit
def group_terms(packed):
    """Scale and low of groups as float32, from words that hold both as float16."""
    scale = (packed & 0xFFFF).to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)
    low = ((packed >> 16) & 0xFFFF).to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)
    return scale, low


@triton.jit
def inverse_rms(squares, WIDTH: tl.constexpr, epsilon, PARTS: tl.constexpr, PARTS_PADDED: tl.constexpr):
    """1 / root mean square of the stream, from its partial sums of squares."""
    part = tl.arange(0, PARTS_PADDED)
    total = tl.sum(tl.load(squares + part, mask=part < PARTS, other=0.0), 0)
    return 1.0 / tl.sqrt(total / WIDTH + epsilon)


@triton.jit
def load_rows(codes, groups, row, inside, WORDS: tl.constexpr, BLOCK_W: tl.constexpr, GROUP_W: tl.constexpr):
    """Words [rows, BLOCK_W] and group terms of whole matrix rows; `row` [rows], `inside` says which to read."""
    word = tl.arange(0, BLOCK_W)
    group = tl.arange(0, BLOCK_W // GROUP_W)
    at = row[:, None].to(tl.int64)
    mask, group_mask = inside[:, None], inside[:, None]
    if WORDS != BLOCK_W:
        mask = mask & (word < WORDS)[None, :]
        group_mask = group_mask & (group < WORDS // GROUP_W)[None, :]
    words = tl.load(codes + at * WORDS + word[None, :], mask=mask, other=0, eviction_policy="evict_first")
    packed = tl.load(groups + at * (WORDS // GROUP_W) + group[None, :], mask=group_mask, other=0)
    return words, packed


@triton.jit
def load_blocks(planes, scales, first, step: tl.constexpr, WORDS: tl.constexpr, BLOCK_W: tl.constexpr):
    """Both planes' words and the scales of blocks first, first + step, … [BLOCK_W]; zeros beyond the last of WORDS."""
    word = first + step * tl.arange(0, BLOCK_W)
    if step * BLOCK_W == WORDS:
        return tl.load(planes + word), tl.load(planes + WORDS + word), tl.load(scales + word)
    inside = word < WORDS
    xa = tl.load(planes + word, mask=inside, other=0)
    xb = tl.load(planes + WORDS + word, mask=inside, other=0)
    return xa, xb, tl.load(scales + word, mask=inside, other=0.0)


@triton.jit
def group_totals(xa, xb, xs, GROUP_W: tl.constexpr, BLOCK_W: tl.constexpr):
    """Sums of the activations [BLOCK_W / GROUP_W] in groups of GROUP_W blocks."""
    ones = tl.full((BLOCK_W,), ONES, tl.int32)
    totals = dot4(ones, xa, dot4(ones, xb, tl.zeros((BLOCK_W,), tl.int32))).to(tl.float32) * xs
    return tl.sum(tl.reshape(totals, (BLOCK_W // GROUP_W, GROUP_W)), 1)


@triton.jit
def nibble_dots(words, xa, xb, xs, N: tl.constexpr, BLOCK_W: tl.constexpr, GROUP_W: tl.constexpr):
    """codes times activations, summed in groups [N, BLOCK_W / GROUP_W], of words [N, BLOCK_W] of eight codes."""
    none = tl.zeros((N, BLOCK_W), tl.int32)
    dots = dot4(words & NIBBLES, tl.broadcast_to(xa[None, :], (N, BLOCK_W)), none)
    dots = dot4((words >> 4) & NIBBLES, tl.broadcast_to(xb[None, :], (N, BLOCK_W)), dots)
    return tl.sum(tl.reshape(dots.to(tl.float32) * xs[None, :], (N, BLOCK_W // GROUP_W, GROUP_W)), 2)


@triton.jit
def pair_dots(words, xa, xb, xs, ya, yb, ys, N: tl.constexpr, BLOCK_W: tl.constexpr, GROUP_W: tl.constexpr):
    """The same of words of sixteen two-bit codes; x: even blocks of activations, y: odd ones."""
    none = tl.zeros((N, BLOCK_W), tl.int32)
    even = dot4(words & PAIRS, tl.broadcast_to(xa[None, :], (N, BLOCK_W)), none)
    even = dot4((words >> 2) & PAIRS, tl.broadcast_to(xb[None, :], (N, BLOCK_W)), even)
    odd = dot4((words >> 4) & PAIRS, tl.broadcast_to(ya[None, :], (N, BLOCK_W)), none)
    odd = dot4((words >> 6) & PAIRS, tl.broadcast_to(yb[None, :], (N, BLOCK_W)), odd)
    products = even.to(tl.float32) * xs[None, :] + odd.to(tl.float32) * ys[None, :]
    return tl.sum(tl.reshape(products, (N, BLOCK_W // GROUP_W, GROUP_W)), 2)
