"""A model on a CUDA card: decode steps in captured Triton graphs, prefill in torch over the same weights and cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from engine.errors import BadSetting
from engine.files.folder import ModelFolder
from engine.kernels.triton.choose_tiles import choose_tiles
from engine.kernels.triton.step import StepBuffers, StepKernels
from engine.model.decode_graphs import CycleResult, DecodeGraphs
from engine.model.fused import fuse, shapes_of
from engine.model.runner import MAX_DECODE_ROWS
from engine.model.torch_runner import TorchRunner
from engine.recipe import Recipe
from engine.records import LoadProgress

DEFAULT_RECIPE = Recipe(weight_bits=16, skipped_attention=())


class GraphRunner(TorchRunner):
    """Implements engine.model.runner.Runner, and `cycle` for greedy replies. One thread owns it and the card.

    Prompt chunks run in torch, identically in plain and speculative replies; everything from the last prompt token
    on runs in the captured steps, whose rows have the same bits at every width.
    """

    def __init__(
        self,
        folder: ModelFolder,
        capacity: int,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None],
        cancelled: Callable[[], bool],
        device: str,
    ) -> None:
        super().__init__(folder, capacity, recipe, progress, cancelled, device)
        model = fuse(self.config, self._weights, self._cache, self._cosine, self._sine)
        tiles, tuned = choose_tiles(shapes_of(self.config), self._embedding.dtype, self.device)
        self.kernels = f"Triton graphs ({'tuned' if tuned else 'default'} tiles)"
        buffers = StepBuffers(self.config, tiles, self._cosine.shape[0], model)
        kernels = StepKernels(self.config, model, buffers, tiles, self.config.vocabulary)
        self.graphs = DecodeGraphs(
            kernels, buffers, lambda done, total: progress(LoadProgress("Capturing graphs", done, total, 0, 0))
        )
        self.graphs.use_recipe(recipe)

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        """See Runner.full. A pass whose every row is wanted runs in the captured steps, any other in torch."""
        if wanted != len(tokens) or len(tokens) > MAX_DECODE_ROWS:
            return super().full(tokens, position, wanted)
        torch.cuda.current_stream().synchronize()  # prefill wrote the cache on this stream
        self.graphs.begin(position, tokens)
        self.graphs.run_full(len(tokens))
        return self.graphs.logits(len(tokens)).numpy()

    def draft(self, token: int, position: int) -> np.ndarray:
        """See Runner.draft."""
        self.graphs.begin(position, (token,))
        self.graphs.run_draft()
        return self.graphs.logits(1).numpy()

    def cycle(self, token: int, position: int, gamma: int) -> CycleResult:
        """A whole greedy cycle on the card after `token` at `position`."""
        torch.cuda.current_stream().synchronize()
        self.graphs.begin(position, (token,))
        return self.graphs.cycle(gamma)

    def use_recipe(self, recipe: Recipe) -> None:
        """See Runner.use_recipe."""
        check_recipe(recipe)
        super().use_recipe(recipe)
        if hasattr(self, "graphs"):
            self.graphs.use_recipe(recipe)


def check_recipe(recipe: Recipe) -> None:
    """Raise BadSetting for an ingredient that the captured draft cannot run."""
    if recipe.neuron_share < 1:
        raise BadSetting("The draft on this card can skip sub-layers, but not select MLP neurons yet.")
