"""GGUF tensor names and row orders of the LLaMA family, and what they are in a safetensors folder."""

from __future__ import annotations

from engine.files.gguf_reader import GgufTensor

WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
PER_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def folder_name(name: str) -> str | None:
    """The name in a safetensors folder, or None for a tensor that has no place there (RoPE factors)."""
    stem, _, kind = name.rpartition(".")
    if stem in WHOLE:
        return f"{WHOLE[stem]}.{kind}"
    parts = stem.split(".")
    if len(parts) == 3 and parts[0] == "blk" and parts[1].isdigit() and parts[2] in PER_LAYER:
        return f"model.layers.{parts[1]}.{PER_LAYER[parts[2]]}.{kind}"
    return None


def interleaved_heads(tensor: GgufTensor, heads: int, kv_heads: int) -> int | None:
    """For Q and K, whose rows GGUF stores with each head's halves interleaved: the number of heads; else None."""
    part = tensor.name.split(".")[-2]
    return {"attn_q": heads, "attn_k": kv_heads}.get(part)
