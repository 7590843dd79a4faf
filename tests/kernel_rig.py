"""Runs single instructions of a programme through the compiled kernels, on memory and weights made by a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.files.config import ModelConfig, parse_config
from engine.kernels.compiled import table as t
from engine.kernels.compiled.binding import Memory, Weights, bind
from engine.kernels.compiled.interpreter import run
from engine.kernels.compiled.team import Team
from engine.model import draft_copy
from engine.model import programme as p
from engine.model.matrix import Matrix
from engine.model.rope import rope_tables

DENSE = ("float32", "float16", "bfloat16")
STORED = (*DENSE, "int8")  # int8 only where rows are chosen
ROWS = 64


def shape(**changes: Any) -> ModelConfig:
    """A small model's shape; `changes` are keys of config.json."""
    config: dict[str, Any] = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128}
    config |= {"num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 97}
    config |= {"max_position_embeddings": 320, "rms_norm_eps": 1e-5}
    return parse_config(config | changes, {})


def store(values: np.ndarray, kind: str) -> Matrix:
    """A float32 matrix as the kernels read it, rounded to `kind`."""
    if kind == "int8":
        team = Team(1)
        try:
            return draft_copy.quantised(store(values, "float32"), team)
        finally:
            team.close()
    if kind == "bfloat16":
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        return Matrix.of(((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16), 2)
    return Matrix.of(np.ascontiguousarray(values, kind), {"float32": 0, "float16": 1}[kind])


def exact(matrix: Matrix) -> np.ndarray:
    """The values a stored matrix stands for, float64."""
    stored, scales = matrix.owner
    if stored.dtype == np.uint16:
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    wide = stored.astype(np.float64)
    return wide if scales is None else wide * scales[:, None].astype(np.float64)


class Rig:
    """Memory of one model shape, all of it NaN until a test writes it, and weights by name."""

    def __init__(
        self,
        config: ModelConfig,
        weights: Mapping[str, Matrix | np.ndarray],
        *,
        cache: type = np.float32,
        chosen: tuple[np.ndarray, ...] = (),
        threads: int = 1,
    ) -> None:
        self.config, self.weights, self.chosen, self.threads = config, weights, chosen, threads
        capacity = config.context
        cosine, sine = rope_tables(config, capacity)
        self.memory = Memory(
            buffers={name: np.full((ROWS, width), np.nan, np.float32) for name, width in p.widths(config).items()},
            cache=tuple(
                np.full((capacity, 2, config.kv_heads, config.head_dim), np.nan, cache) for _ in range(config.layers)
            ),
            cosine=cosine,
            sine=sine,
            scores=np.full((threads, capacity + 8 + config.head_dim), np.nan, np.float32),
            scalars=np.array([config.rms_norm_eps, config.head_dim**-0.5], np.float32),
            statistics=np.zeros((config.layers, config.intermediate_size), np.float32),
        )

    def __getitem__(self, buffer: p.Buffer) -> np.ndarray:
        return self.memory.buffers[buffer]

    def run(
        self, *steps: p.Instruction, tokens: Sequence[int] = (0,), position: int = 0, wanted: int | None = None
    ) -> None:
        """One pass of these instructions over the tokens' rows."""

        def weight(name: str) -> Any:
            return self.weights[name]

        table = bind(steps, self.config, self.memory, Weights(weight, weight, weight, weight, self.chosen))
        ids = np.asarray(tokens, np.int64)
        counters = np.zeros(len(table) * t.counter_bytes(self.threads) // 8, np.int64)
        control = np.zeros(t.CONTROL, np.int64)
        control[t.ROWS], control[t.POSITION], control[t.COUNTERS] = len(ids), position, counters.ctypes.data
        control[t.THREADS] = self.threads
        control[t.TAIL] = len(ids) if wanted is None else wanted
        team = Team(self.threads)
        try:
            team.run(lambda member: run(table.ctypes.data, len(table), control.ctypes.data, ids.ctypes.data, member))
        finally:
            team.close()
