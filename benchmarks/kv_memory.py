"""The starter model's KV cache on virtual memory: what it takes, what it costs, what switching chats saves (CPU).

    python benchmarks/kv_memory.py [ROUNDS]

On a card: specular-cli bench --shape llama2-7b --kv-report.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import replace

from figures import Figure, report
from replies import PROMPTS, prompt_ids

from engine.engine import Engine
from engine.memory.report import KvMemory
from engine.records import Finished
from engine.settings import GenerateRequest, Speculation

TOKENS = 160  # of a timed reply: two pages a layer
CHAT = 300  # tokens of the chat whose memory is told


def engine_with(virtual: bool) -> Engine:
    """The starter model on the CPU."""
    engine = Engine()
    engine.load("starter", device="cpu", virtual_memory=virtual)
    return engine


def finish(engine: Engine, request: GenerateRequest) -> Finished:
    """Make the reply; how it ended."""
    *_, last = engine.generate(request)
    assert isinstance(last, Finished), last
    return last


def memory(engine: Engine) -> KvMemory:
    """How the KV cache stands."""
    found = engine.memory()
    assert found is not None
    return found


def main() -> None:
    """Decode in turns over pages and over a plain block; then two chats and back."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    paged, plain = engine_with(True), engine_with(False)
    ids = prompt_ids(paged, PROMPTS[0])
    request = GenerateRequest(prompt_ids=ids, max_new_tokens=TOKENS, speculation=Speculation(enabled=False))
    ratios = []
    for turn in range(rounds + 1):
        first, second = (paged, plain) if turn % 2 else (plain, paged)  # whoever goes first is not favoured
        seconds = {engine: finish(engine, request).decode_seconds for engine in (first, second)}
        if turn:  # the first one warms both up
            ratios.append(seconds[paged] / seconds[plain])
    plain.close()
    paged.forget()
    long = (ids * CHAT)[:CHAT]
    alone = finish(paged, replace(request, prompt_ids=long, max_new_tokens=1))
    found = memory(paged)
    finish(paged, replace(request, prompt_ids=long[::-1], max_new_tokens=1, conversation=2))
    back = finish(paged, replace(request, prompt_ids=(*long, 5), max_new_tokens=1))
    paged.forget()
    began = time.monotonic()
    while memory(paged).mapped + memory(paged).pool:
        time.sleep(0.001)
    closed = time.monotonic() - began
    paged.close()
    report([
        Figure("decoding over pages / over a plain block", statistics.median(ratios), "×", at_most=1.01,
               note=f"median of {rounds} turns of {TOKENS} tokens"),
        Figure("mapped for 300 tokens", found.mapped / 1e6, "MB",
               note=f"of {found.full / 1e6:.0f} for a full context, {found.fragmentation / 1e6:.1f} unused"),
        Figure("share of the full context's bytes", 100 * found.mapped / found.full, "%", at_most=10),
        Figure("reading 300 tokens", alone.prefill_seconds * 1e3, "ms"),
        Figure("the same on going back to the chat", back.prefill_seconds * 1e3, "ms",
               note=f"{back.reused_tokens} rows were there"),
        Figure("memory gone after closing the chats", closed, "s", at_most=2),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
