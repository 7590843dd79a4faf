"""What a decode step reads and works in: the weights as its kernels read them, and the memory between them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from engine.files.config import ModelConfig
from engine.kernels.triton import judge
from engine.kernels.triton.tiles import Role, Tile

ROWS = 16  # of a decode step: a verify pass is at most this wide
BLOCK_KEYS = 128
SPLIT_CHUNK = 8  # splits that attention combines at a time

Tensor = torch.Tensor


@dataclass(frozen=True, slots=True)
class HeadRules:
    """rotates: whether queries and keys are turned by their position. window: positions a row sees, its own the last; 0
    for all. query_norm, key_norm: float32 [dim], weights of the RMS norms of every head; both or neither."""

    rotates: bool = True
    window: int = 0
    query_norm: Tensor | None = None
    key_norm: Tensor | None = None


USUAL_HEADS = HeadRules()


@dataclass(frozen=True, slots=True)
class FusedLayer:
    """Weights of one layer. qkv [(heads + 2 kv) dim, hidden], gate_up [2 intermediate, hidden]; norms float32.

    A layer whose norms have biases is OPT's: LayerNorm, and `gate_up` is the one [intermediate, hidden] matrix in
    front of a ReLU. heads: what its attention does to queries and keys.
    """

    attention_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    output: Tensor
    output_bias: Tensor | None
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor
    down_bias: Tensor | None
    cache: Tensor
    attention_norm_bias: Tensor | None = None
    mlp_norm_bias: Tensor | None = None
    up_bias: Tensor | None = None
    heads: HeadRules = USUAL_HEADS


@dataclass(frozen=True, slots=True)
class FusedModel:
    """The whole model as the kernels read it. output: [vocabulary, hidden], the embedding where the two are tied.

    positions: learned position embeddings [places, hidden] that begin at row `first_place`; None where rotary.
    """

    layers: tuple[FusedLayer, ...]
    embedding: Tensor
    final_norm: Tensor
    output: Tensor
    cosine: Tensor
    sine: Tensor
    final_norm_bias: Tensor | None = None
    positions: Tensor | None = None
    first_place: int = 0


class StepBuffers:
    """Activations of `rows` rows, partial results, and the state that steps hand on (see judge.py)."""

    def __init__(
        self, config: ModelConfig, tiles: dict[Role, Tile], positions: int, model: FusedModel, height: int = ROWS
    ) -> None:
        device, dtype = model.embedding.device, model.embedding.dtype
        heads = config.heads * config.head_dim
        group = config.heads // config.kv_heads

        def rows(width: int, type_: torch.dtype = dtype) -> Tensor:
            return torch.zeros(height, width, dtype=type_, device=device)

        self.height = height
        self.stream = rows(config.hidden_size, torch.float32)
        self.scaled = rows(config.hidden_size)
        self.qkv = rows(heads + 2 * config.kv_heads * config.head_dim)
        self.attended = rows(heads)
        self.activated = rows(config.intermediate_size)
        self.logits = torch.zeros(ROWS, config.vocabulary, device=device)
        self.attention_parts = triton.cdiv(config.hidden_size, tiles[Role.OUTPUT].block_n)
        self.mlp_parts = triton.cdiv(config.hidden_size, tiles[Role.DOWN].block_n)
        self.attention_squares = torch.zeros(self.attention_parts, height, device=device)
        self.mlp_squares = torch.zeros(self.mlp_parts, height, device=device)
        self.peak_parts = triton.cdiv(config.vocabulary, tiles[Role.LOGITS].block_n)
        self.peaks = torch.zeros(self.peak_parts, 2, ROWS, device=device)
        self.peak_ids = torch.zeros(self.peak_parts, ROWS, dtype=torch.int32, device=device)
        self.tile = triton.next_power_of_2(ROWS * group)
        self.splits = triton.cdiv(positions, BLOCK_KEYS) + SPLIT_CHUNK
        blocks = height // ROWS
        shape = (blocks, config.kv_heads, self.splits, self.tile)
        self.partial_out = torch.zeros(*shape, config.head_dim, device=device)
        self.partial_max = torch.zeros(shape, device=device)
        self.partial_sum = torch.zeros(shape, device=device)
        self.arrivals = torch.zeros(blocks, config.kv_heads, dtype=torch.int32, device=device)
        self.state = torch.zeros(judge.STATE_SIZE, dtype=torch.int32, device=device)
        self.floats = self.state[judge.FLOATS :].view(torch.float32)
        self.report = torch.zeros(judge.REPORT_SIZE, dtype=torch.int32)  # the host reads it once a draft step has ended
        if device.type == "cuda":
            self.report = self.report.pin_memory()
        addresses = [layer.cache.data_ptr() if device.type != "meta" else 0 for layer in model.layers]
        self.caches = torch.tensor(addresses, dtype=torch.int64, device=device)
