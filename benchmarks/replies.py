"""Prompts and whole replies for the benchmarks that run the engine in their own process."""

from __future__ import annotations

from dataclasses import dataclass

import figures  # noqa: F401 (puts the project on the import path)

from engine.engine import Engine
from engine.records import CycleEvent, CycleRecord, Finished
from engine.settings import GenerateRequest, Message, Speculation
from engine.statistics import ReplyStatistics

PROMPTS = (
    "Write a short story about a lighthouse keeper who finds a letter in a bottle.",
    "Explain how a bicycle stays upright, for a curious ten year old.",
    "A shop sells pens at 3 dollars and books at 12 dollars. What do 4 pens and 2 books cost? Think step by step.",
    "Write a Python function that returns the n-th Fibonacci number, and explain it.",
    "List ten tips for writing a good cover letter.",
    "Summarise the causes of the First World War in two paragraphs.",
)


@dataclass(frozen=True, slots=True)
class Run:
    """One reply: its ids, its records, and the wall time of its decoding."""

    ids: tuple[int, ...]
    records: tuple[CycleRecord, ...]
    seconds: float

    @property
    def statistics(self) -> ReplyStatistics:
        """The sums over its records."""
        sums = ReplyStatistics()
        for record in self.records:
            sums = sums.with_cycle(record)
        return sums


def prompt_ids(engine: Engine, text: str) -> tuple[int, ...]:
    """A user's message through the loaded model's chat template."""
    assert engine._loaded is not None  # a benchmark may look inside
    return tuple(engine._loaded.chat_ids((Message("user", text),)))


def run(engine: Engine, ids: tuple[int, ...], tokens: int, *, plain: bool) -> Run:
    """A greedy reply of at most `tokens` tokens to a prompt of ids."""
    wanted = GenerateRequest(prompt_ids=ids, max_new_tokens=tokens, speculation=Speculation(enabled=not plain))
    records, seconds = [], 0.0
    for event in engine.generate(wanted):
        if isinstance(event, CycleEvent):
            records.append(event.record)
        elif isinstance(event, Finished):
            seconds = event.decode_seconds
    return Run(tuple(i for record in records for i in record.emitted_ids), tuple(records), seconds)
