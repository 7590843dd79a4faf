"""What sparse draft steps read and work in: chosen neurons, channel-major copies, and the memory between kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import triton

from engine.files.config import ModelConfig
from engine.kernels.triton.draft_memory import DraftMatrix
from engine.kernels.triton.sparse_packing import CODES_A_WORD, ChannelMatrix, PlaneMatrix
from engine.kernels.triton.tiles import Role

Tensor = torch.Tensor


@dataclass(frozen=True, slots=True)
class LowRank:
    """A low-rank predictor. outward: 16-bit [neurons, rank], bias: float32 [neurons].

    inward: int32 [rank, 2, K / 8], int8 weights in the two planes of activations, each times steps: float32 [rank],
    applied to the MLP's input. None where the sketch is computed a sub-layer ahead, as `rank` more rows of the layer's
    qkv matrix.
    """

    outward: Tensor
    bias: Tensor
    inward: Tensor | None = None
    steps: Tensor | None = None

    @property
    def rank(self) -> int:
        """Values of a sketch."""
        return self.outward.shape[1]


@dataclass(frozen=True, slots=True)
class NeuronMlp:
    """An MLP of which a draft computes chosen neurons.

    threshold: float32 [1]. scores: float32 [neurons], written by each step. counters: int32 [2], zero between steps.

    predictor: a LowRank beside whole codes of gate and up, or for planes float32 [neurons], how far a neuron reaches.
    down: rows are neurons, their groups along the hidden width.
    """

    gate_up: DraftMatrix | PlaneMatrix
    down: DraftMatrix
    predictor: LowRank | Tensor
    threshold: Tensor
    scores: Tensor
    counters: Tensor

    @property
    def looks_ahead(self) -> bool:
        """Whether the neurons are chosen by a sketch that is computed a sub-layer ahead."""
        return isinstance(self.predictor, LowRank) and self.predictor.inward is None


@dataclass(frozen=True, slots=True)
class ChannelLayer:
    """Channel-major copies of a layer's matrices, and the limit of each input channel, float32 [K]."""

    qkv: ChannelMatrix
    gate_up: ChannelMatrix
    down: ChannelMatrix
    qkv_limits: Tensor
    gate_up_limits: Tensor
    down_limits: Tensor

    @property
    def widest(self) -> int:
        """The most results of a product that is left as sums."""
        return CODES_A_WORD * max(matrix.codes.shape[1] for matrix in (self.qkv, self.gate_up))


@dataclass(frozen=True, slots=True)
class RowTile:
    """Neurons of a program, warps."""

    block: int
    warps: int


@dataclass(frozen=True, slots=True)
class ColumnTile:
    """Warps of a program, words of its tile (for a ChannelMatrix given by its packing), programs of a tile."""

    rows: int
    words: int
    splits: int


@dataclass(frozen=True, slots=True)
class SparseTiles:
    """Block sizes of the sparse kernels."""

    gate_up: RowTile = RowTile(8, 8)
    planes: RowTile = RowTile(8, 4)
    down: ColumnTile = ColumnTile(4, 64, 24)
    channels: dict[Role, ColumnTile] = field(default_factory=dict)

    def of_channels(self, role: Role, groups: int) -> ColumnTile:
        """For a channel-major matrix of so many groups of channels."""
        return self.channels.get(role, ColumnTile(4, 64, triton.cdiv(groups, 4)))


class SparseBuffers:
    """What the kernels of sparse layers hand on to each other, beside the buffers of every draft step."""

    def __init__(
        self, config: ModelConfig, parts: Sequence[NeuronMlp | ChannelLayer | None], device: torch.device
    ) -> None:
        neurons, hidden = config.intermediate_size, config.hidden_size
        self.chosen = torch.zeros(neurons, dtype=torch.int32, device=device)
        self.sketch = torch.zeros(256, device=device)
        self.plane_sums = torch.zeros(2, neurons, device=device)
        self.activated = torch.zeros(neurons, device=device)
        wide = max([1, *(part.widest for part in parts if isinstance(part, ChannelLayer))])
        self.sums = torch.zeros(wide, device=device)
        most_tiles = triton.cdiv(max(wide, hidden), 8 * 32) + 1
        self.arrivals = torch.zeros(most_tiles, dtype=torch.int32, device=device)
        self.down_squares = torch.zeros(most_tiles, device=device)
