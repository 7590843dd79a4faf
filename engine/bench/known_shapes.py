"""Shapes of well-known models. No torch, so that sizes can be told without it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from engine.files.checks import expected_tensors
from engine.files.config import ModelConfig

_LLAMA = ModelConfig(
    family="llama",
    architecture="LlamaForCausalLM",
    hidden_size=4096,
    intermediate_size=11008,
    layers=32,
    heads=32,
    kv_heads=32,
    head_dim=128,
    vocabulary=32000,
    context=4096,
    rms_norm_eps=1e-5,
    rope_theta=10000.0,
    rope_scaling=None,
    tied_embeddings=False,
    attention_bias=False,
    mlp_bias=False,
    hidden_act="silu",
    bos_id=1,
    eos_ids=(2,),
    dtype="bfloat16",
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A model shape. reported_layers: layers the figures are extrapolated to, where fewer are allocated."""

    name: str
    config: ModelConfig
    reported_layers: int


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("llama2-7b", _LLAMA, 32),
        Shape(
            "llama3-8b",
            replace(_LLAMA, intermediate_size=14336, kv_heads=8, vocabulary=128256, context=8192, rope_theta=500000.0),
            32,
        ),
        Shape(
            "smollm2-135m",
            replace(
                _LLAMA,
                hidden_size=576,
                intermediate_size=1536,
                layers=30,
                heads=9,
                kv_heads=3,
                head_dim=64,
                vocabulary=49152,
                context=8192,
                tied_embeddings=True,
            ),
            30,
        ),
        Shape(
            "opt-6.7b",
            replace(_LLAMA, family="opt", intermediate_size=16384, vocabulary=50272, context=2048, hidden_act="relu"),
            32,
        ),
        Shape(
            "wide-8192",
            replace(_LLAMA, hidden_size=8192, intermediate_size=22016, heads=64, kv_heads=64, layers=12),
            48,
        ),
    )
}


def tensor_bytes(config: ModelConfig, item: int = 2) -> dict[str, int]:
    """Bytes of every tensor of a shape by name, `item` a value of a matrix and four one of a vector."""
    shapes = expected_tensors(config)
    if config.family == "opt":  # it has no gate
        shapes = {name: shape for name, shape in shapes.items() if not name.endswith("gate_proj.weight")}
    return {name: math.prod(shape) * (item if len(shape) > 1 else 4) for name, shape in shapes.items()}


def matrix_bytes(config: ModelConfig, layers: int, item: int = 2) -> int:
    """Bytes of weights a step reads: every layer's matrices and the output matrix."""
    hidden, heads = config.hidden_size, config.heads * config.head_dim
    kv = config.kv_heads * config.head_dim
    mlp = 2 if config.family == "opt" else 3  # matrices: OPT has no gate
    layer = hidden * (2 * heads + 2 * kv) + mlp * hidden * config.intermediate_size
    return item * (layers * layer + config.vocabulary * hidden)
