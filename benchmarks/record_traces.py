"""Records acceptance traces of the starter model over the benchmark sets, for `specular-cli bench --trace`.

    python benchmarks/record_traces.py SETS [--bits 4] [--prompts 9] [--tokens 100] [--out benchmarks/traces]

SETS is a folder of JSON lines with "turns". The first turns of prompts spread evenly over each file are answered.
One file a set: traces of at most TOKENS greedy tokens each, made by the real engine on the CPU.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import figures  # noqa: F401 (puts the project on the import path)

from engine.bench.traces import Trace, write_traces
from engine.engine import Engine
from engine.recipe import Recipe
from engine.settings import GenerateRequest, Message, Speculation

SETS = ("mt_bench", "gsm8k", "humaneval", "alpaca")
CONTEXT = 1024


def questions(path: Path, count: int) -> list[str]:
    """The first turns of `count` entries, spread evenly over the file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(lines[i * len(lines) // count])["turns"][0] for i in range(count)]


def main() -> None:
    """Record every set and print what was accepted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--prompts", type=int, default=9)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "traces")
    options = parser.parse_args()
    engine = Engine()
    engine.load("starter", context=CONTEXT, device="cpu")
    speculation = Speculation(recipe=Recipe(weight_bits=options.bits))
    options.out.mkdir(parents=True, exist_ok=True)
    for name in SETS:
        traces: list[Trace] = []
        for question in questions(options.folder / f"{name}.jsonl", options.prompts):
            wanted = GenerateRequest(
                messages=(Message("user", question),), max_new_tokens=options.tokens, speculation=speculation
            )
            traces.append(engine.record_trace(wanted, name))
        path = options.out / f"starter-{name}-{options.bits}bit.jsonl.gz"
        write_traces(path, traces)
        tokens = sum(len(trace.ids) for trace in traces)
        accepted = sum(trace.acceptance * len(trace.ids) for trace in traces)
        print(f"{path.name}: {len(traces)} replies, {tokens} tokens, acceptance {accepted / tokens:.3f}", flush=True)
    engine.close()


if __name__ == "__main__":
    main()
