"""What this computer has for a model, asked without torch and without a context on the card: for lists of models."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass

from engine.offload.fast_memory import FastMemory, host_memory
from engine.probes.reading import Measure


@dataclass(frozen=True, slots=True)
class Machine:
    """device: "cuda" or "cpu", as loading would choose. memory: of the card, or RAM."""

    device: str
    memory: FastMemory


def this_machine() -> Machine:
    """The card that loading would use, or the computer itself. Never fails."""
    card = _card_memory() if _torch_has_cuda() else None
    return Machine("cpu", host_memory()) if card is None else Machine("cuda", card)


def _torch_has_cuda() -> bool:
    """Whether the installed torch is a build that can use a card, by the name of its version."""
    try:
        return not importlib.metadata.version("torch").endswith("+cpu")
    except importlib.metadata.PackageNotFoundError:
        return False


def _card_memory() -> FastMemory | None:
    """Of the first card, by the driver's library; None where there is none or it cannot be asked."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        if not pynvml.nvmlDeviceGetCount():
            return None
        info = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0))
        return FastMemory(Measure(float(info.total)), Measure(float(info.free)))
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
