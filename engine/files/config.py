"""The shape of a model, read from config.json (and the end tokens from generation_config.json), checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelFileError
from engine.files.json_file import read_json
from engine.files.wording import shown

FAMILIES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "llama"}
ACTIVATIONS = ("silu", "relu", "gelu", "gelu_pytorch_tanh")
ROPE_KINDS = {"linear": ("factor",), "llama3": ("factor", "low_freq_factor", "high_freq_factor")}
DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The shape of a model of one family.

    context: positions the model may use; for sliding-window models the window, up to which it changes nothing.
    rope_scaling: None, or {"rope_type": "linear", "factor"} or {"rope_type": "llama3", "factor", "low_freq_factor",
        "high_freq_factor", "original_max_position_embeddings"}, numbers as floats, whatever spelling the file used.
    eos_ids: every end token, those of generation_config.json first; may be empty.
    dtype: what config.json says the weights are ("float32", "float16", "bfloat16"); the files decide.
    """

    family: str
    architecture: str
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    context: int
    rms_norm_eps: float
    rope_theta: float
    rope_scaling: dict[str, Any] | None
    tied_embeddings: bool
    attention_bias: bool
    mlp_bias: bool
    hidden_act: str
    bos_id: int | None
    eos_ids: tuple[int, ...]
    dtype: str


def read_config(folder: Path) -> ModelConfig:
    """Read a model folder's config.json and, when present, generation_config.json.

    Custom code named by `auto_map` is never imported; an architecture that needs it is refused as unknown.
    Raises ModelFileError with one sentence for a missing file, key or value that makes no sense.
    """
    config = read_json(folder / "config.json")
    generation = folder / "generation_config.json"
    return parse_config(config, read_json(generation) if generation.is_file() or generation.is_symlink() else {})


def parse_config(config: dict[str, Any], generation: dict[str, Any]) -> ModelConfig:
    """Build a ModelConfig from the contents of config.json and generation_config.json; raises ModelFileError."""
    architecture = _architecture(config)
    _refuse_quantized(config)
    hidden, heads = _size(config, "hidden_size"), _size(config, "num_attention_heads")
    kv_heads = _size(config, "num_key_value_heads", heads)
    if heads % kv_heads:
        raise _bad("num_key_value_heads", kv_heads, f"must divide num_attention_heads, {heads}")
    head_dim = _size(config, "head_dim", hidden // heads)
    if head_dim % 2:
        raise _bad("head_dim", head_dim, "must be even")
    context = _size(config, "max_position_embeddings")
    theta, scaling = _rope(config, context)
    return ModelConfig(
        family=FAMILIES[architecture],
        architecture=architecture,
        hidden_size=hidden,
        intermediate_size=_size(config, "intermediate_size"),
        layers=_size(config, "num_hidden_layers"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocabulary=_size(config, "vocab_size"),
        context=min(context, _size(config, "sliding_window", context)),
        rms_norm_eps=_number(config, "rms_norm_eps", 1e-6),
        rope_theta=theta,
        rope_scaling=scaling,
        tied_embeddings=_flag(config, "tie_word_embeddings"),
        attention_bias=_flag(config, "attention_bias"),
        mlp_bias=_flag(config, "mlp_bias"),
        hidden_act=_choice(config, "hidden_act", "silu", ACTIVATIONS),
        bos_id=_first_id(config, generation),
        eos_ids=tuple(dict.fromkeys(_ids(generation, "eos_token_id") + _ids(config, "eos_token_id"))),
        dtype=_choice(config, "dtype" if "dtype" in config else "torch_dtype", "float32", DTYPES),
    )


def _architecture(config: dict[str, Any]) -> str:
    supported = ", ".join(FAMILIES)
    names = config.get("architectures")
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        raise ModelFileError(f"config.json names no architecture; supported are {supported}.")
    if names[0] not in FAMILIES:
        own_code = " and needs code of its own, which is never run" if "auto_map" in config else ""
        raise ModelFileError(
            f"The architecture {shown(names[0])} is not supported{own_code}; supported are {supported}."
        )
    return names[0]


def _refuse_quantized(config: dict[str, Any]) -> None:
    quantization = config.get("quantization_config")
    if quantization is not None:
        method = quantization.get("quant_method", "unknown") if isinstance(quantization, dict) else "unknown"
        raise ModelFileError(
            f"config.json says the weights are quantised ({shown(method)}); use the unquantised model or a GGUF of it."
        )


def _bad(key: str, value: object, rule: str) -> ModelFileError:
    return ModelFileError(f"config.json has {key} = {shown(value)}, but it {rule}.")


def _size(values: dict[str, Any], key: str, default: int | None = None) -> int:
    value = values.get(key)
    if value is None:
        if default is None:
            raise ModelFileError(f"config.json lacks {key}.")
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**31:
        raise _bad(key, value, "must be a whole number above 0")
    return value


def _number(values: dict[str, Any], key: str, default: float | None = None) -> float:
    value = values.get(key)
    if value is None:
        if default is None:
            raise ModelFileError(f"config.json lacks {key}.")
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise _bad(key, value, "must be a number above 0")
    return float(value)


def _flag(values: dict[str, Any], key: str) -> bool:
    value = values.get(key)
    if value is not None and not isinstance(value, bool):
        raise _bad(key, value, "must be true or false")
    return bool(value)


def _choice(values: dict[str, Any], key: str, default: str, allowed: tuple[str, ...]) -> str:
    value = values.get(key)
    if value is None:
        return default
    if value not in allowed:
        raise _bad(key, value, f"must be one of {', '.join(allowed)}")
    return str(value)


def _ids(values: dict[str, Any], key: str) -> tuple[int, ...]:
    value = values.get(key)
    ids = value if isinstance(value, list) else [] if value is None else [value]
    for token in ids:
        if not isinstance(token, int) or isinstance(token, bool) or token < 0:
            raise _bad(key, value, "must be a token id or a list of them")
    return tuple(ids)


def _first_id(config: dict[str, Any], generation: dict[str, Any]) -> int | None:
    ids = _ids(config, "bos_token_id") + _ids(generation, "bos_token_id")
    return ids[0] if ids else None


def _rope(config: dict[str, Any], context: int) -> tuple[float, dict[str, Any] | None]:
    """The base and the scaling, from `rope_parameters` (newer) or `rope_theta` and `rope_scaling` (older)."""
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(scaling, dict):
        raise _bad("rope_scaling", scaling, "must be an object or null")
    theta = _number(scaling, "rope_theta", _number(config, "rope_theta", 10000.0))
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return theta, None
    if not isinstance(kind, str) or kind not in ROPE_KINDS:
        raise ModelFileError(
            f"config.json asks for RoPE scaling of kind {shown(kind)}; supported are default, {', '.join(ROPE_KINDS)}."
        )
    result: dict[str, Any] = {"rope_type": kind} | {key: _number(scaling, key) for key in ROPE_KINDS[kind]}
    if kind == "llama3":
        result["original_max_position_embeddings"] = _size(scaling, "original_max_position_embeddings", context)
    return theta, result
