"""How a model's rotary embedding is scaled, in any of the spellings that config.json files use."""

from __future__ import annotations

from typing import Any

from engine.errors import ModelFileError
from engine.files.config_values import Values, bad
from engine.files.wording import shown

USUAL_KINDS = ("linear", "dynamic", "llama3", "yarn")
LONGROPE = "longrope"


def read_rope(
    values: Values, context: int, head_dim: int, kinds: tuple[str, ...] = USUAL_KINDS
) -> tuple[float, dict[str, Any] | None]:
    """The base and the scaling, from `rope_parameters` (newer) or `rope_theta` and `rope_scaling` (older).

    kinds: of scaling that the family has. See ModelConfig.rope_scaling. Raises ModelFileError.
    """
    raw = values.raw.get("rope_parameters") or values.raw.get("rope_scaling") or {}
    if not isinstance(raw, dict):
        raise bad("rope_scaling", raw, "must be an object or null")
    scaling = Values(raw)
    theta = scaling.number("rope_theta", values.number("rope_theta", 10000.0))
    _refuse_partial(values)
    _refuse_partial(scaling)
    kind = raw.get("rope_type", raw.get("type", "default"))
    if kind == "su":  # what the first Phi-3 files call it
        kind = LONGROPE
    if kind == "default":
        return theta, None
    if not isinstance(kind, str) or kind not in kinds:
        raise ModelFileError(
            f"config.json asks for RoPE scaling of kind {shown(kind)}; supported are default, {', '.join(kinds)}."
        )
    original = scaling.size(
        "original_max_position_embeddings", values.size("original_max_position_embeddings", context)
    )
    return theta, {"rope_type": kind} | _settings(kind, scaling, original, context, head_dim)


def _settings(kind: str, scaling: Values, original: int, context: int, head_dim: int) -> dict[str, Any]:
    if kind == LONGROPE:
        factor = scaling.number("factor", context / original)
        short = scaling.numbers("short_factor", head_dim // 2)
        return {"factor": factor, "short_factor": short, "original_max_position_embeddings": original} | _attention(
            scaling
        )
    found: dict[str, Any] = {"factor": scaling.number("factor")}
    if kind == "llama3":
        found |= {key: scaling.number(key) for key in ("low_freq_factor", "high_freq_factor")}
        found["original_max_position_embeddings"] = original
    if kind == "yarn":
        found |= {"beta_fast": scaling.number("beta_fast", 32.0), "beta_slow": scaling.number("beta_slow", 1.0)}
        found |= {"truncate": scaling.flag("truncate", True), "original_max_position_embeddings": original}
        found |= {key: scaling.number(key) for key in ("mscale", "mscale_all_dim") if scaling.has(key)}
        found |= _attention(scaling)
    return found


def _attention(scaling: Values) -> dict[str, float]:
    return {"attention_factor": scaling.number("attention_factor")} if scaling.has("attention_factor") else {}


def _refuse_partial(values: Values) -> None:
    """Rotating only a part of each head is not supported."""
    if values.number("partial_rotary_factor", 1.0) != 1.0:
        raise bad("partial_rotary_factor", values.raw["partial_rotary_factor"], "must be 1: whole heads are rotated")
