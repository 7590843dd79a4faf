"""The config.json and generation_config.json that a GGUF file's metadata stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from engine.errors import ModelFileError
from engine.files.gguf_reader import GgufFile
from engine.files.wording import shown

ARCHITECTURES = ("llama",)
CHAT_END_MARKERS = ("<|im_end|>", "<|eot_id|>", "<|end|>")
LLAMA3_ROPE = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
CONTROL = 3


def gguf_config(file: GgufFile) -> dict[str, Any]:
    """The contents of config.json. Raises ModelFileError for an unknown architecture or a missing or odd value."""
    architecture = file.metadata.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise ModelFileError(
            f"{file.path.name} has the architecture {shown(architecture)}; supported are {', '.join(ARCHITECTURES)}."
        )
    reader = _Values(file, f"{architecture}.")
    if reader.whole("expert_count", 0):
        raise ModelFileError(f"{file.path.name} is a mixture of experts, which is not supported.")
    hidden, heads = reader.whole("embedding_length"), reader.whole("attention.head_count")
    head_dim = reader.whole("attention.key_length", hidden // max(heads, 1))
    if reader.whole("rope.dimension_count", head_dim) != head_dim:
        raise ModelFileError(f"{file.path.name} rotates only a part of each head, which is not supported.")
    theta = reader.number("rope.freq_base", 10000.0)
    tokens = _tokens(file)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": reader.whole("feed_forward_length"),
        "num_hidden_layers": reader.whole("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": reader.whole("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "vocab_size": _vocabulary(file),
        "max_position_embeddings": reader.whole("context_length"),
        "rms_norm_eps": reader.number("attention.layer_norm_rms_epsilon", 1e-5),
        "rope_theta": theta,
        "rope_scaling": _rope_scaling(reader, file, theta, head_dim),
        "hidden_act": "silu",
        "attention_bias": "blk.0.attn_q.bias" in file.tensors,
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


class _Values:
    """Typed access to the metadata keys of one architecture."""

    def __init__(self, file: GgufFile, prefix: str) -> None:
        self.file = file
        self.prefix = prefix

    def whole(self, key: str, default: int | None = None) -> int:
        value = self._get(key, default)
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]  # a value per layer, all alike
        if not isinstance(value, int):
            raise ModelFileError(f"{self.file.path.name} has {self.prefix}{key} = {shown(value)}, not a whole number.")
        return value

    def number(self, key: str, default: float) -> float:
        value = self._get(key, default)
        if not isinstance(value, int | float):
            raise ModelFileError(f"{self.file.path.name} has {self.prefix}{key} = {shown(value)}, not a number.")
        return float(f"{value:.7g}")  # float32 in the file: 1e-05, not 9.999999747378752e-06

    def text(self, key: str) -> str:
        return str(self.file.metadata.get(self.prefix + key, "none"))

    def _get(self, key: str, default: float | None) -> Any:
        value = self.file.metadata.get(self.prefix + key, default)
        if value is None:
            raise ModelFileError(f"{self.file.path.name} lacks the metadata {self.prefix}{key}.")
        return value


def _rope_scaling(values: _Values, file: GgufFile, theta: float, head_dim: int) -> dict[str, Any] | None:
    kind = values.text("rope.scaling.type")
    if kind == "linear":
        return {"rope_type": "linear", "factor": values.number("rope.scaling.factor", 1.0)}
    if kind != "none":
        raise ModelFileError(
            f"{file.path.name} asks for RoPE scaling of kind {shown(kind)}; supported are none and linear."
        )
    return _llama3_scaling(file, theta, head_dim) if "rope_freqs.weight" in file.tensors else None


def _llama3_scaling(file: GgufFile, theta: float, head_dim: int) -> dict[str, Any]:
    """The Llama 3 scaling whose frequency divisors the file stores as a tensor; its largest divisor is the factor.

    Raises ModelFileError when no factor gives the stored divisors: they are then of another kind.
    """
    import numpy as np

    tensor = file.tensors["rope_freqs.weight"]
    if tensor.kind.name == "F32":
        stored = np.fromfile(tensor.file, np.float32, tensor.nbytes // 4, offset=tensor.offset)
        scaling = {"rope_type": "llama3", "factor": round(float(stored.max()), 6)} | LLAMA3_ROPE
        expected = [_llama3_divisor(scaling, theta ** (-2 * i / head_dim)) for i in range(head_dim // 2)]
        if len(expected) == len(stored) and np.allclose(stored, expected, rtol=1e-3):
            return scaling
    raise ModelFileError(f"{file.path.name} has RoPE frequency factors of an unknown kind (rope_freqs.weight).")


def _llama3_divisor(scaling: dict[str, Any], frequency: float) -> float:
    """What Llama 3 divides one RoPE frequency by: 1 for short waves, the factor for long ones, smooth between."""
    turns = scaling["original_max_position_embeddings"] * frequency / (2 * math.pi)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    smooth = min(max((turns - low) / (high - low), 0.0), 1.0)
    return 1.0 / ((1.0 - smooth) / scaling["factor"] + smooth)
