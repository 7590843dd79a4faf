"""Records the demo that ships with the application: one greedy reply of the starter model on this computer.

    python benchmarks/record_demo.py [--prompt TEXT] [--tokens 220] [--out assets/demo/starter.json]

The first reply is thrown away, so that what is shown is the engine at work and not its start. Times are those at which
the events came.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import figures  # noqa: F401 (puts the project on the import path)

from engine.engine import Engine
from engine.recording import Recording, portable, write_recording
from engine.records import Event
from engine.settings import GenerateRequest, Message, Sampling, Speculation

PROMPT = "Why is the sky blue? Explain in one short paragraph."
OUT = Path(__file__).parent.parent / "assets" / "demo" / "starter.json"
CONTEXT = 2048


def record(engine: Engine, prompt: str, tokens: int) -> Recording:
    """The reply to a prompt, with the time of each event."""
    sampling, speculation = Sampling(), Speculation()
    request = GenerateRequest(
        messages=(Message("user", prompt),), sampling=sampling, speculation=speculation, max_new_tokens=tokens
    )
    events: list[Event] = []
    times: list[float] = []
    began = time.perf_counter()
    for event in engine.generate(request):
        events.append(event)
        times.append(time.perf_counter() - began)
    assert engine.info is not None
    return Recording(prompt, portable(engine.info), sampling, speculation, tokens, tuple(events), tuple(times))


def main() -> None:
    """Record the demo and print what is in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--tokens", type=int, default=220)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    engine = Engine()
    engine.load("starter", context=CONTEXT, device="cpu")
    record(engine, "Say hello.", 32)
    recording = record(engine, options.prompt, options.tokens)
    engine.close()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_recording(options.out, recording)
    sums = recording.statistics
    print(recording.text)
    print(
        f"{sums.cycles} cycles: accepted {sums.kept}, rejected {sums.tested - sums.accepted}, corrections "
        f"{sums.corrections}, bonus {sums.bonuses}, plain {sums.plain}; {sums.tokens_per_second:.1f} tok/s, "
        f"S {sums.speed_up:.2f}; {options.out.stat().st_size / 1000:.0f} kB"
    )


if __name__ == "__main__":
    main()
