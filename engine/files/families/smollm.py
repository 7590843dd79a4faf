"""SmolLM3: LLaMA in which every fourth layer knows no positions (NoPE, Yang et al. 2025)."""

from __future__ import annotations

from typing import Any

from engine.files.config_values import Values, bad
from engine.files.families.family import Family, read_usual, read_window
from engine.files.shape import ModelConfig


def _unrotated(config: Values, layers: int) -> tuple[int, ...]:
    """`no_rope_layers` says 1 where a layer has rotary positions, and 0 where it has none."""
    if not config.has("no_rope_layers"):
        step = config.size("no_rope_layer_interval", 4)
        return tuple(range(step - 1, layers, step))
    marks = config.per_layer("no_rope_layers", layers)
    if any(mark not in (0, 1) for mark in marks):
        raise bad("no_rope_layers", marks, "must be a list of 0 and 1")
    return tuple(layer for layer, mark in enumerate(marks) if not mark)


def _read(config: Values, generation: Values) -> ModelConfig:
    layers = config.size("num_hidden_layers")
    changes: dict[str, Any] = {"unrotated": _unrotated(config, layers)}
    if config.flag("use_sliding_window"):
        changes |= read_window(config, layers)
    if not config.has("tie_word_embeddings"):
        changes["tied_embeddings"] = True
    return read_usual("smollm3", config, generation, **changes)


SMOLLM3 = Family("smollm3", ("SmolLM3ForCausalLM",), _read)
