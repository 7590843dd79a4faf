"""What a draft step reads and works in: the low-bit copy as its kernels read it, and the memory between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import triton

from engine.files.config import ModelConfig
from engine.kernels.triton import judge
from engine.kernels.triton.step_memory import USUAL_HEADS, HeadRules
from engine.kernels.triton.tiles import Role

MAX_ROWS = 4
CODES_A_WORD = 8
LARGE_VOCABULARY = 2**16
PROGRAMS_A_PROCESSOR = 16  # attention programs, over all heads, for each multiprocessor
MOST_PROGRAMS, MOST_ROWS_PROGRAMS = 32, 16  # of a head

Tensor = torch.Tensor


@dataclass(frozen=True, slots=True)
class DraftMatrix:
    """Four-bit rows as draft_matmul reads them. codes int32 [N, K / 8], groups int32 [N, K / group].

    factors: float32 [K], 1 / the activation factors: what the matrix's input is multiplied with.
    """

    codes: Tensor
    groups: Tensor
    factors: Tensor
    bias: Tensor | None = None

    @property
    def columns(self) -> int:
        """K."""
        return self.codes.shape[1] * CODES_A_WORD

    @property
    def nbytes(self) -> int:
        """Bytes a step reads of it."""
        return self.codes.nbytes + self.groups.nbytes


@dataclass(frozen=True, slots=True)
class DraftNorm:
    """gain: float32 [hidden], norm weight times the factors of the matrix that follows.

    weight, bias, factors: of a LayerNorm, which has a kernel of its own; None for an RMS norm.
    """

    gain: Tensor
    weight: Tensor | None = None
    bias: Tensor | None = None
    factors: Tensor | None = None


@dataclass(frozen=True, slots=True)
class DraftLayer:
    """A layer's low-bit copy over the cache it shares with the full model. gate_up: gates, then ups; OPT: ups only."""

    attention_norm: DraftNorm
    qkv: DraftMatrix
    output: DraftMatrix
    mlp_norm: DraftNorm
    gate_up: DraftMatrix
    down: DraftMatrix
    cache: Tensor
    heads: HeadRules = USUAL_HEADS


@dataclass(frozen=True, slots=True)
class DraftModel:
    """The whole low-bit copy. ids: int32, the token of each row of `output`; None where they are the vocabulary."""

    layers: tuple[DraftLayer, ...]
    embedding: Tensor
    final_norm: DraftNorm
    output: DraftMatrix
    cosine: Tensor
    sine: Tensor
    ids: Tensor | None = None
    positions: Tensor | None = None
    first_place: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes the copy takes."""
        layers = sum(m.nbytes for layer in self.layers for m in (layer.qkv, layer.output, layer.gate_up, layer.down))
        return layers + self.output.nbytes

    def without(self, attention: frozenset[int], mlp: frozenset[int]) -> tuple[tuple[int, DraftLayer, bool], ...]:
        """Its blocks in order, without the named ones: (part, layer, whether it is the attention block)."""
        blocks: list[tuple[int, DraftLayer, bool]] = []
        for index, layer in enumerate(self.layers):
            blocks += [(2 * index, layer, True)] * (index not in attention)
            blocks += [(2 * index + 1, layer, False)] * (index not in mlp)
        return tuple(blocks)


def reduced(model: DraftModel, ids: Tensor) -> DraftModel:
    """The model with only these rows (ascending int32 ids) of its output matrix."""
    rows, output = ids.long(), model.output
    bias = None if output.bias is None else output.bias[rows]
    return replace(model, output=DraftMatrix(output.codes[rows], output.groups[rows], output.factors, bias), ids=ids)


@dataclass(frozen=True, slots=True)
class DraftTile:
    """Matrix rows of a program, words of a chunk, warps."""

    block_n: int
    block_w: int
    warps: int


def default_tile(role: Role, columns: int, *, one_row: bool) -> DraftTile:
    """Measured on an H200 with 4096-wide and 8192-wide shapes.

    A program of one row has registers for more chunks of words than one of several rows.
    """
    words = columns // CODES_A_WORD
    if role is Role.DOWN and one_row and words > 1024:
        return DraftTile(8, 256, 2) if words <= 1536 else DraftTile(8, 512, 4)
    block_w = min(1024 if words % 1024 == 0 or words > 1536 else 512, triton.next_power_of_2(words))
    return DraftTile(8, block_w, 8 if role is Role.DOWN and block_w == 1024 else 4)


def default_tiles(config: ModelConfig, *, one_row: bool) -> dict[Role, DraftTile]:
    """The default tile of every matrix, for steps of one row or of several."""
    widths = {Role.OUTPUT: config.heads * config.head_dim, Role.DOWN: config.intermediate_size}
    tiles = {role: default_tile(role, widths.get(role, config.hidden_size), one_row=one_row) for role in Role}
    if config.vocabulary > LARGE_VOCABULARY:  # one program chooses among the bests of all others
        tiles[Role.LOGITS] = DraftTile(32, tiles[Role.LOGITS].block_w, 8)
    return tiles


class DraftBuffers:
    """Activations of up to four rows, partial results, and the report that the host reads. State is the full step's."""

    def __init__(
        self,
        config: ModelConfig,
        model: DraftModel,
        state: Tensor,
        logits: Tensor,
        report: Tensor,
        tiles: dict[Role, DraftTile] | None = None,
    ) -> None:
        """state, logits, report: those of StepBuffers; a draft step writes its logits there too."""
        device, dtype = model.embedding.device, model.embedding.dtype
        heads = config.heads * config.head_dim
        self.tiles = tiles or default_tiles(config, one_row=True)
        self.few_tiles = tiles or default_tiles(config, one_row=False)
        self.state, self.floats, self.logits = state, state[judge.FLOATS :].view(torch.float32), logits
        self.stream = torch.zeros(MAX_ROWS, config.hidden_size, device=device)
        self.qkv = torch.zeros(MAX_ROWS, heads + 2 * config.kv_heads * config.head_dim, dtype=dtype, device=device)
        self.hidden = _activations(config.hidden_size, device)
        self.attended = _activations(heads, device)
        self.activated = _activations(config.intermediate_size, device)
        self.attention_parts = triton.cdiv(config.hidden_size, self.tiles[Role.OUTPUT].block_n)
        self.mlp_parts = triton.cdiv(config.hidden_size, self.tiles[Role.DOWN].block_n)
        self.attention_squares = torch.zeros(self.attention_parts, MAX_ROWS, device=device)
        self.mlp_squares = torch.zeros(self.mlp_parts, MAX_ROWS, device=device)
        self.peak_parts = triton.cdiv(model.output.codes.shape[0], self.tiles[Role.LOGITS].block_n)
        self.peaks = torch.zeros(self.peak_parts, 3, MAX_ROWS, device=device)
        self.peak_ids = torch.zeros(self.peak_parts, 2, MAX_ROWS, dtype=torch.int32, device=device)
        self.programs = _programs(config.heads, device, MOST_PROGRAMS)
        self.rows_programs = _programs(config.kv_heads, device, MOST_ROWS_PROGRAMS)
        self.tile = max(16, triton.next_power_of_2(MAX_ROWS * config.heads // config.kv_heads))
        parts = max(config.heads * self.programs, config.kv_heads * self.rows_programs * self.tile)
        self.partial_out = torch.zeros(parts, config.head_dim, device=device)
        self.partial_max, self.partial_sum = torch.zeros(parts, device=device), torch.zeros(parts, device=device)
        self.arrivals = torch.zeros(config.heads, dtype=torch.int32, device=device)
        self.report = report


def _activations(width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """int8 planes [rows, 2, width / 2] and float32 scales [rows, width / 8]."""
    planes = torch.zeros(MAX_ROWS, 2, width // 2, dtype=torch.int8, device=device)
    return planes, torch.zeros(MAX_ROWS, width // 8, device=device)


def _programs(heads: int, device: torch.device, most: int) -> int:
    """Attention programs of a head: a power of two, all heads' together a few for each multiprocessor."""
    wave = PROGRAMS_A_PROCESSOR * _multiprocessors(device) // heads
    return min(most, max(2, triton.next_power_of_2(wave + 1) // 2))


def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
