"""How a GGUF file scales the rotary embedding: as metadata, or as factors by which frequencies are divided."""

from __future__ import annotations

import math
from typing import Any

from engine.errors import ModelFileError
from engine.files.gguf_values import GgufValues
from engine.files.wording import shown

LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
FREQUENCIES, SHORT, LONG = "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"
KINDS = ("none", "linear", "yarn", "longrope")


def gguf_rope(values: GgufValues, theta: float, head_dim: int) -> dict[str, Any] | None:
    """What config.json calls rope_scaling; None for none. Raises ModelFileError for a kind that is not known."""
    kind, tensors = values.text("rope.scaling.type", "none"), values.file.tensors
    if kind not in KINDS:
        raise ModelFileError(
            f"{values.file.path.name} asks for RoPE scaling of kind {shown(kind)}; supported are {', '.join(KINDS)}."
        )
    if SHORT in tensors:
        return _longrope(values, head_dim)
    if kind == "linear":
        return {"rope_type": "linear", "factor": values.number("rope.scaling.factor", 1.0)}
    if kind == "yarn":
        return _yarn(values)
    return _llama3(values, theta, head_dim) if FREQUENCIES in tensors else None


def _yarn(values: GgufValues) -> dict[str, Any]:
    found: dict[str, Any] = {"rope_type": "yarn", "factor": values.number("rope.scaling.factor")}
    found["original_max_position_embeddings"] = values.whole("rope.scaling.original_context_length")
    for key in ("beta_fast", "beta_slow"):
        if values.has(f"rope.scaling.yarn_{key}"):
            found[key] = values.number(f"rope.scaling.yarn_{key}")
    return found


def _longrope(values: GgufValues, head_dim: int) -> dict[str, Any]:
    """The factors of short contexts, which are the only ones used, and those of long ones as they are."""
    found: dict[str, Any] = {"rope_type": "longrope"}
    found["short_factor"], found["long_factor"] = (_factors(values, name, head_dim) for name in (SHORT, LONG))
    found["original_max_position_embeddings"] = values.whole("rope.scaling.original_context_length")
    if values.has("rope.scaling.attn_factor"):
        found["attention_factor"] = values.number("rope.scaling.attn_factor")
    return found


def _factors(values: GgufValues, name: str, head_dim: int) -> list[float]:
    """The float32 numbers of a small tensor, as they were meant."""
    import numpy as np

    tensor = values.file.tensors.get(name)
    if tensor is None or tensor.kind.name != "F32" or tensor.shape != (head_dim // 2,):
        raise ModelFileError(f"{values.file.path.name} has RoPE frequency factors of an unknown kind ({name}).")
    stored = np.fromfile(tensor.file, np.float32, head_dim // 2, offset=tensor.offset)
    return [float(f"{value:.7g}") for value in stored]


def _llama3(values: GgufValues, theta: float, head_dim: int) -> dict[str, Any]:
    """The Llama 3 scaling whose frequency divisors the file stores as a tensor; its largest divisor is the factor.

    Raises ModelFileError when no factor gives the stored divisors: they are then of another kind.
    """
    stored = _factors(values, FREQUENCIES, head_dim)
    scaling = {"rope_type": "llama3", "factor": round(max(stored), 6)} | LLAMA3
    expected = (_llama3_divisor(scaling, theta ** (-2 * i / head_dim)) for i in range(head_dim // 2))
    if all(math.isclose(a, b, rel_tol=1e-3) for a, b in zip(stored, expected, strict=True)):
        return scaling
    raise ModelFileError(f"{values.file.path.name} has RoPE frequency factors of an unknown kind ({FREQUENCIES}).")


def _llama3_divisor(scaling: dict[str, Any], frequency: float) -> float:
    """What Llama 3 divides one RoPE frequency by: 1 for short waves, the factor for long ones, smooth between."""
    turns = scaling["original_max_position_embeddings"] * frequency / (2 * math.pi)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    smooth = min(max((turns - low) / (high - low), 0.0), 1.0)
    return 1.0 / ((1.0 - smooth) / scaling["factor"] + smooth)
