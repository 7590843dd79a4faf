"""The captured passes of a model on a card, as its parts lie now; made anew when they come to lie elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from engine.files.config import ModelConfig
from engine.kernels.triton.host_blocks import HostBlocks
from engine.kernels.triton.sampled_choice import SampledChoice
from engine.kernels.triton.step import StepKernels
from engine.kernels.triton.step_memory import FusedModel, StepBuffers
from engine.kernels.triton.tiles import Role, Tile
from engine.kernels.triton.wide_choice import WIDE_ROWS
from engine.model.decode_graphs import GREEDY, DecodeGraphs
from engine.model.wide_pass import WidePass
from engine.offload.weight_stream import WeightStream
from engine.records import LoadProgress


class CardMemory:
    """What the passes work in: the same for as long as the model is loaded, wherever its parts lie."""

    def __init__(
        self,
        config: ModelConfig,
        model: FusedModel,
        tiles: dict[Role, Tile],
        positions: int,
        allowed: int,
        prompt_rows: int,
    ) -> None:
        """positions: that rotary tables have. allowed: ids from here on are never chosen."""
        self.config, self.tiles, self.allowed = config, tiles, allowed
        self.steps = StepBuffers(config, tiles, positions, model)
        self.prompts = StepBuffers(config, tiles, positions, model, prompt_rows)
        self.sampled = SampledChoice(self.steps.state, self.steps.floats, self.steps.logits, allowed)
        self._positions = positions
        self._wide: StepBuffers | None = None

    def wide(self, model: FusedModel) -> StepBuffers:
        """For wide passes, which only streamed models have."""
        if self._wide is None:
            self._wide = StepBuffers(self.config, self.tiles, self._positions, model, WIDE_ROWS)
        return self._wide


class CardSteps:
    """Plain and verify passes of every width, the pass over a prompt, and the wide one where parts are streamed."""

    def __init__(
        self,
        memory: CardMemory,
        model: FusedModel,
        stream: WeightStream | None,
        host: HostBlocks | None,
        progress: Callable[[LoadProgress], None],
        mode: int = GREEDY,
        range_units: int = 0,
    ) -> None:
        """Capture them. stream: what brings parts in. host: computes what the card does not.

        mode, range_units: see DecodeGraphs.
        """

        def kernels(buffers: StepBuffers) -> StepKernels:
            return StepKernels(memory.config, model, buffers, memory.tiles, memory.allowed, stream, host)

        self.kernels = kernels(memory.steps)
        self.graphs = DecodeGraphs(
            self.kernels,
            memory.steps,
            lambda done, total: progress(LoadProgress("Capturing graphs", done, total, 0, 0)),
            memory.sampled,
            siblings=model.positions is None,
            weights=stream,
            mode=mode,
            range_units=range_units,
        )
        self.graphs.read_prompts_with(kernels(memory.prompts), memory.prompts)
        self.wide: WidePass | None = None
        if stream is not None:
            buffers = memory.wide(model)
            self.wide = WidePass(self.graphs, kernels(buffers), buffers)
