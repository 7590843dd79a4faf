"""The draft's low-bit copy on a card: whole, or, where it does not fit, with parts that are brought in for every step.

What is streamed costs each draft step its copy over the bus; that is still far less than the full model's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import torch

from engine.kernels.triton.draft_memory import DraftLayer, DraftMatrix, DraftModel
from engine.offload.part_store import PartStore, part_bytes
from engine.offload.parts import ATTENTION, MLP, part_index
from engine.offload.pinned import require_ram
from engine.offload.plan import DraftPlacement, Residency
from engine.offload.weight_stream import WeightStream

Tensor = torch.Tensor


class CardCopy:
    """Takes a copy layer by layer, as it is made, and puts its parts where a plan wants them."""

    def __init__(self, placement: DraftPlacement | None, device: torch.device) -> None:
        """placement: None has the whole copy on the card. Raises SpecularError where RAM is too short."""
        self._residency = _residency(placement)
        self._slots = 0 if placement is None else placement.slots
        self._store = PartStore(device)
        self._skeleton: DraftModel | None = None  # its layers' matrices lack codes and groups
        if placement is not None:
            require_ram(sum(part_bytes((part.nbytes,)) for part in placement.streamed))

    @property
    def stream(self) -> WeightStream | None:
        """What brings parts in; None where all are on the card."""
        return self._store.stream

    @property
    def brought_bytes(self) -> int:
        """Bytes that steps have brought in so far."""
        return self._store.brought_bytes

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what did not go as it should."""
        return self._store.notes

    @property
    def nbytes(self) -> int:
        """Bytes of the copy, wherever its parts lie."""
        return self.model().nbytes

    def take(self, number: int, layer: DraftLayer) -> DraftLayer:
        """A layer whose matrices are put where they are to lie; what is returned holds none of them."""
        for kind, matrices in ((ATTENTION, (layer.qkv, layer.output)), (MLP, (layer.gate_up, layer.down))):
            index = part_index(number, kind)
            self._store.put(index, _tensors(matrices), self._residency.get(index, Residency.RESIDENT))
        return replace(
            layer,
            qkv=_hollow(layer.qkv),
            output=_hollow(layer.output),
            gate_up=_hollow(layer.gate_up),
            down=_hollow(layer.down),
        )

    def finish(self, model: DraftModel) -> None:
        """The copy as `take` returned its layers: it is complete."""
        self._skeleton = model
        self._store.start(self._slots)

    def hold(self, model: DraftModel) -> None:
        """Take a copy that lies on the card as a whole."""
        self.finish(replace(model, layers=tuple(self.take(number, layer) for number, layer in enumerate(model.layers))))

    def model(self) -> DraftModel:
        """The copy as its parts lie now, streamed ones as views of slots."""
        assert self._skeleton is not None  # `finish` comes first
        return replace(self._skeleton, layers=tuple(map(self._layer, range(len(self._skeleton.layers)))))

    def move(self, placement: DraftPlacement | None, progress: Callable[[int, int], None]) -> None:
        """Have the parts lie by another plan; nothing may hold the model any more. Raises as PartStore.move."""
        residency = _residency(placement)
        self._store.stop()
        try:
            self._store.move(residency, lambda index, matrices: None, progress)
            self._residency, self._slots = residency, 0 if placement is None else placement.slots
        finally:
            self._store.start(self._slots)

    def close(self) -> None:
        """Give the host memory back."""
        self._store.close()

    def _layer(self, number: int) -> DraftLayer:
        assert self._skeleton is not None
        layer = self._skeleton.layers[number]
        attention, mlp = (self._store.ready(part_index(number, kind)) for kind in (ATTENTION, MLP))
        return replace(
            layer,
            qkv=replace(layer.qkv, codes=attention[0], groups=attention[1]),
            output=replace(layer.output, codes=attention[2], groups=attention[3]),
            gate_up=replace(layer.gate_up, codes=mlp[0], groups=mlp[1]),
            down=replace(layer.down, codes=mlp[2], groups=mlp[3]),
        )


def _tensors(matrices: Collection[DraftMatrix]) -> tuple[Tensor, ...]:
    return tuple(tensor for matrix in matrices for tensor in (matrix.codes, matrix.groups))


def _hollow(matrix: DraftMatrix) -> DraftMatrix:
    nothing = torch.empty(0, dtype=torch.int32)
    return replace(matrix, codes=nothing, groups=nothing)


def _residency(placement: DraftPlacement | None) -> dict[int, Residency]:
    """Of the parts that are not on the card."""
    return {} if placement is None else {part.index: Residency.STREAMED for part in placement.streamed}
