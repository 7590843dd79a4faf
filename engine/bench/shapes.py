"""Random models of known shapes, for measuring steps without files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from engine.bench.known_shapes import SHAPES, Shape, matrix_bytes
from engine.files.config import ModelConfig
from engine.kernels.triton.step_memory import FusedModel
from engine.model import programme as p
from engine.model.fused import fuse
from engine.model.rope import rope_tables

__all__ = ["SHAPES", "Shape", "matrix_bytes", "random_model", "random_weights"]


def random_weights(config: ModelConfig, dtype: torch.dtype, device: torch.device) -> dict[str, torch.Tensor]:
    """Weights of a shape under the names of a model folder: matrices N(0, 0.7 / sqrt K), norms near one."""
    hidden, heads = config.hidden_size, config.heads * config.head_dim
    kv, inner = config.kv_heads * config.head_dim, config.intermediate_size

    def matrix(n: int, k: int) -> torch.Tensor:
        return torch.randn(n, k, dtype=dtype, device=device) * (0.7 / k**0.5)

    def norm() -> torch.Tensor:
        return torch.rand(hidden, device=device) + 0.5

    weights = {p.EMBEDDING: torch.randn(config.vocabulary, hidden, dtype=dtype, device=device), p.FINAL_NORM: norm()}
    if not config.tied_embeddings:
        weights[p.OUTPUT] = matrix(config.vocabulary, hidden)
    for layer in range(config.layers):
        prefix = f"model.layers.{layer}."
        weights[prefix + "input_layernorm.weight"] = norm()
        weights[prefix + "post_attention_layernorm.weight"] = norm()
        for part, n, k in (("q", heads, hidden), ("k", kv, hidden), ("v", kv, hidden), ("o", hidden, heads)):
            weights[f"{prefix}self_attn.{part}_proj.weight"] = matrix(n, k)
        for part, n, k in (("gate", inner, hidden), ("up", inner, hidden), ("down", hidden, inner)):
            weights[f"{prefix}mlp.{part}_proj.weight"] = matrix(n, k)
    return weights


def random_model(
    config: ModelConfig, dtype: torch.dtype, device: torch.device, caches: Sequence[torch.Tensor], positions: int
) -> FusedModel:
    """A random model of a shape, as the decode kernels read it."""
    cosine, sine = (torch.from_numpy(table).to(device) for table in rope_tables(config, positions))
    weights = random_weights(config, dtype, device)
    model = fuse(config, weights, caches, cosine, sine)
    return model if config.family != "opt" else _as_opt(config, model, positions)


def _as_opt(config: ModelConfig, model: FusedModel, positions: int) -> FusedModel:
    """The same sizes as OPT has them: biases, LayerNorm, one matrix before a ReLU, learned positions from row 2 on."""

    def bias(width: int) -> torch.Tensor:
        return torch.randn(width, device=model.final_norm.device) * 0.02

    hidden, inner = config.hidden_size, config.intermediate_size
    layers = tuple(
        replace(
            layer,
            qkv_bias=bias(layer.qkv.shape[0]),
            output_bias=bias(hidden),
            gate_up=layer.gate_up[:inner],
            up_bias=bias(inner),
            down_bias=bias(hidden),
            attention_norm_bias=bias(hidden),
            mlp_norm_bias=bias(hidden),
        )
        for layer in model.layers
    )
    places = torch.randn(positions + 2, hidden, dtype=model.embedding.dtype, device=model.embedding.device)
    return replace(model, layers=layers, final_norm_bias=bias(hidden), positions=places, first_place=2)
