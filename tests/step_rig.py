"""Whole decode steps of a small model folder: compiled where there is a card, else interpreted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from builders import tiny_llama
from engine.files.folder import open_folder
from engine.kernels.triton import judge
from engine.kernels.triton.step import PROMPT_ROWS, StepBuffers, StepKernels
from engine.kernels.triton.tiles import Role, Tile, fitted
from engine.model.fused import fuse, shapes_of
from engine.model.torch_runner import TorchRunner
from engine.recipe import Recipe
from engine_rig import no_end_tokens
from triton_rig import DEVICE, Tensor, quiet

VOCABULARY = 101  # prime: no tile divides it


def small_model(folder: Path, dtype: torch.dtype, *, layers: int = 2, kv_heads: int = 1) -> Path:
    """Two heads 32 wide share a key head, or have two. Small, because an interpreted launch takes tens of
    milliseconds."""
    name = str(dtype).removeprefix("torch.")
    return no_end_tokens(
        tiny_llama(folder, layers=layers, hidden=64, heads=2, kv_heads=kv_heads, vocab=VOCABULARY, dtype=name, std=0.12)
    )


@dataclass(frozen=True)
class Step:
    """The kernels over one model, and the runner that owns its weights and cache."""

    runner: TorchRunner
    buffers: StepBuffers
    kernels: StepKernels
    prompt_buffers: StepBuffers
    prompt_kernels: StepKernels

    def begin(self, position: int, tokens: Sequence[int]) -> None:
        """Set the state; what the step must write becomes NaN."""
        b = self.buffers
        for buffer in (b.stream, b.scaled, b.qkv, b.attended, b.activated, b.logits, b.peaks, b.attention_squares):
            buffer.fill_(float("nan"))
        for buffer in (b.mlp_squares, b.partial_out, b.partial_max, b.partial_sum):
            buffer.fill_(float("nan"))
        b.state.zero_()
        b.state[judge.POSITION] = position
        b.state[judge.TOKENS : judge.TOKENS + len(tokens)] = torch.tensor(tokens, dtype=torch.int32, device=DEVICE)

    def full(self, position: int, tokens: Sequence[int]) -> Tensor:
        """Logits [rows, vocabulary] of a full pass."""
        self.begin(position, tokens)
        with quiet():
            self.kernels.full(len(tokens))
        return self.buffers.logits[: len(tokens)].clone()

    def draft(self, recipe: Recipe) -> Tensor:
        """Logits [vocabulary] of a draft step at the cursor; the state moves on."""
        with quiet():
            self.kernels.draft(recipe.skipped_attention, recipe.skipped_mlp, self.buffers.report)
        return self.buffers.logits[0].clone()

    def prompt(self, position: int, tokens: Sequence[int]) -> None:
        """Fill the cache for up to 64 tokens at once."""
        b = self.prompt_buffers
        b.state.zero_()
        b.state[judge.POSITION] = position
        b.state[judge.TOKENS : judge.TOKENS + len(tokens)] = torch.tensor(tokens, dtype=torch.int32, device=DEVICE)
        with quiet():
            self.prompt_kernels.prompt()

    def cache(self, rows: int) -> list[Tensor]:
        """Copies of the first rows of every layer's cache."""
        return [layer[:rows].clone() for layer in self.runner._cache]


def make_step(folder: Path, *, capacity: int = 256) -> Step:
    """The folder's model with a tile of its own for each matrix."""
    recipe = Recipe(weight_bits=16)
    runner = TorchRunner(open_folder(folder), capacity, recipe, lambda _: None, lambda: False, DEVICE.type)
    runner.kv.ensure(capacity)
    model = fuse(runner.config, runner._weights, runner._cache, runner._cosine, runner._sine)
    wanted = (Tile(64, 64, 4, 2), Tile(32, 64, 4, 2), Tile(128, 64, 4, 2), Tile(64, 128, 4, 2), Tile(64, 64, 4, 2))
    shapes = shapes_of(runner.config)
    tiles = {role: fitted(tile, *shapes[role]) for role, tile in zip(Role, wanted, strict=True)}
    positions, allowed = runner._cosine.shape[0], runner.config.vocabulary
    buffers = StepBuffers(runner.config, tiles, positions, model)
    prompt_buffers = StepBuffers(runner.config, tiles, positions, model, PROMPT_ROWS)
    return Step(
        runner,
        buffers,
        StepKernels(runner.config, model, buffers, tiles, allowed),
        prompt_buffers,
        StepKernels(runner.config, model, prompt_buffers, tiles, allowed),
    )
