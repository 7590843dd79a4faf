"""How long the starter model takes to convert, and to load from the cache: python benchmarks/starter_load.py [RUNS].

Each run is a process of its own; the time is taken inside it, from before the engine is imported to the loaded model.
The first run, which may convert the GGUF, is not counted. Conversions are into a data folder of their own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from figures import ROOT, Figure, report

GOAL_SECONDS = 3.0
CONVERSION_GOAL_SECONDS = 15.0
CONVERSIONS = 3
CODE = """
import time
began = time.perf_counter()
from engine.engine import Engine
imported = time.perf_counter()
engine = Engine()
engine.load("starter", device="cpu")
ended = time.perf_counter()
engine.close()
print(imported - began, ended - imported)
"""

CONVERT = """
import sys, time
from pathlib import Path
from engine.files.gguf_convert import convert
began = time.perf_counter()
convert(Path(sys.argv[1]), lambda _: None, lambda: False)
print(time.perf_counter() - began)
"""


def one_conversion() -> float:
    """Seconds of converting the starter's GGUF, in a process of its own."""
    from engine.files.starter import starter_path

    with tempfile.TemporaryDirectory(prefix="specular-") as data:
        done = subprocess.run(
            [sys.executable, "-c", CONVERT, str(starter_path())],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"SPECULAR_DATA_DIR": data},
        )
    return float(done.stdout)


def one_load() -> tuple[float, float]:
    """Seconds of importing the engine, and of loading."""
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=True)
    imported, loaded = done.stdout.split()
    return float(imported), float(loaded)


def main() -> None:
    """Load a few times and print the medians."""
    one_load()
    runs = [one_load() for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)]
    imports, loads = (statistics.median(column) for column in zip(*runs, strict=True))
    note = f"median of {len(runs)} processes; importing the engine {imports:.2f} s, loading {loads:.2f} s"
    converted = statistics.median(one_conversion() for _ in range(CONVERSIONS))
    report([
        Figure("starter model ready, from the cache", imports + loads, "s", at_most=GOAL_SECONDS, note=note),
        Figure(
            "starter GGUF converted", converted, "s", at_most=CONVERSION_GOAL_SECONDS,
            note=f"median of {CONVERSIONS} processes, written to the disk",
        ),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
