"""LLaMA 1 to 3 and what is built like it: Vicuna, SmolLM2, TinyLlama. The shape that all others are told by."""

from __future__ import annotations

from engine.files.config_values import Values
from engine.files.families.family import Family, read_usual
from engine.files.shape import ModelConfig


def _read(config: Values, generation: Values) -> ModelConfig:
    return read_usual("llama", config, generation)


LLAMA = Family("llama", ("LlamaForCausalLM",), _read)
