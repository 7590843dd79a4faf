"""What sets one family of models apart, and the values of config.json that most of them have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.files.config_values import Values, bad
from engine.files.rope_config import USUAL_KINDS, read_rope
from engine.files.shape import ModelConfig

DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class Family:
    """name: for people. architectures: as config.json names them.

    read: makes the shape from config.json and generation_config.json; raises ModelFileError.
    prefixes: what stands for "model." in names of tensors, the first that fits; "" where files leave it out.
    names: modules that are called otherwise, stored name -> ours, without prefix and without number of the layer.
    fused: matrices that lie one below the other in one tensor, stored name -> ours, in their order.
    """

    name: str
    architectures: tuple[str, ...]
    read: Callable[[Values, Values], ModelConfig]
    prefixes: tuple[str, ...] = ("model.", "")
    names: Mapping[str, str] = field(default_factory=dict)
    fused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_usual(
    name: str, config: Values, generation: Values, rope_kinds: tuple[str, ...] = USUAL_KINDS, **changes: Any
) -> ModelConfig:
    """The shape from the keys that LLaMA and most later models use. changes: fields that the family sets otherwise."""
    hidden, layers = config.size("hidden_size"), config.size("num_hidden_layers")
    heads, kv_heads, head_dim = read_heads(config, hidden)
    context = config.size("max_position_embeddings")
    theta, scaling = read_rope(config, context, head_dim, rope_kinds)
    bos, eos = read_ends(config, generation)
    fields: dict[str, Any] = {
        "family": name,
        "architecture": config.raw["architectures"][0],
        "hidden_size": hidden,
        "intermediate_size": config.size("intermediate_size"),
        "layers": layers,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "vocabulary": config.size("vocab_size"),
        "context": context,
        "rms_norm_eps": config.number("rms_norm_eps", 1e-6),
        "rope_theta": theta,
        "rope_scaling": scaling,
        "tied_embeddings": config.flag("tie_word_embeddings"),
        "attention_bias": config.flag("attention_bias"),
        "mlp_bias": config.flag("mlp_bias"),
        "hidden_act": config.choice("hidden_act", "silu", ("silu",)),
        "bos_id": bos,
        "eos_ids": eos,
        "dtype": read_dtype(config),
    }
    return ModelConfig(**fields | changes)


def read_heads(config: Values, hidden: int) -> tuple[int, int, int]:
    """Query heads, key heads, and how wide each is."""
    heads = config.size("num_attention_heads")
    kv_heads = config.size("num_key_value_heads", heads)
    if heads % kv_heads:
        raise bad("num_key_value_heads", kv_heads, f"must divide num_attention_heads, {heads}")
    head_dim = config.size("head_dim", max(1, hidden // heads))
    if head_dim % 2:
        raise bad("head_dim", head_dim, "must be even")
    return heads, kv_heads, head_dim


def read_ends(config: Values, generation: Values) -> tuple[int | None, tuple[int, ...]]:
    """The begin token, if any, and every end token, those of generation_config.json first."""
    first = config.ids("bos_token_id") + generation.ids("bos_token_id")
    ends = tuple(dict.fromkeys(generation.ids("eos_token_id") + config.ids("eos_token_id")))
    return (first[0] if first else None), ends


def read_dtype(config: Values) -> str:
    """What the weights are said to be."""
    return config.choice("dtype" if "dtype" in config.raw else "torch_dtype", "float32", DTYPES)


def read_window(config: Values, layers: int, unwindowed: tuple[int, ...] = ()) -> dict[str, Any]:
    """The fields of a sliding window, in those layers that `layer_types` or, without it, `unwindowed` leave it to."""
    if not config.has("sliding_window"):
        return {}
    if config.has("layer_types"):
        kinds = config.per_layer("layer_types", layers)
        unwindowed = tuple(layer for layer, kind in enumerate(kinds) if kind != "sliding_attention")
    return {"window": config.size("sliding_window"), "unwindowed": unwindowed}
