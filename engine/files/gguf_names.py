"""GGUF tensor names, and what they are in a folder of ours; matrices that are stored as one are taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.errors import ModelFileError
from engine.files.gguf_families import GgufFamily
from engine.files.gguf_reader import GgufTensor
from engine.files.wording import shown

WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
PER_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
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


def is_interleaved(name: str) -> bool:
    """Whether a tensor is one of those, queries and keys, whose rows some files store in another order."""
    return name.split(".")[-2] in ("attn_q", "attn_k")


def matrices_of(tensor: GgufTensor, family: GgufFamily, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, GgufTensor]:
    """The tensors, by our names, that a stored one is; empty for one that has no place here (RoPE factors).

    shapes: of all tensors the model needs. Raises ModelFileError for a tensor of several matrices that has another
    shape than they have together.
    """
    stem, _, kind = tensor.name.rpartition(".")
    part = stem.rpartition(".")[2]
    if part not in family.fused:
        name = folder_name(tensor.name)
        return {} if name is None else {name: tensor}
    layer = stem.split(".")[1]
    names = [f"model.layers.{layer}.{ours}.{kind}" for ours in family.fused[part]]
    if any(name not in shapes for name in names):
        return {}
    rows = [shapes[name][0] for name in names]
    whole = (sum(rows), *shapes[names[0]][1:])
    if tensor.shape != whole:
        raise ModelFileError(
            f"{tensor.file.name} holds {tensor.name} as {shown(list(tensor.shape))}, "
            f"but its metadata calls for {list(whole)}."
        )
    row, begin, found = tensor.nbytes // whole[0], tensor.offset, {}
    for name, count in zip(names, rows, strict=True):
        found[name] = replace(tensor, shape=(count, *whole[1:]), offset=begin, nbytes=row * count)
        begin += row * count
    return found
