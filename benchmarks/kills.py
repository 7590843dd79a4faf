"""Ends the program by kill -9 while it writes: python benchmarks/kills.py [KILLS] [WHOLE], by default 80 and 10.

KILLS of a process that writes the history as the window does, and the settings; WHOLE of the real window in mid-reply,
each started again. What was lost is counted from what the process had said it gave to be written.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from figures import ROOT, Figure, report

sys.path += [str(ROOT / "tests")]

from window_killer import kill_once

LOST_SECONDS = 1.0


def killed_writers(folder: Path, kills: int) -> list[dict[str, Any]]:
    """What each kill of a writer left. Exits where the killer fails."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "history_killer.py"), str(folder), str(kills), "11"],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure(kills: int, whole: int) -> list[Figure]:
    """Kill, and count."""
    with tempfile.TemporaryDirectory() as folder:
        results = killed_writers(Path(folder), kills)
    kinds = Counter(result["kind"] for result in results)
    hit = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    damaged = sum(result["integrity"] != "ok" or bool(result["told"]) for result in results)
    broken = sum(result["broken promises"] for result in results)
    promised = sum(result["promised"] for result in results)
    rng, windows = random.Random(3), []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(whole):
            windows.append(kill_once(Path(folder), rng.uniform(0.1, 1.6)))
    back = sum("is back" in seen["banner"] and bool(seen["said"]) for seen in windows)
    worst = max(result.get("lost seconds", 0.0) for result in results)
    figures = [
        Figure("files damaged or set aside", damaged, f"of {kills}", at_most=0, note=hit),
        Figure("things lost that were said to be stored", broken, f"of {promised}", at_most=0),
        Figure("the most that was lost of a reply", worst, "s", at_most=LOST_SECONDS),
    ]
    if windows:
        lost = max(seen["lost seconds"] for seen in windows)
        figures += [
            Figure("the same, the whole window killed", lost, "s", LOST_SECONDS, note=f"{whole} kills"),
            Figure("starts that had the chat and told of it", back, f"of {whole}", at_least=whole),
        ]
    return figures


def main() -> None:
    """Measure and report."""
    counts = [int(argument) for argument in sys.argv[1:]]
    report(measure(*(counts + [80, 10][len(counts) :])))


if __name__ == "__main__":
    main()
