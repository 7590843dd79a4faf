"""Weights as the decode kernels read them: projections that share an input lie in one matrix, their parts are views.

The separate names stay usable (prefill multiplies with the views), so nothing is held twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.files.config import ModelConfig
from engine.kernels.triton.step_memory import FusedLayer, FusedModel
from engine.kernels.triton.tiles import Role
from engine.model import programme as p

Tensor = torch.Tensor


def fuse(
    config: ModelConfig, weights: dict[str, Tensor], caches: Sequence[Tensor], cosine: Tensor, sine: Tensor
) -> FusedModel:
    """Join q, k, v and gate, up of every layer; `weights` then holds views of the joined matrices.

    At most one layer's parts are held twice at a time. Vectors in `weights` are float32 already.
    """
    layers = []
    for layer in range(config.layers):
        attention = f"model.layers.{layer}.self_attn."
        mlp = f"model.layers.{layer}.mlp."
        layers.append(
            FusedLayer(
                attention_norm=weights[f"model.layers.{layer}.input_layernorm.weight"],
                qkv=_join(weights, [attention + part + "_proj.weight" for part in "qkv"]),
                qkv_bias=_join_biases(weights, [attention + part + "_proj.bias" for part in "qkv"]),
                output=weights[attention + "o_proj.weight"],
                output_bias=weights.get(attention + "o_proj.bias"),
                mlp_norm=weights[f"model.layers.{layer}.post_attention_layernorm.weight"],
                gate_up=_join(weights, [mlp + "gate_proj.weight", mlp + "up_proj.weight"]),
                down=weights[mlp + "down_proj.weight"],
                down_bias=weights.get(mlp + "down_proj.bias"),
                cache=caches[layer],
            )
        )
    output = weights[p.output_matrix(config, frozenset(weights))]
    return FusedModel(tuple(layers), weights[p.EMBEDDING], weights[p.FINAL_NORM], output, cosine, sine)


def shapes_of(config: ModelConfig) -> dict[Role, tuple[int, int]]:
    """(N, K) of the matrix of each role."""
    heads, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    return {
        Role.QKV: (heads + 2 * kv, config.hidden_size),
        Role.OUTPUT: (config.hidden_size, heads),
        Role.GATE_UP: (config.intermediate_size, config.hidden_size),
        Role.DOWN: (config.hidden_size, config.intermediate_size),
        Role.LOGITS: (config.vocabulary, config.hidden_size),
    }


def unsupported(config: ModelConfig, dtype: torch.dtype, names: frozenset[str]) -> str | None:
    """Why the decode kernels cannot run this model, or None."""
    if dtype not in (torch.float16, torch.bfloat16):
        return f"its weights are {str(dtype).removeprefix('torch.')}, not float16 or bfloat16"
    if config.head_dim & (config.head_dim - 1) or not 32 <= config.head_dim <= 256:
        return f"its heads are {config.head_dim} wide, not a power of two from 32 to 256"
    if any(name.endswith(("gate_proj.bias", "up_proj.bias")) for name in names):
        return "its MLP gates have biases"
    return None


def _join(weights: dict[str, Tensor], names: list[str]) -> Tensor:
    parts = [weights[name] for name in names]
    joined = torch.cat(parts)
    for name, view in zip(names, joined.split([part.shape[0] for part in parts]), strict=True):
        weights[name] = view
    return joined


def _join_biases(weights: dict[str, Tensor], names: list[str]) -> Tensor | None:
    if names[0] not in weights:
        return None
    return torch.cat([weights[name] for name in names])
