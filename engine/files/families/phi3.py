"""Phi-3, Phi-3.5 and Phi-4: LLaMA whose files keep queries, keys and values in one matrix, and gate and up in one.

Long contexts rotate by other factors than short ones (longrope). A row's rotation must not depend on what comes later,
so the context ends where the short factors do.
"""

from __future__ import annotations

from dataclasses import replace

from engine.files.config_values import Values
from engine.files.families.family import Family, read_usual, read_window
from engine.files.rope_config import LONGROPE, USUAL_KINDS
from engine.files.shape import ModelConfig


def _read(config: Values, generation: Values) -> ModelConfig:
    window = read_window(config, config.size("num_hidden_layers"))
    shape = read_usual("phi3", config, generation, (*USUAL_KINDS, LONGROPE), **window)
    if shape.rope_scaling is not None and shape.rope_scaling["rope_type"] == LONGROPE:
        return replace(shape, context=min(shape.context, shape.rope_scaling["original_max_position_embeddings"]))
    return shape


PHI3 = Family(
    "phi3",
    ("Phi3ForCausalLM",),
    _read,
    fused={
        "self_attn.qkv_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj"),
    },
)
