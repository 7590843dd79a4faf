"""How much of the fast memory there is, and how much of it nobody holds: VRAM, or RAM on a machine without a card."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from engine.offload.host_plan import FREE
from engine.probes.nvml import NvmlProbe
from engine.probes.reading import CardProbe, Measure


@dataclass(frozen=True, slots=True)
class FastMemory:
    """Bytes. free: what nobody holds, and what this program holds already. Either may be unknown, and says why."""

    total: Measure
    free: Measure

    def others(self, budget: int) -> Measure:
        """Bytes of a budget that other programs hold."""
        if self.free.value is None:
            return self.free
        return Measure(max(0.0, budget - self.free.value))


def unknown_memory(reason: str) -> FastMemory:
    """Of a device that is not there to be asked."""
    return FastMemory(Measure(None, reason), Measure(None, reason))


def host_memory() -> FastMemory:
    """RAM that can be had without swapping, but for what loading leaves to other programs."""
    memory = psutil.virtual_memory()
    return FastMemory(Measure(float(memory.total)), Measure(float(max(0, memory.available - FREE))))


def card_memory(card: str, probe: CardProbe | None = None) -> FastMemory:
    """Of the current card, whose UUID is `card`: the smaller of what CUDA and the driver's library say is free.

    Asking CUDA makes a context on the card, which counts as this program's.
    """
    import torch

    probe = probe or NvmlProbe()
    try:
        before = probe.read(card, bus=False)
        free, total = torch.cuda.mem_get_info()
        after = probe.read(card, bus=False)
    finally:
        probe.rest()
    own = torch.cuda.memory_reserved()
    return combined(before.total, before.used, after.used, own, free, total)


def combined(
    total: Measure, used_before: Measure, used_after: Measure, own: int, cuda_free: int, cuda_total: int
) -> FastMemory:
    """The smaller view. used_before, used_after: by the driver's library, around the making of CUDA's context, which
    is ours as much as the `own` bytes of tensors."""
    if total.value is None or used_before.value is None or used_after.value is None:
        return FastMemory(Measure(float(cuda_total)), Measure(float(cuda_free + own)))
    context = max(0.0, used_after.value - used_before.value)
    free = min(total.value - used_before.value, cuda_free + context)
    return FastMemory(Measure(min(total.value, float(cuda_total))), Measure(free + own))
