"""GGUF files of every family that has them, as llama.cpp's converter writes them, with the gguf package's own names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from builders import permute_heads, read_safetensors

ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "SmolLM3ForCausalLM": "smollm3",
    "Phi3ForCausalLM": "phi3",
}
INTERLEAVED = ("llama", "smollm3")


def write_family_gguf(path: Path, folder: Path, quant: str = "F32") -> Path:
    """The folder of a family as GGUF, without a tokenizer: vectors F32, matrices `quant`."""
    config = json.loads((folder / "config.json").read_text())
    name = ARCHITECTURES[config["architectures"][0]]
    writer = gguf.GGUFWriter(str(path), name)
    _add_shape(writer, config)
    _add_rope(writer, config)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[name.upper()], config["num_hidden_layers"])
    kind = gguf.GGMLQuantizationType[quant]
    for stored, tensor in read_safetensors(folder).items():
        if name in INTERLEAVED and ".q_proj." in stored:
            tensor = permute_heads(tensor, config["num_attention_heads"])
        elif name in INTERLEAVED and ".k_proj." in stored:
            tensor = permute_heads(tensor, config["num_key_value_heads"])
        public = names.get_name(stored, try_suffixes=(".weight", ".bias"))
        assert public is not None, stored
        if tensor.ndim == 1:
            writer.add_tensor(public, tensor)
        else:
            writer.add_tensor(public, gguf.quants.quantize(np.ascontiguousarray(tensor), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_shape(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    if config.get("head_dim"):
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    if config.get("sliding_window") and config.get("use_sliding_window", True):
        writer.add_sliding_window(config["sliding_window"])


def _add_rope(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    rope = config["rope_parameters"]
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_rope_dimension_count(head_dim)
    kind = rope["rope_type"]
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType[kind.upper()])
        writer.add_rope_scaling_factor(rope["factor"])
    if kind in ("yarn", "longrope"):
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if kind == "longrope":
        scale = config["max_position_embeddings"] / rope["original_max_position_embeddings"]
        assert scale > 1
        factor = np.sqrt(1 + np.log(scale) / np.log(rope["original_max_position_embeddings"]))
        writer.add_rope_scaling_attn_factors(float(factor))
        for length in ("short", "long"):
            writer.add_tensor(f"rope_factors_{length}.weight", np.array(rope[f"{length}_factor"], np.float32))
