"""Pages of a card's memory through the CUDA driver's virtual memory management (after vAttention, Prabhu et al. 2024).

`gpuDirectRDMACapable` stays 0: on WSL setting it makes cuMemSetAccess fail.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch

from engine.memory.pages import PageError


class CudaPages:
    """Implements engine.memory.pages.Pages on one card, in the context that torch uses. Raises PageError where the card
    or its driver has no virtual memory, ImportError where the package cuda-bindings is missing."""

    name = "CUDA virtual memory"
    pools = True

    def __init__(self, device: torch.device) -> None:
        from cuda.bindings import driver

        self._driver, self._device = driver, device
        torch.zeros(1, device=device)  # so that there is a context
        index = torch.cuda.current_device() if device.index is None else device.index
        self._index = index
        self._context = self._call("cuCtxGetCurrent")
        attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
        if not self._call("cuDeviceGetAttribute", attribute, index):
            raise PageError("the card's driver has no virtual memory management")
        self._properties = driver.CUmemAllocationProp()
        self._properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self._properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        self._properties.location.id = index
        self._access = driver.CUmemAccessDesc()
        self._access.location = self._properties.location
        self._access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        least = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        self.page_bytes = int(self._call("cuMemGetAllocationGranularity", self._properties, least))
        self._reserved = (0, 0)

    def attach(self) -> None:
        """See Pages.attach."""
        self._call("cuCtxSetCurrent", self._context)

    def reserve(self, size: int) -> int:
        """See Pages.reserve."""
        address = int(self._call("cuMemAddressReserve", size, 0, 0, 0))
        self._reserved = (address, size)
        return address

    def create(self) -> int:
        """See Pages.create. What torch keeps for later is given up where the card has no page left."""
        try:
            return self._create()
        except PageError:
            torch.cuda.empty_cache()
            return self._create()

    def release(self, handle: int) -> None:
        """See Pages.release."""
        self._call("cuMemRelease", handle)

    def map(self, address: int, handles: Sequence[int]) -> None:
        """See Pages.map."""
        size, mapped = len(handles) * self.page_bytes, 0
        try:
            for handle in handles:
                self._call("cuMemMap", address + mapped * self.page_bytes, self.page_bytes, 0, handle, 0)
                mapped += 1
            self._call("cuMemSetAccess", address, size, [self._access], 1)
            self._call("cuMemsetD32", address, 0, size // 4)
        except PageError:
            with contextlib.suppress(PageError):  # the first fault is the news
                self.unmap(address, mapped)
            raise

    def unmap(self, address: int, count: int) -> None:
        """See Pages.unmap. One by one: what was mapped in parts must be unmapped in the same parts."""
        for page in range(count):
            self._call("cuMemUnmap", address + page * self.page_bytes, self.page_bytes)

    def wait(self) -> None:
        """See Pages.wait."""
        self._call("cuCtxSynchronize")

    def free_bytes(self) -> int:
        """See Pages.free_bytes: as CUDA sees it, other programs counted."""
        return int(self._call("cuMemGetInfo")[0])

    def view(self, address: int, size: int) -> Any:
        """See Pages.view: a torch tensor. The first page must be mapped while it is made: torch asks whose it is."""
        return torch.as_tensor(_Bytes(address, size), device=torch.device("cuda", self._index))

    def close(self) -> None:
        """See Pages.close. No tensor over the addresses may be touched any more."""
        address, size = self._reserved
        self._reserved = (0, 0)
        if size:
            self._call("cuMemAddressFree", address, size)

    def _create(self) -> int:
        return int(self._call("cuMemCreate", self.page_bytes, self._properties, 0))

    def _call(self, name: str, *arguments: Any) -> Any:
        """The result of a driver call: nothing, a value or several. Raises PageError naming call and error."""
        status, *results = getattr(self._driver, name)(*arguments)
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise PageError(f"{name} failed: {getattr(status, 'name', status)}")
        return results[0] if len(results) == 1 else tuple(results)


class _Bytes:
    """Bytes of the card for torch.as_tensor."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }
