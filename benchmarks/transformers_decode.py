"""Plain decoding against transformers (bf16, fp32), taking turns: python benchmarks/transformers_decode.py [ROUNDS].

The same converted weights, greedy, with transformers' own KV cache and `generate`; its time of one token (reading the
prompt) is taken off. Needs the test extra.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from figures import Figure, report
from replies import PROMPTS, prompt_ids, run

from engine.engine import Engine
from engine.model.threads import thread_count

TOKENS = 32


def decode_seconds(model: Any, prompt: torch.Tensor) -> float:
    """Seconds of decoding TOKENS tokens after the first."""
    times = []
    for tokens in (1, TOKENS + 1):
        began = time.perf_counter()
        length = {"min_new_tokens": tokens, "max_new_tokens": tokens}
        model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, **length)
        times.append(time.perf_counter() - began)
    return times[1] - times[0]


def main() -> None:
    """Take turns and print the medians, and what ours is of each."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(thread_count())
    engine = Engine()
    folder = Path(engine.load("starter", device="cpu").path)
    models = {
        name: transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        for name, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32))
    }
    ids = prompt_ids(engine, PROMPTS[0])
    prompt = torch.tensor([ids])
    speeds: dict[str, list[float]] = {"ours": [], **{name: [] for name in models}}
    for turn in range(rounds + 1):
        seconds = {"ours": run(engine, ids, TOKENS, plain=True).seconds}
        seconds |= {name: decode_seconds(model, prompt) for name, model in models.items()}
        for name, taken in seconds.items() if turn else ():  # the first turn warms all up
            speeds[name].append(TOKENS / taken)
    engine.close()
    how = f"median of {rounds} turns of {TOKENS} tokens, {thread_count()} threads"
    report([Figure("plain decoding", statistics.median(speeds["ours"]), "tok/s", note=how)] + [
        Figure(
            f"transformers {name}", statistics.median(speeds[name]), "tok/s",
            note=f"{statistics.median(a / b for a, b in zip(speeds['ours'], speeds[name], strict=True)):.1f}× slower",
        )
        for name in models
    ])  # fmt: skip


if __name__ == "__main__":
    main()
