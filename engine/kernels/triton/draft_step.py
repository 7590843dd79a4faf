"""One draft step on the card as a chain of kernel launches over four-bit weights, for one to four rows.

The same five kernels a layer as a full step (see step.py), less exact and cheaper: activations travel as int8,
attention works head by head, blocks may be left out, and the output matrix may have fewer rows than the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import triton

from engine.files.config import ModelConfig
from engine.kernels.triton import judge
from engine.kernels.triton.draft_attention import draft_attention_kernel
from engine.kernels.triton.draft_ends import draft_choice_kernel, draft_embed_kernel, draft_norm_kernel
from engine.kernels.triton.draft_matmul import draft_matmul_kernel
from engine.kernels.triton.draft_rows_attention import draft_rows_attention_kernel
from engine.kernels.triton.hardware import supports_dependent_launch
from engine.kernels.triton.sampled_choice import SampledChoice
from engine.kernels.triton.tiles import Role

MAX_ROWS = 4
PROJECT, RESIDUAL, GATED, LOGITS, RELU = range(5)
CODES_A_WORD = 8
LARGE_VOCABULARY = 2**16
ATTENTION_KEYS, ATTENTION_WARPS = 16, 1  # of one row and head
ROWS_KEYS, ROWS_WARPS = 32, 4  # of a tile of them
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

    def without(self, attention: frozenset[int], mlp: frozenset[int]) -> tuple[tuple[DraftLayer, bool], ...]:
        """Its blocks in order, without the named ones: (layer, whether it is the attention block)."""
        blocks: list[tuple[DraftLayer, bool]] = []
        for index, layer in enumerate(self.layers):
            blocks += [(layer, True)] * (index not in attention) + [(layer, False)] * (index not in mlp)
        return tuple(blocks)


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


class DraftKernels:
    """Launches the kernels of a draft step on the current stream. Captures cleanly: no allocation, no waiting."""

    def __init__(
        self,
        config: ModelConfig,
        model: DraftModel,
        buffers: DraftBuffers,
        allowed: int,
        *,
        skipped_attention: frozenset[int] = frozenset(),
        skipped_mlp: frozenset[int] = frozenset(),
        window: int = 0,
    ) -> None:
        """allowed: ids below this may be chosen. window: last positions attended to beside the first few; 0 for all."""
        self._config, self._model, self._buffers, self._allowed = config, model, buffers, allowed
        self._blocks, self._window = model.without(skipped_attention, skipped_mlp), window
        self._dependent = supports_dependent_launch(model.embedding.device)
        self._layer_norms = model.final_norm.weight is not None

    def step(self, rows: int, sampled: SampledChoice | None = None) -> None:
        """A step over the token at the cursor and rows - 1 proposals behind it; extends the block, moves the cursor.

        sampled: chooses the tokens by its settings; None takes the best.
        """
        b, model = self._buffers, self._model
        norms = [layer.attention_norm if attends else layer.mlp_norm for layer, attends in self._blocks]
        self._embed(rows, (*norms, model.final_norm)[0])
        squares, parts = b.attention_squares, b.attention_parts
        for (layer, attends), norm, following in zip(self._blocks, norms, [*norms[1:], model.final_norm], strict=True):
            self._layer_norm(norm, rows)
            if attends:
                self._matmul(Role.QKV, PROJECT, b.hidden, layer.qkv, rows, squares, parts, y=b.qkv)
                self._attention(layer, rows)
                squares, parts = b.attention_squares, b.attention_parts
                self._residual(Role.OUTPUT, b.attended, layer.output, rows, squares, following.gain)
            else:
                kind = RELU if self._layer_norms else GATED
                factors = layer.down.factors
                self._matmul(Role.GATE_UP, kind, b.hidden, layer.gate_up, rows, squares, parts, b.activated, factors)
                squares, parts = b.mlp_squares, b.mlp_parts
                self._residual(Role.DOWN, b.activated, layer.down, rows, squares, following.gain)
        self._layer_norm(model.final_norm, rows)
        if model.ids is not None and sampled is not None:
            b.logits[:rows].fill_(float("-inf"))  # the race looks at every token's place
        self._matmul(Role.LOGITS, LOGITS, b.hidden, model.output, rows, squares, parts, y=b.logits)
        self._choose(rows, sampled)

    def _choose(self, rows: int, sampled: SampledChoice | None) -> None:
        b = self._buffers
        if sampled is not None:
            sampled.launch_propose(rows, b.report)
            return
        draft_choice_kernel[(1,)](
            b.state,
            b.floats,
            b.peaks,
            b.peak_ids,
            b.report,
            ROWS=rows,
            ROWS_PADDED=triton.next_power_of_2(rows),
            PARTS=b.peak_parts,
            PARTS_PADDED=triton.next_power_of_2(b.peak_parts),
            DEPENDENT=self._dependent,
            num_warps=8,
            **self._launch(),
        )

    def _embed(self, rows: int, norm: DraftNorm) -> None:
        b, width = self._buffers, self._config.hidden_size
        draft_embed_kernel[(rows,)](
            b.state,
            self._model.embedding,
            norm.gain,
            b.stream,
            *b.hidden,
            b.attention_squares,
            self._model.positions,
            WIDTH=width,
            WIDTH_PADDED=triton.next_power_of_2(width),
            PARTS=b.attention_parts,
            PARTS_PADDED=triton.next_power_of_2(b.attention_parts),
            ROWS_PADDED=triton.next_power_of_2(rows),
            FIRST_PLACE=self._model.first_place,
            DEPENDENT=self._dependent,
            num_warps=4,
        )

    def _layer_norm(self, norm: DraftNorm, rows: int) -> None:
        if norm.weight is None:
            return
        b, width = self._buffers, self._config.hidden_size
        draft_norm_kernel[(rows,)](
            b.stream,
            norm.weight,
            norm.bias,
            norm.factors,
            *b.hidden,
            self._config.rms_norm_eps,
            WIDTH=width,
            WIDTH_PADDED=triton.next_power_of_2(width),
            DEPENDENT=self._dependent,
            num_warps=8,
            **self._launch(),
        )

    def _residual(
        self, role: Role, x: tuple[Tensor, Tensor], w: DraftMatrix, rows: int, squares: Tensor, gain: Tensor
    ) -> None:
        self._matmul(role, RESIDUAL, x, w, rows, squares, 1, self._buffers.hidden, gain)

    def _matmul(
        self,
        role: Role,
        epilogue: int,
        x: tuple[Tensor, Tensor],
        w: DraftMatrix,
        rows: int,
        squares: Tensor,
        parts: int,
        quantised: tuple[Tensor, Tensor] | None = None,
        gain: Tensor | None = None,
        y: Tensor | None = None,
    ) -> None:
        b, unused = self._buffers, self._buffers.stream
        tile = (b.tiles if rows == 1 else b.few_tiles)[role]
        n = w.codes.shape[0] // (2 if epilogue == GATED else 1)
        words = w.codes.shape[1]
        block_w = min(tile.block_w, triton.next_power_of_2(words))
        draft_matmul_kernel[(triton.cdiv(n, tile.block_n),)](
            x[0].view(torch.int32),
            x[1],
            w.codes,
            w.groups,
            unused if w.bias is None else w.bias,
            unused if y is None else y,
            *(quantised or b.hidden),
            unused if gain is None else gain,
            b.stream,
            squares,
            squares,
            b.peaks,
            b.peak_ids,
            self._model.ids if epilogue == LOGITS else None,
            n,
            self._allowed,
            self._config.rms_norm_eps,
            self._config.vocabulary,
            K=w.columns,
            NORM_WIDTH=self._config.hidden_size,
            ROWS=rows,
            ROWS_PADDED=triton.next_power_of_2(rows),
            GROUP_W=words // w.groups.shape[1],
            BLOCK_N=tile.block_n,
            BLOCK_W=block_w,
            CHUNKS=triton.cdiv(words, block_w),
            EPILOGUE=epilogue,
            NORMED=epilogue != RESIDUAL and not self._layer_norms,
            QUANTISES=epilogue in (GATED, RELU) or (epilogue == RESIDUAL and not self._layer_norms),
            HAS_BIAS=w.bias is not None,
            WHOLE_N=n % tile.block_n == 0,
            PARTS=parts,
            PARTS_PADDED=triton.next_power_of_2(parts),
            DEPENDENT=self._dependent,
            num_warps=tile.warps,
            **self._launch(),
        )

    def _attention(self, layer: DraftLayer, rows: int) -> None:
        b, model, config = self._buffers, self._model, self._config
        tensors = (b.qkv, layer.cache, model.cosine, model.sine, b.state, b.partial_out, b.partial_max, b.partial_sum)
        shape = {"HEADS": config.heads, "KV_HEADS": config.kv_heads, "DIM": config.head_dim}
        common = shape | {"WINDOW": self._window, "ROTATES": model.positions is None, "DEPENDENT": self._dependent}
        factors, scale = layer.output.factors, config.head_dim**-0.5
        group = config.heads // config.kv_heads
        if rows * group == 1:
            draft_attention_kernel[(config.heads, b.programs)](
                *tensors,
                b.arrivals,
                factors,
                *b.attended,
                scale,
                BLOCK_KEYS=ATTENTION_KEYS,
                PROGRAMS=b.programs,
                num_warps=ATTENTION_WARPS,
                **common,
                **self._launch(),
            )
            return
        draft_rows_attention_kernel[(config.kv_heads, b.rows_programs)](
            *tensors,
            b.arrivals,
            factors,
            *b.attended,
            scale,
            ROWS=rows,
            TILE=max(16, triton.next_power_of_2(rows * group)),
            BLOCK_KEYS=ROWS_KEYS,
            PROGRAMS=b.rows_programs,
            num_warps=ROWS_WARPS,
            num_stages=2,
            **common,
            **self._launch(),
        )

    def _launch(self) -> dict[str, bool]:
        return {"launch_pdl": True} if self._dependent else {}


def reduced(model: DraftModel, ids: Tensor) -> DraftModel:
    """The model with only these rows (ascending int32 ids) of its output matrix."""
    rows, output = ids.long(), model.output
    bias = None if output.bias is None else output.bias[rows]
    return replace(model, output=DraftMatrix(output.codes[rows], output.groups[rows], output.factors, bias), ids=ids)


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
