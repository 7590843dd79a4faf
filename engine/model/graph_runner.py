"""A model on a CUDA card: prompts and decode steps in captured Triton graphs over one set of weights and one cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from engine.files.config import ModelConfig
from engine.files.folder import ModelFolder
from engine.kernels.triton.choose_tiles import choose_tiles
from engine.kernels.triton.sampled_choice import SampledChoice
from engine.kernels.triton.step import PROMPT_ROWS, StepBuffers, StepKernels
from engine.model.decode_graphs import CycleResult, DecodeGraphs
from engine.model.fused import fuse, shapes_of
from engine.model.torch_runner import TorchRunner
from engine.recipe import Ingredients, Recipe
from engine.records import LoadProgress
from engine.settings import Sampling


def default_recipe(config: ModelConfig) -> Recipe:
    """Every fourth attention block of the middle half left out; the controller drafts only where that pays."""
    quarter = config.layers // 4
    return Recipe(weight_bits=16, skipped_attention=tuple(range(quarter, config.layers - quarter, 4)))


class GraphRunner(TorchRunner):
    """Implements engine.model.runner.Runner, and `cycle`. One thread owns it and the card.

    Prompts, plain steps and verify passes are the same kernels with the same order of every sum, so a row of the
    cache has the same bits whoever wrote it: a reused prefix equals one read anew.
    """

    ingredients = Ingredients()

    def __init__(
        self,
        folder: ModelFolder,
        capacity: int,
        recipe: Recipe | None,
        progress: Callable[[LoadProgress], None],
        cancelled: Callable[[], bool],
        device: str,
        allowed: int,
    ) -> None:
        """allowed: token ids from here on (rows that only pad the vocabulary) are never chosen."""
        recipe = recipe or default_recipe(folder.config)
        super().__init__(folder, capacity, recipe, progress, cancelled, device)
        model = fuse(self.config, self._weights, self._cache, self._cosine, self._sine)
        tiles, tuned = choose_tiles(shapes_of(self.config), self._embedding.dtype, self.device)
        self.kernels = f"Triton graphs ({'tuned' if tuned else 'default'} tiles)"
        buffers = StepBuffers(self.config, tiles, self._cosine.shape[0], model)
        kernels = StepKernels(self.config, model, buffers, tiles, allowed)
        sampled = SampledChoice(buffers.state, buffers.floats, buffers.logits, allowed)
        self.graphs = DecodeGraphs(
            kernels, buffers, lambda done, total: progress(LoadProgress("Capturing graphs", done, total, 0, 0)), sampled
        )
        self.chunk = PROMPT_ROWS
        prompt_buffers = StepBuffers(self.config, tiles, self._cosine.shape[0], model, PROMPT_ROWS)
        prompt_kernels = StepKernels(self.config, model, prompt_buffers, tiles, allowed)
        self.graphs.read_prompts_with(prompt_kernels, prompt_buffers)
        self.graphs.use_recipe(recipe)
        self._ready: tuple[int, int] | None = None  # position and token that the card's state stands at

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        """See Runner.full. Wanted rows come from a decode step, the rows before them from passes over the prompt."""
        self._ready = None
        prompt = len(tokens) - wanted
        for first in range(0, prompt, PROMPT_ROWS):
            self.graphs.read_prompt(position + first, tokens[first : min(first + PROMPT_ROWS, prompt)])
        if wanted == 0:
            self.graphs.synchronize()  # so that progress is honest and a stop comes soon
            return np.empty((0, self.config.vocabulary), np.float32)
        tokens, position = tokens[prompt:], position + prompt
        self._begin(position, tokens)
        self.graphs.run_full(len(tokens))
        return self.graphs.logits(len(tokens)).numpy()

    def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
        """See Runner.draft. Row after row: the captured draft step has one."""
        self._ready = None
        rows: list[np.ndarray] = []
        for i, token in enumerate(tokens):
            self._begin(position + i, (token,))
            self.graphs.run_draft()
            rows.append(self.graphs.logits(1).numpy().copy())
        return np.concatenate(rows)

    def choose_by(self, settings: Sampling, seed: int, history: Sequence[int]) -> None:
        """How the cycles that follow choose tokens. history: all ids so far."""
        self.graphs.choose_by(settings, seed, history)

    def cycle(self, token: int, position: int, gamma: int) -> CycleResult:
        """A whole cycle on the card after `token` at `position`; without an upload where the card is there."""
        if self._ready != (position, token):
            self._begin(position, (token,))
        result = self.graphs.cycle(gamma)
        self._ready = (position + result.accepted + 1, result.chosen[result.accepted])
        return result

    def _begin(self, position: int, tokens: Sequence[int]) -> None:
        torch.cuda.current_stream().synchronize()  # a prefill writes the cache on that stream
        self.graphs.begin(position, tokens)

    def use_recipe(self, recipe: Recipe) -> None:
        """See Runner.use_recipe."""
        super().use_recipe(recipe)
        if hasattr(self, "graphs"):  # not while the base class loads
            self.graphs.use_recipe(recipe)
            self._ready = None
