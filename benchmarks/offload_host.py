"""The starter model on the CPU within a budget of RAM: what reading half of its parts for every pass costs.

    python benchmarks/offload_host.py [ROUNDS]

The files are in the system's file cache, so that parts come as fast as memory can be copied, not as a disk brings them.
"""

from __future__ import annotations

import statistics
import sys
import time

from figures import Figure, report
from replies import PROMPTS, Run, prompt_ids, run

from engine.engine import Engine
from engine.offload.plan import Residency

CONTEXT = 512
TOKENS = 64


def engine_with(budget: int | None) -> Engine:
    """The starter model on the CPU."""
    engine = Engine()
    engine.load("starter", context=CONTEXT, device="cpu", budget_bytes=budget)
    return engine


def speeds(runs: list[Run]) -> float:
    """Tokens a second, the median."""
    return statistics.median(len(one.ids) / one.seconds for one in runs)


def main() -> None:
    """Decode in turns with all in memory and with half of it; then move parts there and back."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    whole = engine_with(None)
    found = whole.offload()
    assert found is not None
    parts = sum(part.nbytes for part in found.plan.parts)
    half = engine_with(found.plan.peak + found.plan.margin - parts // 2)
    ids = prompt_ids(whole, PROMPTS[0])
    made: dict[tuple[bool, bool], list[Run]] = {}
    for turn in range(rounds + 1):
        for plain in (True, False):
            for engine in (whole, half) if turn % 2 else (half, whole):  # whoever goes first is not favoured
                one = run(engine, ids, TOKENS, plain=plain)
                if turn:  # the first one warms up
                    made.setdefault((engine is half, plain), []).append(one)
    streaming = half.offload()
    assert streaming is not None
    records = [record for one in made[True, True] for record in one.records]
    began = time.perf_counter()
    half.use_budget(None)
    all_in = time.perf_counter() - began
    plan, same = streaming.plan, len({one.ids for runs in made.values() for one in runs}) == 1
    whole.close()
    half.close()
    waits = sum(record.wait_seconds for record in records) / sum(record.seconds for record in records)
    how = f"median of {rounds} turns of {TOKENS} tokens, in turns"
    report([
        Figure("budget of the starter with half of its parts streamed", plan.budget / 1e6, "MB",
               note=f"{plan.bytes_of(Residency.STREAMED) / 1e6:.0f} MB read a pass, {plan.slots} slots"),
        Figure("the same tokens all four ways", float(same), "", at_least=1),
        Figure("plain, all in memory", speeds(made[False, True]), "tok/s", note=how),
        Figure("plain, half streamed", speeds(made[True, True]), "tok/s", note=how),
        Figure("speculative, all in memory", speeds(made[False, False]), "tok/s", note=how),
        Figure("speculative, half streamed", speeds(made[True, False]), "tok/s", note=how),
        Figure("gain of speculation, half streamed", speeds(made[True, False]) / speeds(made[True, True]), "×"),
        Figure("share of a streamed plain step that stood waiting", 100 * waits, "%",
               note="the rest of what it costs is the copies beside the kernels"),
        Figure("moving half of the parts in", all_in * 1e3, "ms"),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
