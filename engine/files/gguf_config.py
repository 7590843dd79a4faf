"""The config.json and generation_config.json that a GGUF file's metadata stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.errors import ModelFileError
from engine.files.gguf_families import FAMILIES
from engine.files.gguf_reader import GgufFile
from engine.files.gguf_rope import gguf_rope
from engine.files.gguf_values import GgufValues
from engine.files.wording import shown

CHAT_END_MARKERS = ("<|im_end|>", "<|eot_id|>", "<|end|>")
CONTROL = 3


def gguf_config(file: GgufFile) -> dict[str, Any]:
    """The contents of config.json. Raises ModelFileError for an unknown architecture or a missing or odd value."""
    name = file.metadata.get("general.architecture")
    family = FAMILIES.get(name) if isinstance(name, str) else None
    if family is None:
        raise ModelFileError(
            f"{file.path.name} has the architecture {shown(name)}; supported are {', '.join(FAMILIES)}."
        )
    values = GgufValues(file, f"{name}.")
    if values.whole("expert_count", 0):
        raise ModelFileError(f"{file.path.name} is a mixture of experts, which is not supported.")
    hidden, heads = values.whole("embedding_length"), values.whole("attention.head_count")
    head_dim = values.whole("attention.key_length", hidden // max(heads, 1))
    if values.whole("rope.dimension_count", head_dim) != head_dim:
        raise ModelFileError(f"{file.path.name} rotates only a part of each head, which is not supported.")
    theta, window = values.number("rope.freq_base", 10000.0), values.whole("attention.sliding_window", 0)
    tokens = _tokens(file)
    return {
        "architectures": [family.windowed if window else family.architecture],
        "model_type": name,
        "hidden_size": hidden,
        "intermediate_size": values.whole("feed_forward_length"),
        "num_hidden_layers": values.whole("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": values.whole("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "vocab_size": _vocabulary(file),
        "max_position_embeddings": values.whole("context_length"),
        "sliding_window": window or None,
        "rms_norm_eps": values.number("attention.layer_norm_rms_epsilon", 1e-5),
        "rope_theta": theta,
        "rope_scaling": gguf_rope(values, theta, head_dim),
        "hidden_act": "silu",
        "attention_bias": "blk.0.attn_output.bias" in file.tensors,
        "mlp_bias": "blk.0.ffn_up.bias" in file.tensors,
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "bos_token_id": token_id(file, "bos", len(tokens)),
        "eos_token_id": token_id(file, "eos", len(tokens)),
        "torch_dtype": "float16",
    }


def gguf_generation(file: GgufFile) -> dict[str, Any]:
    """The contents of generation_config.json: the begin token and every end token.

    End tokens are the declared end of text, of turn and of message, and the usual markers that end a chat turn
    where they are control tokens: many files declare only the end of text.
    """
    tokens = _tokens(file)
    ends = [token_id(file, name, len(tokens)) for name in ("eos", "eot", "eom")]
    types = file.metadata.get("tokenizer.ggml.token_type", [])
    ends += [index for index, kind in enumerate(types) if kind == CONTROL and tokens[index] in CHAT_END_MARKERS]
    known = list(dict.fromkeys(index for index in ends if index is not None))
    return {"bos_token_id": token_id(file, "bos", len(tokens)), "eos_token_id": known}


def token_id(file: GgufFile, name: str, vocabulary: int) -> int | None:
    """The declared id of the "bos", "eos", "eot", "eom", "unknown" or "padding" token; None when there is none."""
    value = file.metadata.get(f"tokenizer.ggml.{name}_token_id")
    return value if isinstance(value, int) and 0 <= value < vocabulary else None


def _tokens(file: GgufFile) -> Sequence[str]:
    tokens = file.metadata.get("tokenizer.ggml.tokens", [])
    types = file.metadata.get("tokenizer.ggml.token_type", [])
    if not isinstance(tokens, list) or not isinstance(types, list) or len(types) > len(tokens):
        raise ModelFileError(f"{file.path.name} is damaged: its token list and token types do not fit together.")
    return tokens


def _vocabulary(file: GgufFile) -> int:
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None:
        raise ModelFileError(f"{file.path.name} lacks the tensor token_embd.weight: the model is not complete.")
    return embedding.shape[0]
