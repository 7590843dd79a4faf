"""Mistral: LLaMA whose rows attend to a sliding window (Jiang et al. 2023); later versions have none."""

from __future__ import annotations

from engine.files.config_values import Values
from engine.files.families.family import Family, read_usual, read_window
from engine.files.shape import ModelConfig


def _read(config: Values, generation: Values) -> ModelConfig:
    window = read_window(config, config.size("num_hidden_layers"))
    return read_usual("mistral", config, generation, **window)


MISTRAL = Family("mistral", ("MistralForCausalLM",), _read)
