"""Qwen2, Qwen2.5: biases on queries, keys and values. Qwen3: none, but norms of queries and keys (Yang et al. 2025)."""

from __future__ import annotations

from typing import Any

from engine.files.config_values import Values
from engine.files.families.family import Family, read_usual, read_window
from engine.files.shape import ModelConfig


def _window(config: Values) -> dict[str, Any]:
    """Files name a window that is not in use; where it is, the first layers may do without."""
    if not config.flag("use_sliding_window"):
        return {}
    layers = config.size("num_hidden_layers")
    return read_window(config, layers, tuple(range(min(layers, config.size("max_window_layers", layers)))))


def _read2(config: Values, generation: Values) -> ModelConfig:
    return read_usual("qwen2", config, generation, attention_bias=False, qkv_bias=True, **_window(config))


def _read3(config: Values, generation: Values) -> ModelConfig:
    return read_usual("qwen3", config, generation, qk_norm=True, **_window(config))


QWEN2 = Family("qwen2", ("Qwen2ForCausalLM",), _read2)
QWEN3 = Family("qwen3", ("Qwen3ForCausalLM",), _read3)
