"""The name by which a device is told from another one: what was measured on one does not hold on the other."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from engine.kernels.dispatch import Placement

CPU_INFO = Path("/proc/cpuinfo")


def device_identity(placement: Placement) -> str:
    """The card's name, or the processor's with its cores that this process may use."""
    if placement.device != "cpu":
        return placement.name
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{processor_name()}, {usable} core{'' if usable == 1 else 's'}"


def processor_name(cpu_info: Path = CPU_INFO) -> str:
    """Such as "AMD EPYC 7763 64-Core Processor"; the machine's architecture where the system does not say more."""
    try:
        lines = cpu_info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name" and value.strip():
            return value.strip()
    return platform.processor() or platform.machine() or "CPU"
