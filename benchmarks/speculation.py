"""Speculation against plain decoding on six prompts, taking turns: python benchmarks/speculation.py [ROUNDS] [PROMPTS].

The starter model on the CPU, greedy, its default draft. Also checks that every reply is the plain one, id for id.
"""

from __future__ import annotations

import statistics
import sys

from figures import Figure, report
from replies import PROMPTS, prompt_ids, run

from engine.engine import Engine
from engine.statistics import ReplyStatistics

TOKENS = 96


def main() -> None:
    """Take turns on each prompt and print each speed-up and their median."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    prompts = PROMPTS[: int(sys.argv[2])] if len(sys.argv) > 2 else PROMPTS
    engine = Engine()
    engine.load("starter", device="cpu")
    run(engine, prompt_ids(engine, "Hello!"), 32, plain=False)  # learns first costs
    speeds: list[float] = []
    ratios: list[float] = []
    sums = ReplyStatistics()
    for text in prompts:
        ids = prompt_ids(engine, text)
        gains = []
        for _ in range(rounds):
            plain = run(engine, ids, TOKENS, plain=True)
            drafted = run(engine, ids, TOKENS, plain=False)
            if drafted.ids != plain.ids:
                raise SystemExit(f"Speculation changed the reply to {text!r}.")
            gains.append(plain.seconds / drafted.seconds)
            speeds.append(len(drafted.ids) / drafted.seconds)
            for record in drafted.records:
                sums = sums.with_cycle(record)
        ratios.append(statistics.median(gains))
        print(f"S {ratios[-1]:.2f}, {len(drafted.ids)} tokens: {text}", flush=True)
    engine.close()
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    how = f"{len(prompts)} prompts, {rounds} turns of up to {TOKENS} tokens each, every reply equal to the plain one"
    report([
        Figure("decoding with speculation", statistics.median(speeds), "tok/s", note=how),
        Figure("speed-up S", statistics.median(ratios), "×", at_least=1, note=spread),
        Figure("acceptance", sums.acceptance or 0.0, "", note=f"{sums.tokens_per_cycle:.2f} tokens per cycle"),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
