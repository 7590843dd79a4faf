"""Families of models as GGUF files tell them: what config.json would call each, and how its tensors are laid out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GgufFamily:
    """architecture: as config.json names it. windowed: the same, of files that name a sliding window.

    interleaved: whether rows of queries and keys are stored with each head's halves interleaved.
    fused: tensors that are several matrices one below the other, by their part of the name, as ours in order.
    """

    architecture: str
    windowed: str
    interleaved: bool = False
    fused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


PHI3_FUSED = {
    "attn_qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "ffn_up": ("mlp.gate_proj", "mlp.up_proj"),
}
FAMILIES: Mapping[str, GgufFamily] = {
    "llama": GgufFamily("LlamaForCausalLM", "MistralForCausalLM", interleaved=True),
    "qwen2": GgufFamily("Qwen2ForCausalLM", "Qwen2ForCausalLM"),
    "qwen3": GgufFamily("Qwen3ForCausalLM", "Qwen3ForCausalLM"),
    "smollm3": GgufFamily("SmolLM3ForCausalLM", "SmolLM3ForCausalLM", interleaved=True),
    "phi3": GgufFamily("Phi3ForCausalLM", "Phi3ForCausalLM", fused=PHI3_FUSED),
}
"""By `general.architecture`."""
