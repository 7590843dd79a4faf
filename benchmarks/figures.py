"""What every benchmark shares: a figure with its goal, the conditions it was taken under, and how both are printed.

Import it first: it puts the project on the import path.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

MARK = "figures: "  # starts the line that run_all.py reads
PACKAGES = ("numpy", "numba", "torch", "PySide6-Essentials", "llama-cpp-python")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. at_most and at_least are its goal, None where there is none; note: how it came about."""

    what: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least

    @property
    def goal(self) -> str:
        """Such as `≤ 3`, empty without one."""
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}"


def conditions() -> dict[str, str]:
    """The machine and the versions that figures depend on; no names of hosts or people."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_gib()} GiB",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def report(figures: Sequence[Figure]) -> None:
    """Print figures for people, and as one marked line for run_all.py."""
    print(table(figures))
    print("; ".join(conditions().values()))
    print(MARK + json.dumps([asdict(figure) for figure in figures], ensure_ascii=False), flush=True)


def table(figures: Sequence[Figure]) -> str:
    """A Markdown table of the figures."""
    lines = ["| figure | measured | goal | met | how |", "|---|---|---|---|---|"]
    for figure in figures:
        met = {True: "yes", False: "**no**", None: ""}[figure.met]
        value = f"{figure.value:#.3g}" if abs(figure.value) < 100 else f"{figure.value:.0f}"
        lines.append(f"| {figure.what} | {value} {figure.unit} | {figure.goal} | {met} | {figure.note} |")
    return "\n".join(lines)


def _processor() -> str:
    """The processor's name and the widest vector instructions it has, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = facts.get("flags", "").split()
    vectors = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "no AVX2"
    return f"{facts.get('model name', platform.machine())} ({vectors})"


def _memory_gib() -> str:
    import psutil

    return f"{psutil.virtual_memory().total / 2**30:.0f}"
