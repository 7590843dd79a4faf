"""One draft step on the card as a chain of kernel launches over four-bit weights, for one to four rows.

The same five kernels a layer as a full step (see step.py), less exact and cheaper: activations travel as int8,
attention works head by head, blocks may be left out, and the output matrix may have fewer rows than the vocabulary.
What the kernels read and work in is in draft_memory.py.
"""

from __future__ import annotations

import torch
import triton

from engine.files.config import ModelConfig
from engine.kernels.triton.draft_attention import draft_attention_kernel
from engine.kernels.triton.draft_ends import draft_choice_kernel, draft_embed_kernel, draft_norm_kernel
from engine.kernels.triton.draft_matmul import draft_matmul_kernel
from engine.kernels.triton.draft_memory import DraftBuffers, DraftLayer, DraftMatrix, DraftModel, DraftNorm
from engine.kernels.triton.draft_rows_attention import draft_rows_attention_kernel
from engine.kernels.triton.hardware import supports_dependent_launch
from engine.kernels.triton.head_norm import head_norm_kernel
from engine.kernels.triton.parts_in_turn import PartsInTurn
from engine.kernels.triton.sampled_choice import SampledChoice
from engine.kernels.triton.step_memory import HeadRules
from engine.kernels.triton.tiles import Role
from engine.model.instructions import SINKS

PROJECT, RESIDUAL, GATED, LOGITS, RELU = range(5)
ATTENTION_KEYS, ATTENTION_WARPS = 16, 1  # of one row and head
ROWS_KEYS, ROWS_WARPS = 32, 4  # of a tile of them

Tensor = torch.Tensor


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
        weights: PartsInTurn | None = None,
    ) -> None:
        """allowed: ids below this may be chosen. window: last positions attended to beside the first few; 0 for all.

        weights: brings in the parts of the copy that are not on the card; None where all of them are.
        """
        self._weights = weights
        self._in_order = False  # the next kernel must not begin before what was queued ahead of it has ended
        self._config, self._model, self._buffers, self._allowed = config, model, buffers, allowed
        self._blocks, self._window = model.without(skipped_attention, skipped_mlp), window
        self._dependent = supports_dependent_launch(model.embedding.device)
        self._layer_norms = model.final_norm.weight is not None

    def step(self, rows: int, sampled: SampledChoice | None = None) -> None:
        """A step over the token at the cursor and rows - 1 proposals behind it; extends the block, moves the cursor.

        sampled: chooses the tokens by its settings; None takes the best.
        """
        b, model = self._buffers, self._model
        norms = [layer.attention_norm if attends else layer.mlp_norm for _, layer, attends in self._blocks]
        if self._weights is not None:
            self._weights.begin()
        self._embed(rows, (*norms, model.final_norm)[0])
        squares, parts = b.attention_squares, b.attention_parts
        followers = [*norms[1:], model.final_norm]
        for (part, layer, attends), norm, following in zip(self._blocks, norms, followers, strict=True):
            self._bring(part)
            self._layer_norm(norm, rows)
            if attends:
                self._matmul(Role.QKV, PROJECT, b.hidden, layer.qkv, rows, squares, parts, y=b.qkv)
                self._head_norm(layer.heads, rows)
                self._attention(layer, rows)
                squares, parts = b.attention_squares, b.attention_parts
                self._residual(Role.OUTPUT, b.attended, layer.output, rows, squares, following.gain)
            else:
                kind = RELU if self._layer_norms else GATED
                factors = layer.down.factors
                self._matmul(Role.GATE_UP, kind, b.hidden, layer.gate_up, rows, squares, parts, b.activated, factors)
                squares, parts = b.mlp_squares, b.mlp_parts
                self._residual(Role.DOWN, b.activated, layer.down, rows, squares, following.gain)
            if self._weights is not None:
                self._weights.after(part)
        self._layer_norm(model.final_norm, rows)
        if model.ids is not None and sampled is not None:
            b.logits[:rows].fill_(float("-inf"))  # the race looks at every token's place
        self._matmul(Role.LOGITS, LOGITS, b.hidden, model.output, rows, squares, parts, y=b.logits)
        self._choose(rows, sampled)
        if self._weights is not None:
            self._weights.end()

    def _bring(self, part: int) -> None:
        """Have a part of the copy where its kernels read it; they may read weights before their turn otherwise."""
        if self._weights is not None and self._weights.before(part):
            self._in_order = True

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

    def _seen(self, rules: HeadRules) -> dict[str, int]:
        """The draft's window with the first positions, or the layer's own where that is no wider."""
        if self._window and not 0 < rules.window <= self._window + SINKS:
            return {"WINDOW": self._window, "SINKS": SINKS}
        return {"WINDOW": rules.window, "SINKS": 0}

    def _attention(self, layer: DraftLayer, rows: int) -> None:
        b, model, config = self._buffers, self._model, self._config
        tensors = (b.qkv, layer.cache, model.cosine, model.sine, b.state, b.partial_out, b.partial_max, b.partial_sum)
        shape = {"HEADS": config.heads, "KV_HEADS": config.kv_heads, "DIM": config.head_dim}
        rotates = model.positions is None and layer.heads.rotates
        common = shape | {"ROTATES": rotates, "DEPENDENT": self._dependent} | self._seen(layer.heads)
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
        if self._in_order:
            self._in_order = False
            return {}
        return {"launch_pdl": True} if self._dependent else {}
