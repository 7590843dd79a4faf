"""A KV cache's rows as torch tensors, on a card or in ordinary memory."""

from __future__ import annotations

from functools import partial

import torch

from engine.memory.cuda_pages import CudaPages
from engine.memory.host_pages import HostPages
from engine.memory.host_storage import HOST
from engine.memory.open_storage import open_storage
from engine.memory.storage import RowSize, Storage


def tensor_storage(size: RowSize, device: torch.device, *, virtual: bool) -> Storage:
    """Virtual memory of the device, or one plain tensor where it is refused or not wanted; layers are uint8."""

    def plain(count: int) -> torch.Tensor:
        return torch.zeros(count, dtype=torch.uint8, device=device)

    pages = partial(CudaPages, device) if device.type == "cuda" else TensorHostPages
    return open_storage(pages, size, plain, virtual=virtual)


def place_of(device: torch.device) -> str:
    """The device in messages."""
    return f"the {torch.cuda.get_device_name(device)}" if device.type == "cuda" else HOST


class TensorHostPages(HostPages):
    """Host pages seen as torch tensors."""

    def view(self, address: int, size: int) -> torch.Tensor:
        """See Pages.view."""
        return torch.from_numpy(super().view(address, size))
