"""Offload under a budget on a card: plain streaming against speculation in the same budget, and against the plan.

The model is random. Both ways have plans of their own: plain streaming keeps more of the model on the card, because it
needs no draft there.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.bench.known_shapes import Shape, tensor_bytes
from engine.bench.replay import WAYS, CardClock, ReplayReport, replay_traces
from engine.bench.traces import Trace
from engine.kernels.triton.step_memory import ROWS
from engine.offload.demands import CARD_FIXED, demands_of
from engine.offload.measure_rates import measured_rates
from engine.offload.parts import parts_of
from engine.offload.plan import Plan, Residency
from engine.offload.planner import plan
from engine.offload.rates import default_rates

PLAIN_STEPS = 20
COPY_BYTES, COPIES = 256 << 20, 20


@dataclass(frozen=True, slots=True)
class OffloadReport:
    """Bytes, seconds, and ratios of one run.

    copy_bytes_per_second: a bare pinned copy. plain_*: plain streaming with a plan of its own. share: of the bare copy
    that the streams of plain steps reach. predicted_*: what the plans said. memory: of tensors on the card, measured,
    with the draft. ways: the replays; their speed_up is over plain streaming.
    """

    shape: str
    dtype: str
    card: str
    budget: int
    copy_bytes_per_second: float
    plain_streamed: int
    plain_seconds: float
    plain_share: float
    predicted_plain_seconds: float
    streamed: int
    resident: int
    draft: int
    draft_streamed: int
    verify_seconds: float
    predicted_speed_up: float
    memory: int
    predicted_memory: int
    ways: tuple[ReplayReport, ...]


def plans(shape: Shape, budget: int, context: int | None = None) -> tuple[Plan, Plan]:
    """The plan for plain streaming and the best one, in the same budget, by what this card is measured to give.

    context: tokens that the KV cache has room for, None for as many as the shape takes.

    Raises BadSetting, with the least, for a budget that is too small.
    """
    config = shape.config
    sizes = tensor_bytes(config)
    parts = parts_of(config, sizes)
    demands = demands_of(config, sizes, parts, device="cuda", context=context or config.context)
    rates = measured_rates(default_rates("cuda"), "cuda")
    _tidy()
    return plan(parts, demands.plain(), rates, budget), plan(parts, demands, rates, budget)


def measure_offload(
    shape: Shape, dtype: torch.dtype, kv_length: int, traces: Sequence[Trace], plain: Plan, drafted: Plan
) -> OffloadReport:
    """Measure both plans on the current card. Raises SpecularError where RAM is too short for what they stream."""
    copy = bare_copy()
    clock = CardClock(shape, dtype, kv_length, plain)
    plain_seconds = clock.plain_seconds(PLAIN_STEPS)
    plain_streamed = 0 if clock.stream is None else clock.stream.pass_bytes
    del clock
    _tidy()
    before = torch.cuda.memory_allocated()
    clock = CardClock(shape, dtype, kv_length, drafted)
    memory = torch.cuda.memory_allocated() - before
    ways = tuple(
        replay_traces(clock, traces, name, cascade=cascade, siblings=siblings, plain_seconds=lambda: plain_seconds)
        for name, cascade, siblings in WAYS
        if clock.rows == ROWS or not (siblings and not cascade)
    )
    return OffloadReport(
        shape=shape.name,
        dtype=str(dtype).removeprefix("torch."),
        card=torch.cuda.get_device_name(),
        budget=drafted.budget,
        copy_bytes_per_second=copy,
        plain_streamed=plain_streamed,
        plain_seconds=plain_seconds,
        plain_share=plain_streamed / plain_seconds / copy,
        predicted_plain_seconds=plain.plain_seconds,
        streamed=drafted.bytes_of(Residency.STREAMED),
        resident=drafted.bytes_of(Residency.RESIDENT),
        draft=drafted.draft,
        draft_streamed=0 if clock.draft_stream is None else clock.draft_stream.pass_bytes,
        verify_seconds=clock.plain_seconds(PLAIN_STEPS),
        predicted_speed_up=plain.plain_seconds / drafted.speculative_seconds,
        memory=memory,
        predicted_memory=drafted.peak - CARD_FIXED,
        ways=ways,
    )


def bare_copy() -> float:
    """Bytes a second of a copy from pinned memory to the card, nothing else going on."""
    source = torch.empty(COPY_BYTES, dtype=torch.uint8).pin_memory()
    target = torch.empty_like(source, device="cuda")
    target.copy_(source, non_blocking=True)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(COPIES):
        target.copy_(source, non_blocking=True)
    torch.cuda.synchronize()
    return COPIES * COPY_BYTES / (time.perf_counter() - began)


def _tidy() -> None:
    """Give back what a model that is no longer needed held, on both sides."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
