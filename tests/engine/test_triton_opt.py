"""A whole step of an OPT-like model on the card's kernels: LayerNorm, biases, ReLU and learned positions together."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from engine.bench.shapes import SHAPES, random_model
from engine.kernels.reference import operations as op
from engine.kernels.triton import judge
from engine.kernels.triton.step import FusedModel, StepBuffers, StepKernels
from engine.kernels.triton.tiles import Role, Tile

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CONFIG = replace(
    SHAPES["opt-6.7b"].config,
    hidden_size=128,
    intermediate_size=256,
    layers=2,
    heads=4,
    kv_heads=4,
    head_dim=32,
    vocabulary=200,
)
POSITION, PLACES = 140, 300


def reference(model: FusedModel, caches: list[torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    """Logits in float32 torch, norms before each block as in all OPT models but the 350m one."""
    rows = len(tokens)
    assert model.positions is not None and model.first_place == 2
    x = model.embedding[tokens].float() + model.positions[POSITION + 2 : POSITION + 2 + rows].float()
    for layer, cache in zip(model.layers, caches, strict=True):
        normed = functional.layer_norm(x, (128,), layer.attention_norm, layer.attention_norm_bias, 1e-5)
        qkv = functional.linear(normed, layer.qkv.float(), layer.qkv_bias).view(rows, -1, 32)
        query, key, value = qkv.split(4, 1)
        keys, values = torch.cat((cache[:POSITION, 0].float(), key)), torch.cat((cache[:POSITION, 1].float(), value))
        mixed = op.attend(query, keys, values, POSITION, 32**-0.5).reshape(rows, -1)
        x = x + functional.linear(mixed, layer.output.float(), layer.output_bias)
        normed = functional.layer_norm(x, (128,), layer.mlp_norm, layer.mlp_norm_bias, 1e-5)
        inner = torch.relu(functional.linear(normed, layer.gate_up.float(), layer.up_bias))
        x = x + functional.linear(inner, layer.down.float(), layer.down_bias)
    normed = functional.layer_norm(x, (128,), model.final_norm, model.final_norm_bias, 1e-5)
    return functional.linear(normed, model.output.float())


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 2e-3), (torch.bfloat16, 1.5e-2)])
def test_a_step_of_opt_matches_torch_and_its_rows_do_not_depend_on_the_width(
    dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(3)
    caches = [torch.randn(PLACES, 2, 4, 32, device=DEVICE).to(dtype) for _ in range(2)]
    before = [cache.clone() for cache in caches]
    model = random_model(CONFIG, dtype, DEVICE, caches, PLACES)
    tiles = {role: Tile(32, 64, 4, 2) for role in Role}
    buffers = StepBuffers(CONFIG, tiles, PLACES, model)
    kernels = StepKernels(CONFIG, model, buffers, tiles, CONFIG.vocabulary)
    tokens = torch.randint(0, CONFIG.vocabulary, (17,), device=DEVICE, dtype=torch.int32)
    logits = {}
    for rows in (16, 1, 3):
        for cache, old in zip(caches, before, strict=True):
            cache.copy_(old)
        buffers.logits.fill_(float("nan"))
        buffers.state.zero_()
        buffers.state[judge.POSITION] = POSITION
        buffers.state[judge.TOKENS : judge.TOKENS + 17] = tokens
        kernels.full(rows)
        logits[rows] = buffers.logits[:rows].clone()
    wanted = reference(model, before, tokens[:16].long())
    assert float((logits[16] - wanted).norm() / wanted.norm()) < tolerance
    assert torch.equal(logits[1], logits[16][:1]) and torch.equal(logits[3], logits[16][:3])
