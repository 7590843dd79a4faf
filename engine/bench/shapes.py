"""Random models of known shapes, for measuring steps without files."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.bench.known_shapes import SHAPES, Shape, matrix_bytes
from engine.files.checks import expected_tensors
from engine.files.config import ModelConfig
from engine.kernels.triton.step_memory import FusedModel
from engine.model import programme as p
from engine.model.fused import fuse
from engine.model.rope import rope_tables

__all__ = ["SHAPES", "Shape", "matrix_bytes", "random_model", "random_weights"]


def random_weights(config: ModelConfig, dtype: torch.dtype, device: torch.device) -> dict[str, torch.Tensor]:
    """Weights of a shape under our names: matrices N(0, 0.7 / sqrt K), tables N(0, 1), norms near one, small biases."""

    def tensor(name: str, shape: tuple[int, ...]) -> torch.Tensor:
        if name in (p.EMBEDDING, p.POSITIONS):
            return torch.randn(*shape, dtype=dtype, device=device)
        if len(shape) > 1:
            return torch.randn(*shape, dtype=dtype, device=device) * (0.7 / shape[1] ** 0.5)
        if name.endswith("bias"):
            return torch.randn(*shape, device=device) * 0.02
        return torch.rand(*shape, device=device) + 0.5

    return {name: tensor(name, shape) for name, shape in expected_tensors(config).items()}


def random_model(
    config: ModelConfig, dtype: torch.dtype, device: torch.device, caches: Sequence[torch.Tensor], positions: int
) -> FusedModel:
    """A random model of a shape, as the decode kernels read it."""
    cosine, sine = (torch.from_numpy(table).to(device) for table in rope_tables(config, positions))
    return fuse(config, random_weights(config, dtype, device), caches, cosine, sine)
