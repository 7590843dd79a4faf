"""Runs every benchmark and prints one table and one line of JSON: python benchmarks/run_all.py [F16.gguf] [OUT.json].

F16.gguf is what llama.cpp runs on (made from the starter model where it does not exist); without it, or without
llama-cpp-python, that comparison is left out. A machine that does other work gives other figures.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from figures import MARK, ROOT, Figure, conditions, table

SCRIPTS = (
    "starter_load",
    "load_speed",
    "first_paint",
    "first_token",
    "speculation",
    "stop_latency",
    "kv_memory",
    "ui_stream",
    "ui_markdown",
    "cockpit_cost",
    "history",
    "kills",
)


def figures_of(script: str, *arguments: str) -> list[Figure]:
    """The figures of one benchmark, run in a process of its own. Exits with its output where it fails."""
    print(f"{script} …", file=sys.stderr, flush=True)
    command = [sys.executable, str(ROOT / "benchmarks" / f"{script}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not lines:
        raise SystemExit(f"{script} failed:\n{done.stdout}{done.stderr}")
    return [Figure(**values) for values in json.loads(lines[-1].removeprefix(MARK))]


def main() -> None:
    """Run all, print the table, and write the JSON where a second argument says."""
    model = sys.argv[1] if len(sys.argv) > 1 else None
    figures = [figure for script in SCRIPTS for figure in figures_of(script)]
    if model and importlib.util.find_spec("llama_cpp"):
        figures += figures_of("plain_decode", model)
    about = conditions()
    print(table(figures))
    print("; ".join(about.values()))
    text = json.dumps({
        "conditions": about,
        "figures": {figure.what: {"value": figure.value, "unit": figure.unit, "met": figure.met} for figure in figures},
    }, ensure_ascii=False)  # fmt: skip
    print(text)
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
