"""Process start to the first token of `specular-cli generate`, and its peak memory: python benchmarks/first_token.py.

An optional argument is the number of runs. The first run, which may convert the GGUF, is not counted.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from figures import ROOT, Figure, report

GOAL_SECONDS, GOAL_MIB = 4.0, 900.0
TOKENS = 64
PROMPT = "Why is the sky blue?"


def one_reply() -> tuple[float, float]:
    """Seconds to the first byte of the reply, and the process's peak resident memory in MiB."""
    command = [sys.executable, "-m", "engine.cli.main", "generate", "--prompt", PROMPT, "--device", "cpu"]
    began = time.perf_counter()
    with subprocess.Popen(
        [*command, "--max-new-tokens", str(TOKENS)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        first = process.stdout.read(1)
        seconds = time.perf_counter() - began
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not first:
        raise SystemExit(f"specular-cli ended with status {process.returncode} and no reply.")
    return seconds, usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def main() -> None:
    """Answer a few times and print the medians."""
    one_reply()
    runs = [one_reply() for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)]
    seconds, memory = [run[0] for run in runs], [run[1] for run in runs]
    how = f"median of {len(runs)} starts, worst {max(seconds):.2f} s"
    peak = f"worst of {len(runs)} replies of up to {TOKENS} tokens with speculation; mapped weights counted"
    report([
        Figure("first token of specular-cli generate", statistics.median(seconds), "s", GOAL_SECONDS, note=how),
        Figure("peak resident memory of specular-cli generate", max(memory), "MiB", GOAL_MIB, note=peak),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
