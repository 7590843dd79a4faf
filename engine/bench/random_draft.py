"""A four-bit copy of a random model, made of random codes: the bytes and the work of a real one, at once."""

from __future__ import annotations

import torch

from engine.files.config import ModelConfig
from engine.kernels.triton.draft_memory import CODES_A_WORD, DraftLayer, DraftMatrix, DraftModel, DraftNorm
from engine.kernels.triton.step_memory import FusedModel
from engine.lowbit.codes import group_of

Tensor = torch.Tensor


def random_draft(config: ModelConfig, model: FusedModel) -> DraftModel:
    """Codes at random beside a random model's norms, embedding and cache; values as large as the model's."""

    def matrix(weight: Tensor, bias: Tensor | None = None) -> DraftMatrix:
        rows, columns = weight.shape
        device = weight.device
        codes = torch.randint(-(2**31), 2**31 - 1, (rows, columns // CODES_A_WORD), dtype=torch.int32, device=device)
        scale = (torch.rand(rows, columns // group_of(columns), device=device) + 0.5) * (0.15 / columns**0.5)
        terms = torch.stack((scale.half(), (-7.5 * scale).half()), -1).view(torch.int32)[:, :, 0]
        return DraftMatrix(codes, terms.contiguous(), torch.ones(columns, device=device), bias)

    def norm(weight: Tensor, bias: Tensor | None) -> DraftNorm:
        if bias is None:
            return DraftNorm(weight)
        ones = torch.ones_like(weight)
        return DraftNorm(ones, weight, bias, ones)

    layers = tuple(
        DraftLayer(
            attention_norm=norm(layer.attention_norm, layer.attention_norm_bias),
            qkv=matrix(layer.qkv, layer.qkv_bias),
            output=matrix(layer.output, layer.output_bias),
            mlp_norm=norm(layer.mlp_norm, layer.mlp_norm_bias),
            gate_up=matrix(layer.gate_up, layer.up_bias),
            down=matrix(layer.down, layer.down_bias),
            cache=layer.cache,
        )
        for layer in model.layers
    )
    final = norm(model.final_norm, model.final_norm_bias)
    return DraftModel(
        layers,
        model.embedding,
        final,
        matrix(model.output),
        model.cosine,
        model.sine,
        positions=model.positions,
        first_place=model.first_place,
    )
