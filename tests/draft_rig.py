"""Low-bit drafts of small model folders on the card's kernels, and the torch runner of the same rounded weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.kernels.triton import judge
from engine.kernels.triton.draft_memory import DraftBuffers, DraftLayer, DraftMatrix, DraftModel, DraftNorm, DraftTile
from engine.kernels.triton.draft_packing import pack
from engine.kernels.triton.draft_step import DraftKernels
from engine.kernels.triton.step_memory import FusedModel
from engine.kernels.triton.tiles import Role
from engine.lowbit.codes import LowBitCodes, dequantise, group_of, round_to_nearest
from step_rig import Step
from triton_rig import Tensor, quiet, random


def rounded(weight: Tensor, seed: int) -> LowBitCodes:
    """Four-bit codes of a weight, with factors that are not one."""
    columns = weight.shape[1]
    factors = 2.0 ** torch.rand(columns, generator=random(seed))
    codes = round_to_nearest(weight.float().cpu().numpy(), 4, group_of(columns), factors.numpy())
    parts = [torch.from_numpy(part).to(weight.device) for part in (codes.codes, codes.scale, codes.low, codes.factors)]
    return LowBitCodes(*parts, codes.bits, codes.group)


def rounded_model(model: FusedModel) -> tuple[DraftModel, dict[int, Tensor]]:
    """The model at four bits, and the values its matrices then have, by the address of the weight they stand for."""
    values: dict[int, Tensor] = {}

    def matrix(weight: Tensor, bias: Tensor | None = None) -> DraftMatrix:
        codes = rounded(weight, len(values))
        values[weight.data_ptr()] = dequantise(codes)
        return pack(codes, bias)

    def norm(weight: Tensor, bias: Tensor | None, following: DraftMatrix) -> DraftNorm:
        if bias is None:
            return DraftNorm(weight * following.factors)
        return DraftNorm(following.factors, weight, bias, following.factors)

    layers = []
    for layer in model.layers:
        qkv, gate_up = matrix(layer.qkv, layer.qkv_bias), matrix(layer.gate_up, layer.up_bias)
        output, down = matrix(layer.output, layer.output_bias), matrix(layer.down, layer.down_bias)
        attention_norm = norm(layer.attention_norm, layer.attention_norm_bias, qkv)
        mlp_norm = norm(layer.mlp_norm, layer.mlp_norm_bias, gate_up)
        layers.append(DraftLayer(attention_norm, qkv, output, mlp_norm, gate_up, down, layer.cache, layer.heads))
    output = matrix(model.output)
    final = norm(model.final_norm, model.final_norm_bias, output)
    ends = {"positions": model.positions, "first_place": model.first_place}
    return DraftModel(tuple(layers), model.embedding, final, output, model.cosine, model.sine, **ends), values  # type: ignore[arg-type]


@dataclass(frozen=True)
class Draft:
    """A draft beside a full step, over the same state and cache."""

    step: Step
    buffers: DraftBuffers
    kernels: DraftKernels

    def run(self, tokens: Sequence[int] = ()) -> Tensor:
        """Logits [rows, vocabulary] of a draft step over the token at the cursor and the proposals."""
        b, state = self.buffers, self.step.buffers.state
        for buffer in (b.stream, b.qkv, b.attention_squares, b.mlp_squares, b.peaks, b.partial_out, b.partial_max):
            buffer.fill_(float("nan"))
        cursor = int(state[judge.CURSOR])
        for i, token in enumerate(tokens):
            state[judge.TOKENS + cursor + 1 + i] = token
        b.logits.fill_(float("nan"))
        with quiet():
            self.kernels.step(1 + len(tokens))
        return b.logits[: 1 + len(tokens)].clone()

    def report(self) -> tuple[int, list[int], list[int]]:
        """Proposals agreed with, chosen tokens, runners-up."""
        values = self.step.buffers.report.tolist()
        return values[judge.AGREED], values[judge.OWN : judge.OWN + 4], values[judge.SECONDS : judge.SECONDS + 4]


def make_draft(step: Step, model: DraftModel, **recipe: object) -> Draft:
    """Draft kernels over the state and cache of a full step."""
    config, full = step.runner.config, step.buffers
    tiles = {role: DraftTile(64, 8, 4) for role in Role}  # few programs: interpreted ones are slow
    buffers = DraftBuffers(config, model, full.state, full.logits, full.report, tiles)
    return Draft(step, buffers, DraftKernels(config, model, buffers, config.vocabulary, **recipe))  # type: ignore[arg-type]
