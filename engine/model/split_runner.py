"""A model over several devices of one machine, in torch: layers in order, activations handed from one to the next.

Every layer's weights and rows of the KV cache lie on its device, the embedding on the first, the output matrix on the
last. Passes are those of the torch runner, instruction by instruction, so that the tokens are those of one device of
the same kind. torch orders a copy between cards behind what made it and before what reads it, by events of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import torch

from engine.files.folder import ModelFolder
from engine.memory.split_storage import SplitStorage
from engine.memory.storage import RowSize, Storage
from engine.memory.tensor_storage import tensor_storage
from engine.model import programme as p
from engine.model.torch_runner import TorchRunner
from engine.recipe import Recipe
from engine.records import LoadProgress

_LAYER = re.compile(r"\.layers\.(\d+)\.")

Tensor = torch.Tensor


class SplitRunner(TorchRunner):
    """See TorchRunner. Several devices may be one: each then has tensors of its own."""

    def __init__(
        self,
        folder: ModelFolder,
        capacity: int,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None],
        cancelled: Callable[[], bool],
        devices: Sequence[str],
        layers: Sequence[int],
        *,
        virtual_memory: bool = True,
    ) -> None:
        """layers: how many each device has, in order."""
        if len(devices) != len(layers) or sum(layers) != folder.config.layers or min(layers) < 1:
            raise ValueError("every device has layers, and all layers have a device")
        self._devices = tuple(map(torch.device, devices))
        self._counts = tuple(layers)
        self._owners = tuple(number for number, count in enumerate(layers) for _ in range(count))
        self._places: dict[p.Instruction, int] = {}
        full = p.build(folder.config, frozenset(folder.entries))
        self._names = {name: place for step, place in self._placed(full) for name in _names_of(step)}
        self._output: Tensor | None = None  # the embedding's copy where it makes logits on another device
        self._place = 0  # whose buffers the running pass has
        self.handovers = self.handed_bytes = 0
        super().__init__(folder, capacity, recipe, progress, cancelled, devices[0], virtual_memory=virtual_memory)
        self._rotations = [
            (self._cosine, self._sine) if not place else (self._on(place, self._cosine), self._on(place, self._sine))
            for place in range(len(devices))
        ]
        if p.output_matrix(folder.config, frozenset(folder.entries)) == p.EMBEDDING:
            self._output = self._on(len(devices) - 1, self._embedding)
        spread = ", ".join(f"{count} on {device}" for count, device in zip(layers, self._devices, strict=True))
        self.kernels = f"{self.kernels}; layers {spread}"

    @property
    def shares(self) -> tuple[tuple[str, range], ...]:
        """Each device with its layers."""
        found, at = [], 0
        for device, count in zip(self._devices, self._counts, strict=True):
            found.append((str(device), range(at, at + count)))
            at += count
        return tuple(found)

    def use_recipe(
        self,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """See Runner.use_recipe."""
        super().use_recipe(recipe, progress, cancelled)
        self._places = dict((*self._placed(self._full), *self._placed(self._draft)))

    def weight(self, name: str) -> Tensor:
        """See TorchRunner.weight: logits are made where the last layer is."""
        return self._output if name == p.EMBEDDING and self._output is not None else self._weights[name]

    def rotations(self, layer: int) -> tuple[Tensor, Tensor]:
        """See TorchRunner.rotations."""
        return self._rotations[self._owners[layer]]

    def hand_over(self, buffers: dict[p.Buffer, Tensor], step: p.Instruction) -> None:
        """See TorchRunner.hand_over: what the pass has goes along, and nothing is left behind to be read."""
        place = self._places[step]
        if place != self._place and buffers:
            for name, tensor in buffers.items():
                buffers[name] = self._on(place, tensor)
                self.handed_bytes += tensor.nbytes
            self.handovers += 1
        self._place = place

    def close(self) -> None:
        """See Runner.close."""
        self._output = None
        self._rotations = []
        super().close()

    def _placed(self, programme: p.Programme) -> Iterator[tuple[p.Instruction, int]]:
        """Every instruction with its device's number: its layer's; the first before all layers, the last behind."""
        seen = False
        for step in programme:
            layer = _layer_of(step)
            seen = seen or layer is not None
            outside = len(self._devices) - 1 if seen else 0
            yield step, outside if layer is None else self._owners[layer]

    def _on(self, place: int, tensor: Tensor) -> Tensor:
        """A tensor of the device's own."""
        device = self._devices[place]
        return tensor.clone() if tensor.device == device else tensor.to(device, non_blocking=True)

    def _storage(self, size: RowSize, virtual: bool) -> Storage:
        shares = [RowSize(count, size.rows, size.row_bytes) for count in self._counts]
        return SplitStorage(
            [tensor_storage(own, device, virtual=virtual) for own, device in zip(shares, self._devices, strict=True)]
        )

    def _no_statistics(self) -> Sequence[Tensor]:
        width = self.config.intermediate_size
        return [torch.zeros(width, device=self._devices[owner]) for owner in self._owners]

    def _read(
        self, folder: ModelFolder, progress: Callable[[LoadProgress], None], cancelled: Callable[[], bool]
    ) -> dict[str, Tensor]:
        read = super()._read(folder, progress, cancelled)
        return {name: tensor.to(self._devices[self._names.get(name, 0)]) for name, tensor in read.items()}

    def _upload_choice(self) -> None:
        super()._upload_choice()
        pairs = zip(self.chosen, self._owners, strict=True)
        self.chosen = [chosen.to(self._devices[owner]) for chosen, owner in pairs]


def _layer_of(step: p.Instruction) -> int | None:
    """The layer that an instruction belongs to; None for those outside of all."""
    layer = getattr(step, "layer", None)
    if layer is not None:
        return int(layer)
    found = _LAYER.search(getattr(step, "weight", ""))
    return int(found[1]) if found else None


def _names_of(step: p.Instruction) -> Iterator[str]:
    """Tensors that an instruction reads."""
    for field in ("weight", "bias", "query_norm", "key_norm"):
        name = getattr(step, field, None)
        if isinstance(name, str):
            yield name
