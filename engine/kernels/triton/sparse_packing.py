"""Low-bit codes as the sparse kernels read them: bit planes, and copies that lie channel by channel."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.lowbit.codes import LowBitCodes

CODES_A_WORD, PAIRS_A_WORD = 8, 16

Tensor = torch.Tensor


@dataclass(frozen=True, slots=True)
class PlaneMatrix:
    """Four-bit rows [N, K] as two planes of two bits. high, rest: int32 [N, K / 16]; groups: int32 [N, K / group].

    factors: float32 [K], 1 / the activation factors.
    """

    high: Tensor
    rest: Tensor
    groups: Tensor
    factors: Tensor


@dataclass(frozen=True, slots=True)
class ChannelMatrix:
    """Four-bit rows [N, K] channel by channel. codes: int32 [K, words]; groups: int32 [K / group, 8, words].

    columns: N, or the neurons of a gated matrix. tile: words that one program owns; each tile of a gated matrix holds
    gates, then the ups of the same neurons. factors: float32 [K], 1 / the activation factors.
    """

    codes: Tensor
    groups: Tensor
    factors: Tensor
    bias: Tensor | None
    columns: int
    tile: int

    @property
    def group(self) -> int:
        """Channels that share a scale."""
        return self.codes.shape[0] // self.groups.shape[0]


def pack_planes(codes: LowBitCodes) -> PlaneMatrix:
    """Four-bit torch codes as planes: code 16 w + 4 j + b has its halves in bits 2 j of byte b of word w.

    Raises ValueError for codes of other widths, and for a group that is no multiple of sixteen.
    """
    if codes.bits != 4 or codes.group % PAIRS_A_WORD:
        raise ValueError(f"{codes.bits}-bit codes in groups of {codes.group} cannot be packed as planes")
    high, rest = _pairs(codes.codes >> 2), _pairs(codes.codes & 3)
    return PlaneMatrix(high, rest, terms(codes), (1.0 / codes.factors).contiguous())


def pack_channels(codes: LowBitCodes, tile: int, bias: Tensor | None = None, *, gated: bool = False) -> ChannelMatrix:
    """Four-bit torch codes [N, K] channel by channel, padded with zeros to whole tiles of `tile` words.

    gated: N / 2 gates, then N / 2 ups. Raises ValueError for codes of other widths or groups smaller than eight.
    """
    if codes.bits != 4 or codes.group % CODES_A_WORD:
        raise ValueError(f"{codes.bits}-bit codes in groups of {codes.group} cannot be packed by channels")
    values, packed = codes.codes, terms(codes)
    columns = len(values)
    width = tile * CODES_A_WORD
    if gated:
        columns //= 2
        values, packed = _interleaved(values, width // 2), _interleaved(packed, width // 2)
    else:
        values, packed = _padded(values, width), _padded(packed, width)
    words = len(values) // CODES_A_WORD
    quads = values.T.reshape(-1, words, 2, 4)
    packed_codes = (quads[:, :, 0] | (quads[:, :, 1] << 4)).contiguous().view(torch.int32)[:, :, 0].contiguous()
    groups = packed.T.reshape(-1, words, CODES_A_WORD).transpose(1, 2).contiguous()
    return ChannelMatrix(packed_codes, groups, (1.0 / codes.factors).contiguous(), bias, columns, tile)


def terms(codes: LowBitCodes) -> Tensor:
    """Scale and low of each group as float16 in one int32 [N, K / group]."""
    return torch.stack((codes.scale, codes.low), -1).contiguous().view(torch.int32)[:, :, 0].contiguous()


def _pairs(halves: Tensor) -> Tensor:
    """uint8 [N, K] below four -> int32 [N, K / 16]."""
    quads = halves.view(len(halves), -1, 4, 4)
    packed = quads[:, :, 0] | (quads[:, :, 1] << 2) | (quads[:, :, 2] << 4) | (quads[:, :, 3] << 6)
    return packed.contiguous().view(torch.int32)[:, :, 0].contiguous()


def _padded(rows: Tensor, multiple: int) -> Tensor:
    missing = -len(rows) % multiple
    return torch.cat((rows, rows.new_zeros(missing, rows.shape[1]))) if missing else rows


def _interleaved(rows: Tensor, half: int) -> Tensor:
    """[2 N, …] as half a tile of gates, half a tile of ups, and so on."""
    gates, ups = (_padded(part, half).view(-1, half, rows.shape[1]) for part in rows.chunk(2))
    return torch.cat((gates, ups), 1).view(-1, rows.shape[1])
