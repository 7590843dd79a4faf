"""The full model's choices in a pass over more rows than a decode step has, sixteen at a time; judged on the host.

Such passes are for models whose weights are brought in anew for each: there a row costs nothing. The largest logit of
a row is found as in judge.py, from the same partial results, so that the same token wins. Oracle: `engine.sampling`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor
from engine.kernels.triton.judge import TOKENS, peak_of_rows

WIDE_ROWS = 48  # of such a pass
IDS, CHOSEN_PROBS, NEXT_PROBS = range(3)  # rows of what it finds

ROWS = tl.constexpr(16)
_TOKENS = tl.constexpr(TOKENS)


@triton.jit(do_not_specialize=["first"])
def wide_choice_kernel(
    state,
    logits,  # [16, vocabulary] float32, of the rows from `first` on
    peaks,
    peak_ids,
    found,  # int32 [3, HEIGHT]: token, its probability as float32 bits, that of the block's next token
    first,
    vocabulary,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    HEIGHT: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One program."""
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    row = tl.arange(0, ROWS)
    best, token, total = peak_of_rows(peaks, peak_ids, row, PARTS, PARTS_PADDED)
    place = first + row
    following = tl.load(state + _TOKENS + 1 + place, mask=place < HEIGHT - 1, other=0)
    logit = tl.load(logits + row * vocabulary + following)
    chosen, proposed = 1.0 / total, tl.exp(logit - best) / total
    tl.store(found + place, token)
    tl.store(found + HEIGHT + place, chosen.to(tl.int32, bitcast=True))
    tl.store(found + 2 * HEIGHT + place, proposed.to(tl.int32, bitcast=True))
