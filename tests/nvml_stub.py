"""NVIDIA's management library as a card would answer through it, and as it fails in the field."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

CARD = "11111111-2222-3333-4444-555555555555"


class NVMLError(Exception):
    """Carries the library's number, as that of pynvml does."""

    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


class NvmlStub:
    """Fits the module pynvml as far as the probe uses it. `calls` names every call in order.

    init_error, shutdown_error: numbers raised by those. failing: number raised by a function, by its name; "*" by all
    that ask a card. mig: the card is an instance, known as MIG-… only. own: bytes of this process, None as under WDDM.
    """

    NVMLError = NVMLError
    NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES, NVML_TEMPERATURE_GPU = 0, 1, 0

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.init_error: int | None = None
        self.shutdown_error: int | None = None
        self.failing: dict[str, int] = {}
        self.mig = False
        self.open = 0
        self.own: int | None = 3 * 2**30
        self.pid = os.getpid()

    def nvmlInit(self) -> None:
        self.calls.append("nvmlInit")
        if self.init_error is not None:
            raise NVMLError(self.init_error)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.calls.append("nvmlShutdown")
        if not self.open:
            raise NVMLError(1)
        self.open -= 1
        if self.shutdown_error is not None:
            raise NVMLError(self.shutdown_error)

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes) -> str:
        wanted = ("MIG-" if self.mig else "GPU-") + CARD
        self._ask("nvmlDeviceGetHandleByUUID")
        if uuid.decode() != wanted:
            raise NVMLError(6)
        return "handle"

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Any] = {
            "nvmlDeviceGetName": "Test card",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=12 * 2**30, used=5 * 2**30),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=47, memory=30),
            "nvmlDeviceGetPcieThroughput": 2000,
            "nvmlDeviceGetTemperature": 61,
            "nvmlDeviceGetPowerUsage": 180_000,
            "nvmlDeviceGetComputeRunningProcesses": [
                SimpleNamespace(pid=self.pid, usedGpuMemory=self.own),
                SimpleNamespace(pid=1, usedGpuMemory=2**30),
            ],
        }
        if name not in answers:
            raise AttributeError(name)

        def call(*_: Any) -> Any:
            self._ask(name)
            return answers[name]

        return call

    def _ask(self, name: str) -> None:
        self.calls.append(name)
        if not self.open:
            raise NVMLError(1)
        number = self.failing.get(name, self.failing.get("*"))
        if number is not None:
            raise NVMLError(number)

    @contextmanager
    def failing_with(self, number: int) -> Iterator[None]:
        """Inside, everything that asks a card fails."""
        self.failing["*"] = number
        yield
        del self.failing["*"]
