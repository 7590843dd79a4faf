"""The draft of a CPU runner: its table over copies of few bits, its choice of neurons and of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from engine.files.config import ModelConfig
from engine.kernels.compiled.binding import bind
from engine.kernels.compiled.exact_leaders import exact_leaders
from engine.kernels.compiled.memory import Memory, Weights
from engine.model import programme
from engine.model.draft_weights import DraftWeights
from engine.model.kept_output import KeptOutput
from engine.model.matrix import Matrix
from engine.model.neurons import NeuronChoice
from engine.model.weights import HostWeights, as_float32
from engine.recipe import Recipe


@dataclass(frozen=True, slots=True)
class CompiledDraft:
    """A draft ready to run. table: bound to `weights`, held for what its addresses point at.

    logits: float32 [draft rows, vocabulary] that a pass writes. kept: None where all tokens are.
    """

    recipe: Recipe
    table: np.ndarray
    weights: Weights
    logits: np.ndarray
    choice: NeuronChoice
    kept: KeptOutput | None

    def sharpen(self, rows: int, inputs: np.ndarray, output: Matrix) -> None:
        """Compute the leading logits of the last pass with the full model's output matrix. inputs: what it reads."""
        logits = self.logits
        first, source = logits.ctypes.data, inputs.ctypes.data
        for row in range(rows):
            addresses = first + row * logits.strides[0], logits.shape[1], source + row * inputs.strides[0]
            exact_leaders(*addresses, output.address, output.kind, output.columns)


def make_draft(
    config: ModelConfig,
    full: HostWeights,
    copies: DraftWeights,
    memory: Memory,
    recipe: Recipe,
    always: Iterable[int],
) -> CompiledDraft:
    """A draft by a recipe that `copies` are prepared for. always: tokens that a reduced vocabulary always has."""
    steps = programme.build(config, full.names, recipe)
    kept = programme.kept_neurons(config, recipe)
    reach = _reach(config, full) if kept < config.intermediate_size else np.ones((config.layers, 1), np.float32)
    choice = NeuronChoice(config.layers, config.intermediate_size, kept, reach)
    choice.refresh(memory.statistics)
    tokens = programme.kept_tokens(config, recipe)
    output = None if tokens == config.vocabulary else KeptOutput(copies, recipe, tokens, always)
    memory = memory if output is None else output.beside(memory)
    weights = copies.table(recipe, choice.chosen, None if output is None else output.rows)
    logits = memory.buffers[programme.Buffer.LOGITS if output is None else programme.Buffer.DRAFT_LOGITS]
    return CompiledDraft(recipe, bind(steps, config, memory, weights), weights, logits, choice, output)


def _reach(config: ModelConfig, full: HostWeights) -> np.ndarray:
    """Norm of each neuron's down-projection column, float32 [layers, neurons]."""
    kinds = {0: "F32", 1: "F16", 2: "BF16"}
    names = (f"model.layers.{layer}.mlp.down_proj.weight" for layer in range(config.layers))
    downs = (full.matrix(name) for name in names)
    return np.stack([np.linalg.norm(as_float32(down.owner[0], kinds[down.kind]), axis=0) for down in downs])
