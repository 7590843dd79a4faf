"""Rotary embedding tables: the angles of every position, computed once in float64 and stored as float32.

An angle depends on its own position alone, never on how long the text has become: rows of the KV cache stay valid.
So "dynamic" scaling, which turns all rows anew beyond the model's context, is used up to that, where it changes
nothing, and "longrope" with the factors of short texts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.files.config import ModelConfig


def rope_tables(config: ModelConfig, positions: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines, each float32 [positions, head_dim / 2] (Su et al. 2021, halves paired as in LLaMA files).

    Times the attention factor of the model's scaling; of a model without rotary positions ones and zeros.
    """
    if not config.rotary:
        shape = (positions, config.head_dim // 2)
        return np.ones(shape, np.float32), np.zeros(shape, np.float32)
    frequency, factor = inverse_frequencies(config), attention_factor(config)
    angles = np.arange(positions, dtype=np.float64)[:, None] * frequency[None, :]
    return (np.cos(angles) * factor).astype(np.float32), (np.sin(angles) * factor).astype(np.float32)


def inverse_frequencies(config: ModelConfig) -> np.ndarray:
    """Radians a position for each pair of channels, float64 [head_dim / 2], with the model's RoPE scaling."""
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim
    frequency = 1.0 / config.rope_theta**exponents
    scaling = config.rope_scaling or {"rope_type": "default"}
    match scaling["rope_type"]:
        case "linear":
            return frequency / scaling["factor"]
        case "llama3":
            return _llama3(frequency, scaling)
        case "yarn":
            return _yarn(frequency, scaling, config.rope_theta)
        case "longrope":
            return frequency / np.array(scaling["short_factor"])
    return frequency


def attention_factor(config: ModelConfig) -> float:
    """What the scaling multiplies cosines and sines with, so that scores over longer contexts stay as sharp."""
    scaling = config.rope_scaling or {"rope_type": "default"}
    if "attention_factor" in scaling:
        return float(scaling["attention_factor"])
    if scaling["rope_type"] == "yarn":
        factor = scaling["factor"]
        if "mscale" in scaling and "mscale_all_dim" in scaling:
            return _sharpness(factor, scaling["mscale"]) / _sharpness(factor, scaling["mscale_all_dim"])
        return _sharpness(factor, 1.0)
    if scaling["rope_type"] == "longrope" and scaling["factor"] > 1:
        return math.sqrt(1 + math.log(scaling["factor"]) / math.log(scaling["original_max_position_embeddings"]))
    return 1.0


def _sharpness(factor: float, scale: float) -> float:
    return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0


def _llama3(frequency: np.ndarray, scaling: dict[str, Any]) -> np.ndarray:
    """Llama 3.1: slow channels are stretched by `factor`, fast ones kept, those between blended by wavelength."""
    original, factor = scaling["original_max_position_embeddings"], scaling["factor"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    wavelength = 2 * math.pi / frequency
    blend = np.clip((original / wavelength - low) / (high - low), 0.0, 1.0)
    return frequency * ((1 - blend) / factor + blend)


def _yarn(frequency: np.ndarray, scaling: dict[str, Any], theta: float) -> np.ndarray:
    """YaRN (Peng et al. 2023): as llama3, but blended by a ramp over the channels between two numbers of rotations."""
    width, original = 2 * len(frequency), scaling["original_max_position_embeddings"]

    def channel(rotations: float) -> float:
        """Where a channel turns so often within the original context."""
        return width * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    first, last = channel(scaling["beta_fast"]), channel(scaling["beta_slow"])
    if scaling["truncate"]:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, width - 1)
    last += 0.001 if first == last else 0
    stretched = np.clip((np.arange(len(frequency)) - first) / (last - first), 0.0, 1.0)
    return frequency * (stretched / scaling["factor"] + 1 - stretched)
