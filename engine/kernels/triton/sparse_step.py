"""Draft steps of one row that read only part of the weights: chosen MLP neurons, or large input channels.

Both replace single kernels of the chain in draft_step.py and hand the same int8 activations on, so that a layer without
a sparse part is computed as there. What the kernels read and work in is in sparse_memory.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton

from engine.files.config import ModelConfig
from engine.kernels.triton.channel_matmul import channel_matmul_kernel
from engine.kernels.triton.draft_memory import DraftBuffers, DraftLayer, DraftModel
from engine.kernels.triton.draft_step import GATED, LOGITS, PROJECT, RELU, RESIDUAL, DraftKernels
from engine.kernels.triton.neuron_choice import low_rank_choice_kernel, sketch_kernel
from engine.kernels.triton.neuron_down import neuron_down_kernel
from engine.kernels.triton.neuron_gate_up import neuron_gate_up_kernel
from engine.kernels.triton.neuron_planes import plane_choice_kernel
from engine.kernels.triton.sampled_choice import SampledChoice
from engine.kernels.triton.sparse_memory import ChannelLayer, LowRank, NeuronMlp, SparseBuffers, SparseTiles
from engine.kernels.triton.sparse_packing import CODES_A_WORD, PAIRS_A_WORD, ChannelMatrix, PlaneMatrix
from engine.kernels.triton.tiles import Role

CHOICE_BLOCK = 128  # neurons of a program of a low-rank predictor

Tensor = torch.Tensor


class SparseKernels(DraftKernels):
    """Draft steps of one row in which some layers are sparse. Captures cleanly."""

    def __init__(
        self,
        config: ModelConfig,
        model: DraftModel,
        buffers: DraftBuffers,
        allowed: int,
        parts: Sequence[NeuronMlp | ChannelLayer | None],
        tiles: SparseTiles | None = None,
    ) -> None:
        """parts: for each layer of the model what replaces its kernels; None: none."""
        super().__init__(config, model, buffers, allowed)
        self._parts, self._sparse_tiles = parts, tiles or SparseTiles()
        self._own, self._neurons = SparseBuffers(config, parts, model.embedding.device), config.intermediate_size

    def step(self, rows: int, sampled: SampledChoice | None = None) -> None:
        """A draft step as in DraftKernels, for one row. Raises ValueError for more."""
        if rows != 1:
            raise ValueError(f"sparse kernels compute one row, not {rows}")
        b, model = self._buffers, self._model
        layers = model.layers
        self._embed(1, layers[0].attention_norm)
        squares, parts = b.attention_squares, b.attention_parts
        for layer, part, after in zip(layers, self._parts, [*layers[1:], None], strict=True):
            following = model.final_norm if after is None else after.attention_norm
            self._attention_block(layer, part, squares, parts)
            self._layer_norm(layer.mlp_norm, 1)
            if part is None:
                squares, parts = self._dense_mlp(layer, following.gain)
            elif isinstance(part, ChannelLayer):
                squares, parts = self._channel_mlp(part, following.gain)
            else:
                squares, parts = self._neuron_mlp(part, following.gain)
        self._layer_norm(model.final_norm, 1)
        self._matmul(Role.LOGITS, LOGITS, b.hidden, model.output, 1, squares, parts, y=b.logits)
        self._choose(1, sampled)

    def _attention_block(
        self, layer: DraftLayer, part: NeuronMlp | ChannelLayer | None, squares: Tensor, parts: int
    ) -> None:
        b = self._buffers
        self._layer_norm(layer.attention_norm, 1)
        if isinstance(part, ChannelLayer):
            self._channels(Role.QKV, PROJECT, part.qkv, part.qkv_limits, squares, parts)
        else:
            self._matmul(Role.QKV, PROJECT, b.hidden, layer.qkv, 1, squares, parts, y=b.qkv)
        self._attention(layer, 1)
        if isinstance(part, NeuronMlp) and part.looks_ahead:
            self._low_rank(part, self._ahead_sketch())
        self._residual(Role.OUTPUT, b.attended, layer.output, 1, b.attention_squares, layer.mlp_norm.gain)

    def _dense_mlp(self, layer: DraftLayer, gain: Tensor) -> tuple[Tensor, int]:
        b = self._buffers
        kind, factors = (RELU if self._layer_norms else GATED), layer.down.factors
        squares, parts = b.attention_squares, b.attention_parts
        self._matmul(Role.GATE_UP, kind, b.hidden, layer.gate_up, 1, squares, parts, b.activated, factors)
        self._residual(Role.DOWN, b.activated, layer.down, 1, b.mlp_squares, gain)
        return b.mlp_squares, b.mlp_parts

    def _neuron_mlp(self, part: NeuronMlp, gain: Tensor) -> tuple[Tensor, int]:
        if isinstance(part.predictor, LowRank):
            if not part.looks_ahead:
                self._sketch_of_input(part.predictor)
                self._low_rank(part, self._own.sketch)
        else:
            self._plane_choice(part)
        self._neuron_gate_up(part)
        return self._neuron_down(part, gain)

    def _channel_mlp(self, part: ChannelLayer, gain: Tensor) -> tuple[Tensor, int]:
        b = self._buffers
        squares, parts = b.attention_squares, b.attention_parts
        self._channels(Role.GATE_UP, GATED, part.gate_up, part.gate_up_limits, squares, parts, part.down.factors)
        self._channels(Role.DOWN, RESIDUAL, part.down, part.down_limits, squares, parts, gain)
        return self._own.down_squares, part.down.codes.shape[1] // part.down.tile

    def _ahead_sketch(self) -> Tensor:
        """Where the qkv product has left a sketch: behind its own columns."""
        config = self._config
        return self._buffers.qkv.view(-1)[(config.heads + 2 * config.kv_heads) * config.head_dim :]

    def _sketch_of_input(self, predictor: LowRank) -> None:
        b = self._buffers
        assert predictor.inward is not None and predictor.steps is not None
        words = self._config.hidden_size // CODES_A_WORD
        sketch_kernel[(predictor.rank,)](
            b.hidden[0].view(torch.int32),
            b.hidden[1],
            predictor.inward,
            predictor.steps,
            b.attention_squares,
            self._own.sketch,
            self._config.rms_norm_eps,
            K=self._config.hidden_size,
            BLOCK_W=triton.next_power_of_2(words),
            NORMED=not self._layer_norms,
            PARTS=b.attention_parts,
            PARTS_PADDED=triton.next_power_of_2(b.attention_parts),
            DEPENDENT=self._dependent,
            num_warps=4,
            **self._launch(),
        )

    def _low_rank(self, part: NeuronMlp, sketch: Tensor) -> None:
        assert isinstance(part.predictor, LowRank)
        low_rank_choice_kernel[(triton.cdiv(self._neurons, CHOICE_BLOCK),)](
            sketch,
            part.predictor.outward,
            part.predictor.bias,
            part.threshold,
            part.scores,
            self._own.chosen,
            part.counters,
            self._neurons,
            RANK=part.predictor.rank,
            BLOCK=CHOICE_BLOCK,
            DEPENDENT=self._dependent,
            num_warps=4,
            **self._launch(),
        )

    def _plane_choice(self, part: NeuronMlp) -> None:
        b, tile, matrix = self._buffers, self._sparse_tiles.planes, part.gate_up
        assert isinstance(matrix, PlaneMatrix)
        words = matrix.high.shape[1]
        plane_choice_kernel[(triton.cdiv(self._neurons, tile.block),)](
            b.hidden[0].view(torch.int32),
            b.hidden[1],
            matrix.high,
            matrix.groups,
            part.predictor,
            part.threshold,
            b.attention_squares,
            self._own.plane_sums,
            part.scores,
            self._own.chosen,
            part.counters,
            self._neurons,
            self._config.rms_norm_eps,
            K=words * PAIRS_A_WORD,
            GROUP_W=words // matrix.groups.shape[1],
            BLOCK=tile.block,
            BLOCK_W=triton.next_power_of_2(words),
            NORMED=not self._layer_norms,
            PARTS=b.attention_parts,
            PARTS_PADDED=triton.next_power_of_2(b.attention_parts),
            DEPENDENT=self._dependent,
            num_warps=tile.warps,
            **self._launch(),
        )

    def _neuron_gate_up(self, part: NeuronMlp) -> None:
        b, tile, matrix = self._buffers, self._sparse_tiles.gate_up, part.gate_up
        planes = isinstance(matrix, PlaneMatrix)
        codes = matrix.rest if isinstance(matrix, PlaneMatrix) else matrix.codes
        bias = None if isinstance(matrix, PlaneMatrix) else matrix.bias
        words = codes.shape[1]
        block = self._sparse_tiles.planes.block if planes else CHOICE_BLOCK
        neuron_gate_up_kernel[(triton.cdiv(self._neurons, tile.block),)](
            b.hidden[0].view(torch.int32),
            b.hidden[1],
            codes,
            matrix.groups,
            self._own.plane_sums,
            b.stream if bias is None else bias,
            b.attention_squares,
            self._own.chosen,
            part.counters,
            self._own.activated,
            self._neurons,
            triton.cdiv(self._neurons, block),
            self._config.rms_norm_eps,
            K=self._config.hidden_size,
            BITS=2 if planes else 4,
            GROUP_W=words // matrix.groups.shape[1],
            BLOCK=tile.block,
            BLOCK_W=triton.next_power_of_2(words),
            GATED=not self._layer_norms,
            NORMED=not self._layer_norms,
            HAS_BIAS=bias is not None,
            LOOKS_AHEAD=part.looks_ahead,
            PARTS=b.attention_parts,
            PARTS_PADDED=triton.next_power_of_2(b.attention_parts),
            DEPENDENT=self._dependent,
            num_warps=tile.warps,
            **self._launch(),
        )

    def _neuron_down(self, part: NeuronMlp, gain: Tensor) -> tuple[Tensor, int]:
        b, tile, matrix = self._buffers, self._sparse_tiles.down, part.down
        words = matrix.codes.shape[1]
        tiles = triton.cdiv(words, tile.words)
        neuron_down_kernel[(tiles, tile.splits)](
            self._own.chosen,
            part.counters,
            self._own.activated,
            matrix.codes,
            matrix.groups,
            b.stream if matrix.bias is None else matrix.bias,
            gain,
            b.stream,
            *b.hidden,
            self._own.down_squares,
            self._own.arrivals,
            N=words * CODES_A_WORD,
            GROUP=words * CODES_A_WORD // matrix.groups.shape[1],
            ROWS=tile.rows,
            TILE=tile.words,
            SPLITS=tile.splits,
            HAS_BIAS=matrix.bias is not None,
            QUANTISES=not self._layer_norms,
            DEPENDENT=self._dependent,
            num_warps=tile.rows,
            num_stages=1,
            **self._launch(),
        )
        return self._own.down_squares, tiles

    def _channels(
        self,
        role: Role,
        epilogue: int,
        matrix: ChannelMatrix,
        limits: Tensor,
        squares: Tensor,
        parts: int,
        gain: Tensor | None = None,
    ) -> None:
        b, groups = self._buffers, matrix.groups.shape[0]
        tile = self._sparse_tiles.of_channels(role, groups)
        x = b.activated if role is Role.DOWN else b.hidden
        y = b.activated if epilogue == GATED else b.hidden
        words = matrix.codes.shape[1]
        channel_matmul_kernel[(words // matrix.tile, tile.splits)](
            x[0].view(torch.int32),
            x[1],
            limits,
            matrix.codes,
            matrix.groups,
            b.stream if matrix.bias is None else matrix.bias,
            b.stream if epilogue == RESIDUAL else self._own.sums,
            b.qkv,
            b.stream if gain is None else gain,
            *y,
            squares,
            self._own.down_squares,
            self._own.arrivals,
            matrix.columns,
            self._config.rms_norm_eps,
            K=matrix.codes.shape[0],
            WORDS=words,
            GROUP=matrix.group,
            ROWS=tile.rows,
            TILE=matrix.tile,
            SPLITS=tile.splits,
            EPILOGUE=epilogue,
            NORMED=epilogue != RESIDUAL and not self._layer_norms,
            HAS_BIAS=matrix.bias is not None,
            QUANTISES=epilogue == GATED or not self._layer_norms,
            PARTS=parts,
            PARTS_PADDED=triton.next_power_of_2(parts),
            DEPENDENT=self._dependent,
            num_warps=tile.rows,
            num_stages=1,
            **self._launch(),
        )
