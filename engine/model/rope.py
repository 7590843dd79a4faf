"""Rotary embedding tables: the angles of every position, computed once in float64 and stored as float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.files.config import ModelConfig


def rope_tables(config: ModelConfig, positions: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines, each float32 [positions, head_dim / 2] (Su et al. 2021, halves paired as in LLaMA files)."""
    frequency = inverse_frequencies(config)
    angles = np.arange(positions, dtype=np.float64)[:, None] * frequency[None, :]
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def inverse_frequencies(config: ModelConfig) -> np.ndarray:
    """Radians a position for each pair of channels, float64 [head_dim / 2], with the model's RoPE scaling."""
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim
    frequency = 1.0 / config.rope_theta**exponents
    scaling = config.rope_scaling
    if scaling is None:
        return frequency
    if scaling["rope_type"] == "linear":
        return frequency / scaling["factor"]
    return _llama3(frequency, scaling)


def _llama3(frequency: np.ndarray, scaling: dict[str, Any]) -> np.ndarray:
    """Llama 3.1: slow channels are stretched by `factor`, fast ones kept, those between blended by wavelength."""
    original, factor = scaling["original_max_position_embeddings"], scaling["factor"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    wavelength = 2 * math.pi / frequency
    blend = np.clip((original / wavelength - low) / (high - low), 0.0, 1.0)
    return frequency * ((1 - blend) / factor + blend)
