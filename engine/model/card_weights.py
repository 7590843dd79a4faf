"""Where a model's matrices lie for a card: on it, or in host memory and brought in for every full pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from engine.files.config import ModelConfig
from engine.kernels.triton.step_memory import FusedLayer, FusedModel
from engine.model.fused import fuse, joined_names, share_part
from engine.offload.part_store import Blocks, PartStore, part_bytes
from engine.offload.parts import ATTENTION, MLP, Part, part_index
from engine.offload.pinned import require_ram
from engine.offload.plan import Plan, Residency
from engine.offload.weight_stream import WeightStream

Tensor = torch.Tensor
NOWHERE = torch.empty(0)


class CardWeights:
    """The matrices of the full model by a plan, which may change while it is loaded."""

    def __init__(
        self,
        parts: Sequence[Part],
        plan: Plan | None,
        device: torch.device,
        files: Callable[[str], Tensor] | None = None,
    ) -> None:
        """plan: None has all parts on the card. files: a tensor by its name, where it can be read as often as it takes;
        parts that RAM is too short for stay there. Without it that raises SpecularError."""
        self._parts, self._device = tuple(parts), device
        self._residency = away(plan)
        self._slots = 0 if plan is None else plan.slots
        self._files = files
        self._store = PartStore(device, None if files is None else self._in_files)
        self._skeleton: FusedModel | None = None  # the model without its parts
        if files is None:
            require_ram(sum(part_bytes((part.nbytes,)) for part in parts if part.index in self._residency))

    @property
    def streams(self) -> bool:
        """Whether anything is streamed."""
        return Residency.STREAMED in self._residency.values()

    @property
    def is_whole(self) -> bool:
        """Whether all parts are on the card."""
        return not self._residency

    @property
    def names_away(self) -> frozenset[str]:
        """Names of the tensors that are not on the card."""
        return frozenset(name for part in self._parts if part.index in self._residency for name in part.tensors)

    @property
    def stream(self) -> WeightStream | None:
        """What brings parts in; None where all are on the card."""
        return self._store.stream

    @property
    def brought_bytes(self) -> int:
        """Bytes that passes have brought in so far."""
        return self._store.brought_bytes

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what did not go as it should."""
        return self._store.notes

    def fuse(
        self, config: ModelConfig, weights: dict[str, Tensor], caches: Sequence[Tensor], cosine: Tensor, sine: Tensor
    ) -> FusedModel:
        """The model as decode kernels read it: see engine.model.fused.fuse. Streamed matrices are views of slots."""

        def place(index: int, matrices: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            kept = self._store.put(index, matrices, self._residency.get(index, Residency.RESIDENT))
            share_part(weights, self._parts[index], kept)
            return tuple(blocks[0] for blocks in kept)  # `_hollow` lets go of them

        return self._hollow(fuse(config, weights, caches, cosine, sine, place))

    def hold(self, model: FusedModel) -> FusedModel:
        """As `fuse`, of a model that lies on the card as a whole."""

        def put(index: int, *matrices: Tensor) -> None:
            self._store.put(index, matrices, self._residency.get(index, Residency.RESIDENT))

        for number, layer in enumerate(model.layers):
            put(part_index(number, ATTENTION), layer.qkv, layer.output)
            put(part_index(number, MLP), layer.gate_up, layer.down)
        if self._has_output:
            put(2 * len(model.layers), model.output)
        return self._hollow(model)

    def _hollow(self, model: FusedModel) -> FusedModel:
        """Keep nothing of a model whose parts have been put; the model as they lie now."""
        layers = tuple(
            replace(layer, qkv=NOWHERE, output=NOWHERE, gate_up=NOWHERE, down=NOWHERE) for layer in model.layers
        )
        self._skeleton = replace(model, layers=layers, output=NOWHERE if self._has_output else model.output)
        self._store.start(self._slots)
        return self.model()

    def model(self) -> FusedModel:
        """The model as its parts lie now."""
        assert self._skeleton is not None  # `fuse` comes first
        layers = tuple(
            self._layer(number, layer, self._store.ready) for number, layer in enumerate(self._skeleton.layers)
        )
        model = replace(self._skeleton, layers=layers)
        return replace(model, output=self._store.ready(2 * len(layers))[0]) if self._has_output else model

    def move(self, plan: Plan | None, weights: dict[str, Tensor], progress: Callable[[int, int], None]) -> None:
        """Have the parts lie by another plan; nothing may hold the model any more. Raises as PartStore.move."""
        residency = away(plan)

        def moved(index: int, matrices: tuple[Blocks, ...]) -> None:
            share_part(weights, self._parts[index], matrices)

        self._store.stop()
        try:
            self._store.move(residency, moved, progress)
            self._residency, self._slots = residency, 0 if plan is None else plan.slots
        finally:
            self._store.start(self._slots)

    def whole(self, number: int, layer: FusedLayer) -> FusedLayer:
        """A layer with all of its matrices on the card."""
        return self._layer(number, layer, lambda index: tuple(m.to(self._device) for m in self._store.home(index)))

    def with_output(self, model: FusedModel) -> FusedModel:
        """The model with its output matrix on the card."""
        if not self._has_output:
            return model
        return replace(model, output=self._store.home(2 * len(model.layers))[0].to(self._device))

    def close(self) -> None:
        """Give the host memory back."""
        self._store.close()

    def _in_files(self, index: int) -> tuple[Blocks, ...]:
        assert self._files is not None  # else nothing asks
        return tuple(tuple(map(self._files, names)) for names in joined_names(self._parts[index]))

    @property
    def _has_output(self) -> bool:
        """Whether the output matrix is a part, not the embedding."""
        return self._parts[-1].layer is None

    @staticmethod
    def _layer(number: int, layer: FusedLayer, matrices: Callable[[int], tuple[Tensor, ...]]) -> FusedLayer:
        qkv, output = matrices(part_index(number, ATTENTION))
        gate_up, down = matrices(part_index(number, MLP))
        return replace(layer, qkv=qkv, output=output, gate_up=gate_up, down=down)


def away(plan: Plan | None) -> dict[int, Residency]:
    """Where the parts of a plan lie that are not on the card."""
    if plan is None:
        return {}
    pairs = zip(plan.parts, plan.residency, strict=True)
    return {part.index: residency for part, residency in pairs if residency is not Residency.RESIDENT}


def host_layers(plan: Plan | None) -> tuple[int, ...]:
    """Layers of a plan whose MLP the CPU computes."""
    hosts = {index for index, residency in away(plan).items() if residency is Residency.HOST}
    return tuple(part.layer for part in plan.parts if part.index in hosts and part.layer is not None) if plan else ()
