"""Where a model's matrices lie for a card: all on it, or some in host memory and brought in for every full pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from engine.files.config import ModelConfig
from engine.kernels.triton.step_memory import FusedLayer, FusedModel
from engine.model.fused import fuse
from engine.offload.parts import ATTENTION, MLP
from engine.offload.plan import Plan
from engine.offload.stream_builder import StreamBuilder, part_index
from engine.offload.weight_stream import WeightStream

Tensor = torch.Tensor


class CardWeights:
    """The matrices by a plan. stream: what brings the streamed ones in, None where there are none."""

    def __init__(self, plan: Plan | None, device: torch.device) -> None:
        """Takes the host memory that a plan's streamed parts need. Raises SpecularError where RAM is too short."""
        self._builder = StreamBuilder(plan) if plan is not None and plan.streamed else None
        self._device = device
        parts = () if plan is None else plan.streamed
        self.streamed_names = frozenset(name for part in parts for name in part.tensors)
        self.stream: WeightStream | None = None

    @property
    def streams(self) -> bool:
        """Whether anything is streamed."""
        return self._builder is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what did not go as it should."""
        return (self._builder.buffer.note,) if self._builder is not None and self._builder.buffer.note else ()

    def fuse(
        self, config: ModelConfig, weights: dict[str, Tensor], caches: Sequence[Tensor], cosine: Tensor, sine: Tensor
    ) -> FusedModel:
        """The model as decode kernels read it: see engine.model.fused.fuse. Streamed matrices are views of slots."""
        model = fuse(config, weights, caches, cosine, sine, self._builder)
        if self._builder is None:
            return model
        self.stream = self._builder.stream(self._device)
        return self._builder.placed(model, self.stream)

    def whole(self, number: int, layer: FusedLayer) -> FusedLayer:
        """A layer with all of its matrices on the card."""
        attention, mlp = part_index(number, ATTENTION), part_index(number, MLP)
        if self._builder is not None and self._builder.streams(attention):
            qkv, output = (matrix.to(self._device) for matrix in self._builder.home(attention))
            layer = replace(layer, qkv=qkv, output=output)
        if self._builder is not None and self._builder.streams(mlp):
            gate_up, down = (matrix.to(self._device) for matrix in self._builder.home(mlp))
            layer = replace(layer, gate_up=gate_up, down=down)
        return layer

    def with_output(self, model: FusedModel) -> FusedModel:
        """The model with its output matrix on the card."""
        index = 2 * len(model.layers)
        if self._builder is None or not self._builder.streams(index):
            return model
        return replace(model, output=self._builder.home(index)[0].to(self._device))

    def close(self) -> None:
        """Give the host memory back."""
        if self._builder is not None:
            torch.cuda.synchronize(self._device)
            self._builder.buffer.close()
