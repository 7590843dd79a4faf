"""Takes the matrices of streamed parts out of a fused model, into pinned memory, and leaves views of slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from engine.kernels.triton.step_memory import FusedLayer, FusedModel
from engine.offload.parts import ATTENTION, MLP, Part
from engine.offload.pinned import PinnedBuffer
from engine.offload.plan import Plan
from engine.offload.weight_stream import HostPart, WeightStream

ALIGNMENT = 256  # bytes: matrices begin where kernels may read whole lines

Tensor = torch.Tensor


@dataclass(frozen=True, slots=True)
class Taken:
    """A part's matrices in host memory, and where each begins in its bytes."""

    part: Part
    data: Tensor
    matrices: tuple[Tensor, ...]
    starts: tuple[int, ...]


class StreamBuilder:
    """Takes part after part; `stream` then has their slots, and `placed` a model whose matrices lie there."""

    def __init__(self, plan: Plan) -> None:
        """Raises SpecularError where there is too little RAM."""
        self._streamed = {part.index: part for part in plan.streamed}
        self._slots = plan.slots
        total = sum(_padded(part.nbytes) + ALIGNMENT * len(part.tensors) for part in plan.streamed)
        self.buffer = PinnedBuffer(total)
        self._taken: dict[int, Taken] = {}

    def streams(self, index: int) -> bool:
        """Whether a part is streamed."""
        return index in self._streamed

    def take(self, index: int, matrices: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Copy the matrices of a streamed part, wherever they lie, into host memory; views of them there."""
        starts, size = [], 0
        for matrix in matrices:
            starts.append(size)
            size += _padded(matrix.numel() * matrix.element_size())
        data = self.buffer.take(size)
        kept = tuple(_view(data, start, matrix) for start, matrix in zip(starts, matrices, strict=True))
        for target, matrix in zip(kept, matrices, strict=True):
            target.copy_(matrix)
        self._taken[index] = Taken(self._streamed[index], data, kept, tuple(starts))
        return kept

    def stream(self, device: torch.device) -> WeightStream:
        """The parts that were taken, with slots on the device."""
        parts = [HostPart(index, taken.data) for index, taken in sorted(self._taken.items())]
        return WeightStream(parts, self._slots, device)

    def placed(self, model: FusedModel, stream: WeightStream) -> FusedModel:
        """The model with views of slots in place of what was taken."""
        layers = tuple(self._placed_layer(number, layer, stream) for number, layer in enumerate(model.layers))
        index = 2 * len(layers)
        output = self._slot_views(index, stream)[0] if index in self._taken else model.output
        return replace(model, layers=layers, output=output)

    def home(self, index: int) -> tuple[Tensor, ...]:
        """The matrices of a taken part in host memory."""
        return self._taken[index].matrices

    def _placed_layer(self, number: int, layer: FusedLayer, stream: WeightStream) -> FusedLayer:
        attention, mlp = part_index(number, ATTENTION), part_index(number, MLP)
        if attention in self._taken:
            qkv, output = self._slot_views(attention, stream)
            layer = replace(layer, qkv=qkv, output=output)
        if mlp in self._taken:
            gate_up, down = self._slot_views(mlp, stream)
            layer = replace(layer, gate_up=gate_up, down=down)
        return layer

    def _slot_views(self, index: int, stream: WeightStream) -> tuple[Tensor, ...]:
        taken, slot = self._taken[index], stream.slot(index)
        pairs = zip(taken.starts, taken.matrices, strict=True)
        return tuple(_view(slot, start, matrix) for start, matrix in pairs)


def part_index(layer: int, kind: str) -> int:
    """A layer's part in the order of a pass; see parts.parts_of."""
    return 2 * layer + (kind == MLP)


def stream_model(model: FusedModel, plan: Plan) -> tuple[FusedModel, WeightStream, StreamBuilder]:
    """A fused model that lies on the card as a whole, with the streamed parts taken out."""
    builder = StreamBuilder(plan)
    for number, layer in enumerate(model.layers):
        for kind, matrices in ((ATTENTION, (layer.qkv, layer.output)), (MLP, (layer.gate_up, layer.down))):
            if builder.streams(part_index(number, kind)):
                builder.take(part_index(number, kind), matrices)
    if builder.streams(2 * len(model.layers)):
        builder.take(2 * len(model.layers), (model.output,))
    stream = builder.stream(model.embedding.device)
    return builder.placed(model, stream), stream, builder


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _view(data: Tensor, start: int, like: Tensor) -> Tensor:
    """The bytes from `start` on as a matrix of another's type and shape."""
    size = like.numel() * like.element_size()
    return data[start : start + size].view(like.dtype).view(like.shape)
