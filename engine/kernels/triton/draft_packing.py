"""Low-bit codes as the draft kernels read them: eight four-bit codes a word, scale and low of a group in another."""

from __future__ import annotations

import torch

from engine.kernels.triton.draft_memory import CODES_A_WORD, DraftMatrix
from engine.lowbit.codes import LowBitCodes

Tensor = torch.Tensor


def pack(codes: LowBitCodes, bias: Tensor | None = None) -> DraftMatrix:
    """Four-bit torch codes [N, K] as a DraftMatrix on their device.

    The low nibbles of a word's four bytes are codes k to k + 3, the high nibbles k + 4 to k + 7.
    Raises ValueError for codes of other widths or a K that is no multiple of eight.
    """
    rows, columns = codes.codes.shape
    if codes.bits != 4 or columns % CODES_A_WORD:
        raise ValueError(f"{codes.bits}-bit codes of {columns} columns cannot be packed as words of eight")
    eights = codes.codes.view(rows, columns // CODES_A_WORD, 2, 4)
    words = (eights[:, :, 0] | (eights[:, :, 1] << 4)).contiguous().view(torch.int32)[:, :, 0]
    terms = torch.stack((codes.scale, codes.low), -1).contiguous().view(torch.int32)[:, :, 0]
    return DraftMatrix(words.contiguous(), terms.contiguous(), (1.0 / codes.factors).contiguous(), bias)


def unpack(matrix: DraftMatrix) -> LowBitCodes:
    """The inverse of `pack`."""
    rows, words = matrix.codes.shape
    quads = matrix.codes.contiguous().view(torch.uint8).view(rows, words, 4)
    codes = torch.stack((quads & 15, quads >> 4), 2).view(rows, words * CODES_A_WORD)
    terms = matrix.groups.contiguous().view(torch.float16).view(rows, -1, 2)
    group = codes.shape[1] // terms.shape[1]
    scale, low = terms[:, :, 0].contiguous(), terms[:, :, 1].contiguous()
    return LowBitCodes(codes, scale, low, 1.0 / matrix.factors, 4, group)
