"""NVIDIA's management library: memory, load, bus, heat of a card, without a CUDA context and without torch.

The card is found by its UUID, because CUDA and the library number cards differently. A driver that is missing, does not
fit or loses the card costs figures, never more: it is let go of, and asked again by the next `read`.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
from collections.abc import Callable
from typing import Any

from engine.probes.reading import CardReading, Measure, nothing_known

log = logging.getLogger(__name__)

# Error numbers of the library.
UNINITIALISED, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 1, 3, 4, 6
DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, GPU_IS_LOST = 9, 12, 13, 15
RESET_REQUIRED, VERSION_MISMATCH = 16, 18
LOST = (UNINITIALISED, DRIVER_NOT_LOADED, GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH)

REASONS = {
    UNINITIALISED: "The NVIDIA driver was restarted.",
    NOT_SUPPORTED: "This card does not tell it.",
    NO_PERMISSION: "The driver tells it to administrators only.",
    NOT_FOUND: "The driver does not know the card that the model is on.",
    DRIVER_NOT_LOADED: "The NVIDIA driver is not loaded.",
    LIBRARY_NOT_FOUND: "NVIDIA's management library is not installed.",
    FUNCTION_NOT_FOUND: "The installed NVIDIA driver is too old to tell it.",
    GPU_IS_LOST: "The driver has lost the card.",
    RESET_REQUIRED: "The card must be reset before it can be asked.",
    VERSION_MISMATCH: "The NVIDIA driver and its library are of different versions; restarting the computer helps.",
}
OWN_UNKNOWN = "The driver does not tell what this program takes, as in a container or under Windows."
NO_BUS = "The bus is asked only while its figures are shown."


class NvmlProbe:
    """Fits `CardProbe`. library: the module `pynvml`, imported at the first `read` where none is given."""

    def __init__(self, library: Any = None) -> None:
        self._library = library
        self._open = False
        self._handles: dict[str, Any] = {}
        self._told = ""

    def read(self, card: str, *, bus: bool) -> CardReading:
        """What the card does now; without figures, and `lost`, where it cannot be asked."""
        try:
            nvml = self._opened()
        except Exception as error:  # a broken library may raise anything: the window shows why and lives on
            return self._failed(card, error)
        try:
            reading = _read(nvml, self._handle(nvml, card), card, bus)
        except nvml.NVMLError as error:
            return self._failed(card, error)
        self._told = ""
        return reading

    def rest(self) -> None:
        """Shut the library down; only where it had been opened, for closing it otherwise is an error of its own."""
        self._handles.clear()
        if self._open:
            self._open = False
            with contextlib.suppress(self._library.NVMLError):
                self._library.nvmlShutdown()

    def _opened(self) -> Any:
        if self._library is None:
            self._library = importlib.import_module("pynvml")
        if not self._open:
            self._library.nvmlInit()
            self._open = True
        return self._library

    def _handle(self, nvml: Any, card: str) -> Any:
        """By UUID; CUDA gives it bare, the library wants it with what it names: a card, or an instance of one."""
        if card not in self._handles:
            names = [card] if card.startswith(("GPU-", "MIG-")) else [f"GPU-{card}", f"MIG-{card}"]
            for name in names:
                try:
                    self._handles[card] = nvml.nvmlDeviceGetHandleByUUID(name.encode())
                    break
                except nvml.NVMLError:
                    if name == names[-1]:
                        raise
        return self._handles[card]

    def _failed(self, card: str, error: Exception) -> CardReading:
        """Let go, and say why once, however often it is tried again."""
        reason = reason_of(error)
        self.rest()
        if reason != self._told:
            self._told = reason
            log.warning("No figures of the card: %s", reason)
        return nothing_known(card, reason, lost=True)


def reason_of(error: Exception) -> str:
    """Why a figure is missing, as a sentence."""
    number = getattr(error, "value", None)
    return REASONS.get(number if isinstance(number, int) else -1) or f"The NVIDIA driver says: {error}."


def _read(nvml: Any, handle: Any, card: str, bus: bool) -> CardReading:
    def ask(call: Callable[[], Any], scale: float = 1.0) -> Measure:
        try:
            return Measure(float(call()) * scale)
        except nvml.NVMLError as error:
            if getattr(error, "value", None) in LOST:
                raise
            return Measure(None, reason_of(error))

    def throughput(counter: int) -> Measure:
        if not bus:
            return Measure(None, NO_BUS)
        return ask(lambda: nvml.nvmlDeviceGetPcieThroughput(handle, counter), 1024)

    total, used = _memory(nvml, handle)
    return CardReading(
        card=card,
        name=_name(nvml, handle),
        total=total,
        used=used,
        own=_own(nvml, handle),
        busy=ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu, 0.01),
        received=throughput(nvml.NVML_PCIE_UTIL_RX_BYTES),
        sent=throughput(nvml.NVML_PCIE_UTIL_TX_BYTES),
        celsius=ask(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        watts=ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle), 0.001),
    )


def _memory(nvml: Any, handle: Any) -> tuple[Measure, Measure]:
    try:
        info = nvml.nvmlDeviceGetMemoryInfo(handle)
    except nvml.NVMLError as error:
        if getattr(error, "value", None) in LOST:
            raise
        return Measure(None, reason_of(error)), Measure(None, reason_of(error))
    return Measure(float(info.total)), Measure(float(info.used))


def _name(nvml: Any, handle: Any) -> str:
    try:
        name = nvml.nvmlDeviceGetName(handle)
    except nvml.NVMLError:
        return ""
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _own(nvml: Any, handle: Any) -> Measure:
    """Bytes of this process; the driver leaves them out, or other process numbers in, where it cannot tell."""
    try:
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except nvml.NVMLError as error:
        if getattr(error, "value", None) in LOST:
            raise
        return Measure(None, reason_of(error))
    own = [process.usedGpuMemory for process in processes if process.pid == os.getpid()]
    if not own or any(size is None for size in own):
        return Measure(None, OWN_UNKNOWN)
    return Measure(float(sum(own)))
