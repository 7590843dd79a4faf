"""The shape of a model, read from config.json (and the end tokens from generation_config.json), checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.errors import ModelFileError
from engine.files.config_values import Values
from engine.files.families import FAMILY_OF
from engine.files.families.family import Family
from engine.files.json_file import read_json
from engine.files.shape import ModelConfig
from engine.files.wording import shown

__all__ = ["ModelConfig", "parse_config", "read_config"]


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
    family = _family(config)
    _refuse_quantized(config)
    return family.read(Values(config), Values(generation))


def _family(config: dict[str, Any]) -> Family:
    supported = ", ".join(FAMILY_OF)
    names = config.get("architectures")
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        raise ModelFileError(f"config.json names no architecture; supported are {supported}.")
    if names[0] not in FAMILY_OF:
        own_code = " and needs code of its own, which is never run" if "auto_map" in config else ""
        raise ModelFileError(
            f"The architecture {shown(names[0])} is not supported{own_code}; supported are {supported}."
        )
    return FAMILY_OF[names[0]]


def _refuse_quantized(config: dict[str, Any]) -> None:
    quantization = config.get("quantization_config")
    if quantization is not None:
        method = quantization.get("quant_method", "unknown") if isinstance(quantization, dict) else "unknown"
        raise ModelFileError(
            f"config.json says the weights are quantised ({shown(method)}); use the unquantised model or a GGUF of it."
        )
