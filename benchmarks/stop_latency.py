"""How long Stop takes, in the reading of a long prompt and in a reply: python benchmarks/stop_latency.py [POSITIONS].

Stop comes from another thread, a little after a pass has begun. A stopped prompt is read on where it was left, so that
later stops come at longer and longer contexts.
"""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
from figures import Figure, report

from engine.engine import Engine
from engine.records import CycleEvent, Finished, PrefillProgress, StopReason
from engine.settings import GenerateRequest

GOAL_SECONDS = 1.0
DELAY_SECONDS = 0.01  # into the pass, whose rest is then waited for
PASSES_READ = 5  # between two stops


def stop_after(engine: Engine, request: GenerateRequest, kind: type, passes: int) -> float | None:
    """Seconds from stop() to the end of the reply, stopped after `passes` events of `kind`; None if it ended before."""
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.perf_counter())
        engine.stop()

    timer = threading.Timer(DELAY_SECONDS, press)
    seen = 0
    for event in engine.generate(request):
        seen += isinstance(event, kind)
        if seen == passes and isinstance(event, kind):
            timer.start()
        if isinstance(event, Finished):
            ended = time.perf_counter()
            stopped = event.reason is StopReason.STOPPED and bool(pressed)
    timer.cancel()
    return ended - pressed[0] if stopped else None


def main() -> None:
    """Stop a prompt again and again until it is read, then a reply, and print the worst of each."""
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
    engine = Engine()
    engine.load("starter", device="cpu")
    ids = tuple(np.random.default_rng(0).integers(1000, 40000, length).tolist())
    request = GenerateRequest(prompt_ids=ids, max_new_tokens=400)
    reading: list[float] = []
    while (seconds := stop_after(engine, request, PrefillProgress, PASSES_READ)) is not None:
        reading.append(seconds)
    replying = [stop_after(engine, request, CycleEvent, n) or 0.0 for n in (1, 3, 6, 10, 15)]
    engine.close()
    how = f"worst of {len(reading)} stops along a prompt of {length} tokens"
    report([
        Figure("Stop while a long prompt is read", max(reading), "s", GOAL_SECONDS, note=how),
        Figure("Stop in a reply", max(replying), "s", GOAL_SECONDS, note=f"worst of 5, after {length} prompt tokens"),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
