"""Prints how long the window takes from process start to its first paint: python benchmarks/first_paint.py [RUNS]."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from figures import ROOT, Figure, report

GOAL_SECONDS = 1.0
LINE = re.compile(r"first paint ([\d.]+) s after process start, CPU ([\d.]+) s, torch imported: (True|False)")


def one_start() -> tuple[float, float, bool]:
    """Seconds to the first paint of one start, its CPU seconds, and whether torch was imported by then."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "SPECULAR_TIMING": repr(time.time()),
            "SPECULAR_DATA_DIR": folder,
            "PYTHONPATH": str(ROOT),
        }
        environment.setdefault("QT_QPA_PLATFORM", "offscreen")
        # An empty data folder has no starter model, so nothing is loaded and the process can be ended at once.
        with subprocess.Popen(
            [sys.executable, "-m", "app.main"], env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT
        ) as process:
            line = process.stdout.readline() if process.stdout else ""
            process.kill()
    match = LINE.search(line)
    if match is None:
        raise SystemExit(f"The window did not report its first paint: {line!r}")
    return float(match[1]), float(match[2]), match[3] == "True"


def main() -> None:
    """Start the window a few times and print the figures."""
    runs = [one_start() for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)]
    seconds, busy, torch = ([run[i] for run in runs] for i in range(3))
    note = (
        f"median of {len(runs)} starts, best {min(seconds):.2f} s, CPU {min(busy):.2f} s; "
        f"torch imported by then: {'yes' if any(torch) else 'no'}"
    )
    report([Figure("first paint of the window", statistics.median(seconds), "s", at_most=GOAL_SECONDS, note=note)])


if __name__ == "__main__":
    main()
