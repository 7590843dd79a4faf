"""What both roundings (torch and compiled) follow: the candidate ranges, and what counts as important.

Rounding minimises sum_k h[k] (w[k] - w'[k])^2 over a group, where h[k] = E[x[k]^2] of the matrix's input x: the part
of the output's error that rounding channel k alone makes. With feedback it minimises the whole expected output error
E[(sum_k (w[k] - w'[k]) x[k])^2] = d M d^T, M = E[x x^T], by letting later channels make up for earlier ones.

Sources: least-squares scales over fixed codes, as in llama.cpp's k-quants (importance matrices); feedback from Frantar
et al., GPTQ, arXiv 2210.17323, in the form of Chee et al., QuIP, arXiv 2307.13304 (section 3: LDLQ, proved equal),
which needs one Cholesky factor of M and no inverse. Scaling channels up before rounding (Lin et al., AWQ, arXiv
2306.00978) was measured too: beside weighted scales it makes the error larger, so `LowBitCodes.factors` are ones.
"""

from __future__ import annotations

ENDS = (1.0, 0.85, 0.7)  # where a candidate range may end, of the way from the middle of a group to its extremes
REFITS = 3  # rounds of: codes from scales, scales from codes by least squares
FLOOR = 0.05  # of the mean importance, added to every channel's: a channel silent in the sample may speak later
RIDGE = 0.01  # of the mean of M's diagonal, added to it: keeps the Cholesky factor finite
SAME_CODES = 1e-5  # of the codes' mean square: with a spread below it no slope is fitted
LARGEST = 65504.0  # of float16, in which scales and lows are stored
FEEDBACK_COLUMNS = 2048  # widest matrix for which feedback pays: its cost grows with rows * columns^2


def shrinkage(tokens: int, columns: int) -> float:
    """How far M from a sample is drawn towards its own diagonal: M' = (1 - s) M + s diag(M).

    A sample of few tokens knows the diagonal far better than the columns^2 products. Measured on matrices of 576 and
    1536 columns with 690 tokens, errors on other text are least near s = columns / (columns + tokens).
    """
    return columns / (columns + tokens)
