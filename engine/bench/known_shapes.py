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

_QWEN3 = replace(
    _LLAMA,
    family="qwen3",
    architecture="Qwen3ForCausalLM",
    hidden_size=1024,
    intermediate_size=3072,
    layers=28,
    heads=16,
    kv_heads=8,
    vocabulary=151936,
    context=40960,
    rms_norm_eps=1e-6,
    rope_theta=1e6,
    tied_embeddings=True,
    qk_norm=True,
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
            replace(
                _LLAMA,
                family="opt",
                architecture="OPTForCausalLM",
                intermediate_size=16384,
                vocabulary=50272,
                context=2048,
                tied_embeddings=True,
                attention_bias=True,
                mlp_bias=True,
                hidden_act="relu",
                gated=False,
                layer_norm=True,
                first_place=2,
            ),
            32,
        ),
        Shape(
            "mistral-7b",
            replace(
                _LLAMA,
                family="mistral",
                architecture="MistralForCausalLM",
                intermediate_size=14336,
                kv_heads=8,
                context=32768,
                window=4096,
            ),
            32,
        ),
        Shape("qwen3-0.6b", _QWEN3, 28),
        Shape(
            "qwen3-8b",
            replace(_QWEN3, hidden_size=4096, intermediate_size=12288, layers=36, heads=32, tied_embeddings=False),
            36,
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
    return {name: math.prod(shape) * (item if len(shape) > 1 else 4) for name, shape in shapes.items()}


def matrix_bytes(config: ModelConfig, layers: int, item: int = 2) -> int:
    """Bytes of weights a step reads: every layer's matrices and the output matrix."""
    hidden, heads = config.hidden_size, config.heads * config.head_dim
    kv = config.kv_heads * config.head_dim
    mlp = 3 if config.gated else 2  # matrices
    layer = hidden * (2 * heads + 2 * kv) + mlp * hidden * config.intermediate_size
    return item * (layers * layer + config.vocabulary * hidden)
