"""One decode step on the card as a chain of kernel launches: five a layer, the same chain for every width.

Nothing here knows graphs or conversations; what the kernels read and work in is in step_memory.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton

from engine.files.config import ModelConfig
from engine.kernels.triton import judge
from engine.kernels.triton.attention import attention_kernel
from engine.kernels.triton.hardware import supports_dependent_launch
from engine.kernels.triton.head_norm import head_norm_kernel
from engine.kernels.triton.host_blocks import HostBlocks
from engine.kernels.triton.layer_norm import layer_norm_kernel
from engine.kernels.triton.matmul import matmul_kernel
from engine.kernels.triton.parts_in_turn import PartsInTurn
from engine.kernels.triton.sampled_choice import SampledChoice
from engine.kernels.triton.siblings import judge_siblings_kernel, settle_kernel
from engine.kernels.triton.step_memory import BLOCK_KEYS, ROWS, FusedLayer, FusedModel, HeadRules, StepBuffers
from engine.kernels.triton.tiles import Role, Tile
from engine.kernels.triton.wide_choice import wide_choice_kernel

PROMPT_ROWS = 64  # of a pass over a piece of a prompt
ATTENTION_WARPS = 8
SETTLE_BLOCK = 1024  # values of a cache row that a program moves
PROJECT, RESIDUAL, GATED, LOGITS, RELU = range(5)
FLOAT16_SHRINK = 16.0  # stream * gain / 16 stays far inside float16; a power of two, so nothing is rounded by it

Tensor = torch.Tensor


class StepKernels:
    """Launches the kernels of a step on the current stream. Captures cleanly: no allocation, no synchronisation."""

    def __init__(
        self,
        config: ModelConfig,
        model: FusedModel,
        buffers: StepBuffers,
        tiles: dict[Role, Tile],
        allowed: int,
        weights: PartsInTurn | None = None,
        host: HostBlocks | None = None,
    ) -> None:
        """weights: brings in the parts of the model that are not on the card; None where all of them are.

        host: computes MLPs that are not even brought in; passes with such wait for it and cannot be captured.
        """
        self._host = host
        self._config, self._model, self._buffers, self._tiles = config, model, buffers, tiles
        self._allowed, self._weights = allowed, weights
        self._in_order = False  # the next kernel must not begin before what was queued ahead of it has ended
        self._dependent = supports_dependent_launch(model.embedding.device)
        self._programs = max(1, _multiprocessors(model.embedding.device) // config.kv_heads)  # one wave of the card
        self._shrink = FLOAT16_SHRINK if model.embedding.dtype == torch.float16 else 1.0

    @property
    def captures(self) -> bool:
        """Whether passes can be captured: they need nobody but the card."""
        return self._host is None

    def full(self, rows: int, sampled: SampledChoice | None = None, *, siblings: bool = False) -> None:
        """A full pass over the block's first `rows` tokens; judges them and readies the state.

        sampled: chooses the tokens by its settings; None takes the best. siblings: rows behind state[CHAIN] are
        siblings (see siblings.py; best tokens and rotary positions only).
        """
        self._forward(rows, frozenset(), frozenset(), at_cursor=False, siblings=siblings)
        b = self._buffers
        if siblings:
            self._judge_siblings(rows)
            return
        if sampled is not None:
            sampled.launch_judge(rows)
            return
        judge.judge_kernel[(1,)](
            b.state,
            b.floats,
            b.logits,
            b.peaks,
            b.peak_ids,
            rows,
            self._config.vocabulary,
            PARTS=b.peak_parts,
            PARTS_PADDED=triton.next_power_of_2(b.peak_parts),
            DEPENDENT=self._dependent,
            num_warps=8,
            **self._launch(),
        )

    def _judge_siblings(self, rows: int) -> None:
        b, config = self._buffers, self._config
        judge_siblings_kernel[(1,)](
            b.state,
            b.floats,
            b.logits,
            b.peaks,
            b.peak_ids,
            rows,
            config.vocabulary,
            PARTS=b.peak_parts,
            PARTS_PADDED=triton.next_power_of_2(b.peak_parts),
            DEPENDENT=self._dependent,
            num_warps=8,
            **self._launch(),
        )
        stride = 2 * config.kv_heads * config.head_dim
        settle_kernel[(len(self._model.layers), triton.cdiv(stride, SETTLE_BLOCK))](
            b.state,
            b.caches,
            self._model.layers[0].cache,
            STRIDE=stride,
            BLOCK=SETTLE_BLOCK,
            DEPENDENT=self._dependent,
            num_warps=4,
            **self._launch(),
        )

    def prompt(self) -> None:
        """A pass over as many prompt tokens as the buffers are high: fills the cache, makes no logits."""
        self._blocks(self._buffers.height, frozenset(), frozenset(), at_cursor=False)
        if self._weights is not None:
            self._weights.end()

    def wide(self, found: Tensor) -> None:
        """A full pass over as many tokens as the buffers are high, and what the model chooses after each: see
        wide_choice.py for `found`."""
        b, model, vocabulary = self._buffers, self._model, self._config.vocabulary
        squares, parts = self._blocks(b.height, frozenset(), frozenset(), at_cursor=False)
        self._layer_norm(model.final_norm, model.final_norm_bias, b.height)
        self._bring(2 * len(model.layers))
        for first in range(0, b.height, ROWS):
            rows, sums = b.scaled[first : first + ROWS], squares[:, first:]
            self._matmul(Role.LOGITS, LOGITS, rows, model.output, None, b.logits, ROWS, sums, parts)
            wide_choice_kernel[(1,)](
                b.state,
                b.logits,
                b.peaks,
                b.peak_ids,
                found,
                first,
                vocabulary,
                PARTS=b.peak_parts,
                PARTS_PADDED=triton.next_power_of_2(b.peak_parts),
                HEIGHT=b.height,
                DEPENDENT=self._dependent,
                num_warps=8,
                **self._launch(),
            )
        if self._weights is not None:
            self._weights.end()

    def draft(
        self,
        skipped_attention: Sequence[int],
        skipped_mlp: Sequence[int],
        report: Tensor,
        sampled: SampledChoice | None = None,
    ) -> None:
        """A draft step of full weights at the cursor, without the named blocks; its token becomes the next proposal.

        report: see judge.py.
        """
        self._forward(1, frozenset(skipped_attention), frozenset(skipped_mlp), at_cursor=True)
        b = self._buffers
        if sampled is not None:
            sampled.launch_propose(1, report)
            return
        judge.propose_kernel[(1,)](
            b.state,
            b.floats,
            b.peaks,
            b.peak_ids,
            report,
            PARTS=b.peak_parts,
            PARTS_PADDED=triton.next_power_of_2(b.peak_parts),
            DEPENDENT=self._dependent,
            num_warps=4,
            **self._launch(),
        )

    def _forward(
        self,
        rows: int,
        skipped_attention: frozenset[int],
        skipped_mlp: frozenset[int],
        *,
        at_cursor: bool,
        siblings: bool = False,
    ) -> None:
        squares, parts = self._blocks(rows, skipped_attention, skipped_mlp, at_cursor=at_cursor, siblings=siblings)
        b, model = self._buffers, self._model
        self._layer_norm(model.final_norm, model.final_norm_bias, rows)
        self._bring(2 * len(model.layers))
        self._matmul(Role.LOGITS, LOGITS, b.scaled, model.output, None, b.logits, rows, squares, parts)
        if self._weights is not None:
            self._weights.end()

    def _blocks(
        self,
        rows: int,
        skipped_attention: frozenset[int],
        skipped_mlp: frozenset[int],
        *,
        at_cursor: bool,
        siblings: bool = False,
    ) -> tuple[Tensor, int]:
        """Embedding and all blocks; the partial sums of squares that the final norm needs, and how many."""
        b, model = self._buffers, self._model
        blocks: list[tuple[int, FusedLayer, bool]] = []
        for index, layer in enumerate(model.layers):
            blocks += [(2 * index, layer, True)] * (index not in skipped_attention)
            blocks += [(2 * index + 1, layer, False)] * (index not in skipped_mlp)
        norms = [layer.attention_norm if attends else layer.mlp_norm for _, layer, attends in blocks]
        norms.append(model.final_norm)
        if self._weights is not None:
            self._weights.begin()
        self._embed(rows, norms[0], at_cursor)
        squares, parts = b.attention_squares, b.attention_parts
        for (part, layer, attends), following in zip(blocks, norms[1:], strict=True):
            self._bring(part)
            if self._host is not None and self._host.computes(part):
                self._on_host(self._host, part, following, rows)
                squares, parts = b.mlp_squares, b.mlp_parts
            elif attends:
                self._layer_norm(layer.attention_norm, layer.attention_norm_bias, rows)
                self._matmul(Role.QKV, PROJECT, b.scaled, layer.qkv, layer.qkv_bias, b.qkv, rows, squares, parts)
                self._head_norm(layer.heads, rows)
                self._attention(layer, rows, at_cursor, siblings)
                squares, parts = b.attention_squares, b.attention_parts
                self._add(Role.OUTPUT, b.attended, layer.output, layer.output_bias, following, squares, rows)
            else:
                self._layer_norm(layer.mlp_norm, layer.mlp_norm_bias, rows)
                kind, bias = (GATED if layer.mlp_norm_bias is None else RELU), layer.up_bias
                self._matmul(Role.GATE_UP, kind, b.scaled, layer.gate_up, bias, b.activated, rows, squares, parts)
                squares, parts = b.mlp_squares, b.mlp_parts
                self._add(Role.DOWN, b.activated, layer.down, layer.down_bias, following, squares, rows)
            if self._weights is not None:
                self._weights.after(part)
        return squares, parts

    def _on_host(self, host: HostBlocks, part: int, gain: Tensor, rows: int) -> None:
        """A block computed outside of the card, and what the next norm needs of it, as the RESIDUAL epilogue leaves."""
        b = self._buffers
        after, squares = host.add(part, b.stream[:rows].cpu())
        b.stream[:rows].copy_(after)
        b.scaled[:rows].copy_(b.stream[:rows] * gain * (1.0 / self._shrink))
        b.mlp_squares.zero_()
        b.mlp_squares[0, :rows].copy_(squares)

    def _bring(self, part: int) -> None:
        """Have a part of the model where its kernels read it; they may read weights before their turn otherwise."""
        if self._weights is not None and self._weights.before(part):
            self._in_order = True

    def _embed(self, rows: int, gain: Tensor, at_cursor: bool) -> None:
        b, width = self._buffers, self._config.hidden_size
        judge.embed_kernel[(rows,)](
            b.state,
            self._model.embedding,
            gain,
            b.stream,
            b.scaled,
            b.attention_squares,
            WIDTH=width,
            WIDTH_PADDED=triton.next_power_of_2(width),
            PARTS=b.attention_parts,
            PARTS_PADDED=triton.next_power_of_2(b.attention_parts),
            SHRINK=self._shrink,
            AT_CURSOR=at_cursor,
            DEPENDENT=self._dependent,
            SQUARES_ROWS=b.height,
            positions=self._model.positions,
            FIRST_PLACE=self._model.first_place,
            num_warps=4,
        )

    def _layer_norm(self, weight: Tensor, bias: Tensor | None, rows: int) -> None:
        """LayerNorm of the stream into the input of what follows; nothing where the norms are RMS norms."""
        if bias is None:
            return
        b, width = self._buffers, self._config.hidden_size
        layer_norm_kernel[(rows,)](
            b.stream,
            weight,
            bias,
            b.scaled,
            self._config.rms_norm_eps,
            WIDTH=width,
            WIDTH_PADDED=triton.next_power_of_2(width),
            DEPENDENT=self._dependent,
            num_warps=8,
            **self._launch(),
        )

    def _add(
        self, role: Role, x: Tensor, w: Tensor, bias: Tensor | None, gain: Tensor, squares: Tensor, rows: int
    ) -> None:
        """stream += x w^T (+ bias), and what the next norm needs of it."""
        self._matmul(role, RESIDUAL, x, w, bias, self._buffers.scaled, rows, squares, 1, gain)

    def _matmul(
        self,
        role: Role,
        epilogue: int,
        x: Tensor,
        w: Tensor,
        bias: Tensor | None,
        y: Tensor,
        rows: int,
        squares: Tensor,
        parts: int,
        gain: Tensor | None = None,
    ) -> None:
        b, tile = self._buffers, self._tiles[role]
        n, k = w.shape
        if epilogue == GATED:
            n //= 2
        matmul_kernel[(triton.cdiv(rows, ROWS), triton.cdiv(n, tile.block_n))](
            x,
            w,
            bias if bias is not None else b.stream,
            y,
            b.stream,
            gain if gain is not None else b.stream,
            squares,
            squares,
            b.peaks,
            b.peak_ids,
            rows,
            n,
            self._allowed,
            self._config.rms_norm_eps,
            K=k,
            BLOCK_N=tile.block_n,
            BLOCK_K=tile.block_k,
            EPILOGUE=epilogue,
            NORMED=epilogue != RESIDUAL and self._model.final_norm_bias is None,
            HAS_BIAS=bias is not None,
            WHOLE_N=n % tile.block_n == 0,
            PARTS=parts,
            PARTS_PADDED=triton.next_power_of_2(parts),
            SHRINK=self._shrink,
            AHEAD=tile.ahead if self._dependent else 0,
            DEPENDENT=self._dependent,
            HEIGHT=b.height,
            num_warps=tile.warps,
            num_stages=tile.stages,
            **self._launch(),
        )

    def _head_norm(self, rules: HeadRules, rows: int) -> None:
        """RMS norm of queries and keys, where the layer has one."""
        if rules.query_norm is None:
            return
        config = self._config
        head_norm_kernel[(rows, config.heads + config.kv_heads)](
            self._buffers.qkv,
            rules.query_norm,
            rules.key_norm,
            config.rms_norm_eps,
            HEADS=config.heads,
            KV_HEADS=config.kv_heads,
            DIM=config.head_dim,
            DEPENDENT=self._dependent,
            num_warps=1,
            **self._launch(),
        )

    def _attention(self, layer: FusedLayer, rows: int, at_cursor: bool, siblings: bool) -> None:
        b, model, config = self._buffers, self._model, self._config
        attention_kernel[(config.kv_heads, self._programs, triton.cdiv(rows, ROWS))](
            b.qkv,
            layer.cache,
            model.cosine,
            model.sine,
            b.state,
            b.partial_out,
            b.partial_max,
            b.partial_sum,
            b.arrivals,
            b.attended,
            rows,
            b.splits,
            config.head_dim**-0.5,
            HEADS=config.heads,
            KV_HEADS=config.kv_heads,
            DIM=config.head_dim,
            TILE=b.tile,
            BLOCK_KEYS=BLOCK_KEYS,
            PROGRAMS=self._programs,
            ROTATES=self._model.positions is None and layer.heads.rotates,
            AT_CURSOR=at_cursor,
            DEPENDENT=self._dependent,
            SIBLINGS=siblings,
            WINDOW=layer.heads.window,
            num_warps=ATTENTION_WARPS,
            num_stages=2,
            **self._launch(),
        )

    def _launch(self) -> dict[str, bool]:
        if self._in_order:
            self._in_order = False
            return {}
        return {"launch_pdl": True} if self._dependent else {}


def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
