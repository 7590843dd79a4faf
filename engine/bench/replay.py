"""Acceptance traces replayed on a card: the engine's own stepper and controller, the real kernels of a model's shape.

Only what the tokens *are* comes from the trace: every draft step and every full pass runs on the card, with random
weights, always from the same cache length on. Speed-ups are wall time over wall time, bookkeeping included.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from engine.bench.random_draft import random_draft
from engine.bench.shapes import Shape, random_model
from engine.bench.simulate import Replayed, replay
from engine.bench.traces import Trace
from engine.kernels.triton.choose_tiles import choose_tiles
from engine.kernels.triton.draft_memory import MAX_ROWS, DraftBuffers
from engine.kernels.triton.draft_step import DraftKernels
from engine.kernels.triton.sampled_choice import SampledChoice
from engine.kernels.triton.step import StepKernels
from engine.kernels.triton.step_memory import ROWS, StepBuffers
from engine.kernels.triton.wide_choice import WIDE_ROWS
from engine.model.card_copy import CardCopy
from engine.model.card_weights import CardWeights
from engine.model.decode_graphs import DecodeGraphs
from engine.model.fused import shapes_of
from engine.model.wide_pass import WidePass
from engine.offload.plan import Plan
from engine.offload.weight_stream import WeightStream
from engine.settings import Sampling
from engine.speculation.controller import GammaController

POSITIONS = 4096
PLAIN_TOKENS = 200


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """One way of speculating over some traces. speed_up: wall time of plain decoding over wall time of the replay."""

    name: str
    acceptance: float
    tokens: int
    tokens_per_cycle: float
    draft_cost: float
    speed_up: float
    looked_up: int
    siblings_taken: int


class CardClock:
    """Implements engine.bench.simulate.Clock by doing the passes: seconds of the host for each."""

    def __init__(self, shape: Shape, dtype: torch.dtype, kv_length: int, plan: Plan | None = None) -> None:
        """plan: which parts of the model are streamed, and whether there is a draft; None: no part, and one."""
        device = torch.device("cuda", torch.cuda.current_device())
        config = shape.config
        cache_shape = (POSITIONS, 2, config.kv_heads, config.head_dim)
        caches = [torch.randn(cache_shape, dtype=dtype, device=device) for _ in range(config.layers)]
        model = random_model(config, dtype, device, caches, POSITIONS)
        copy = random_draft(config, model) if plan is None or plan.draft else None
        self.stream: WeightStream | None = None
        self.draft_stream: WeightStream | None = None
        if plan is not None:
            self._placed = CardWeights(plan.parts, plan, device)
            model = self._placed.hold(model)
            self.stream = self._placed.stream
            if copy is not None:
                self._copy = CardCopy(plan.draft_placement, device)
                self._copy.hold(copy)
                copy, self.draft_stream = self._copy.model(), self._copy.stream
        tiles, _ = choose_tiles(shapes_of(config), dtype, device)
        buffers = StepBuffers(config, tiles, POSITIONS, model)
        kernels = StepKernels(config, model, buffers, tiles, config.vocabulary, self.stream)
        sampled = SampledChoice(buffers.state, buffers.floats, buffers.logits, config.vocabulary)
        self._graphs = DecodeGraphs(
            kernels, buffers, lambda done, total: None, sampled, siblings=True, weights=self.stream
        )
        if copy is not None:
            memory = DraftBuffers(config, copy, buffers.state, buffers.logits, buffers.report)
            draft = DraftKernels(config, copy, memory, config.vocabulary, weights=self.draft_stream)
            self._graphs.use_draft(draft.step, MAX_ROWS, lambda done, total: None, self.draft_stream)
        self.rows = ROWS
        if self.stream is not None and self.draft_stream is None:
            wide = StepBuffers(config, tiles, POSITIONS, model, WIDE_ROWS)
            wide_kernels = StepKernels(config, model, wide, tiles, config.vocabulary, self.stream)
            self._wide = WidePass(self._graphs, wide_kernels, wide)
            self.rows = WIDE_ROWS
        self._kv_length, self._drafted = kv_length, 0
        self._graphs.begin(kv_length, [5])

    def choose_by(self, settings: Sampling) -> None:
        """Choose tokens by these settings from now on."""
        self._graphs.choose_by(settings, 0, ())

    def draft(self, rows: int) -> float:
        """See Clock.draft."""
        began = time.perf_counter()
        if self._graphs.is_ahead and (self._drafted or rows > 1):
            self._graphs.begin(self._kv_length, [5])
        self._graphs.draft(self._drafted, [7] * (rows - 1))
        # What was proposed and not agreed with takes no place in a block: it never grows beyond what is judged.
        self._drafted = min(self._drafted + rows, self.rows - MAX_ROWS)
        return time.perf_counter() - began

    def verify(self, rows: int, siblings: int) -> float:
        """See Clock.verify. Whatever the random model says, the cycle after it starts from the same length."""
        began = time.perf_counter()
        if self._graphs.is_ahead:
            self._graphs.begin(self._kv_length, [5])
        chain = rows - 1 - siblings
        if chain < ROWS:
            self._graphs.judge([7] * chain, min(self._drafted, chain), [(0, 9)] * siblings)
        else:
            self._wide.judge(self._kv_length, [5] + [7] * chain)
        seconds = time.perf_counter() - began
        self._graphs.begin(self._kv_length, [5])
        if self._drafted:
            self._graphs.draft_ahead()
        self._drafted = 0
        return seconds

    def step_seconds(self, rows: int) -> float:
        """Seconds of the card for a draft step, median of replays in a row."""
        seconds = []
        for _ in range(5):
            self._graphs.begin(self._kv_length, [5] * 16)
            seconds.append(self._graphs.timed(lambda: self._graphs.run_draft(rows), 3))
        return statistics.median(seconds)

    def plain_seconds(self, tokens: int = PLAIN_TOKENS) -> float:
        """Wall seconds of a plain step, one after the other as a reply makes them: median."""
        self._graphs.begin(self._kv_length, [5])
        seconds = []
        for _ in range(tokens):
            began = time.perf_counter()
            self._graphs.judge((), 0, ())
            seconds.append(time.perf_counter() - began)
        self._graphs.begin(self._kv_length, [5])
        return statistics.median(seconds)


WAYS = (("chain", False, False), ("chain, siblings", False, True), ("chain, siblings, look-ups", True, True))


def measure_replay(
    shape: Shape, dtype: torch.dtype, kv_length: int, traces: Sequence[Trace]
) -> tuple[ReplayReport, ...]:
    """Replay the traces on a random model of the shape, in each way of speculating. The model has `shape`'s layers."""
    clock = CardClock(shape, dtype, kv_length)
    return tuple(
        replay_traces(clock, traces, name, cascade=cascade, siblings=siblings) for name, cascade, siblings in WAYS
    )


def replay_traces(
    clock: CardClock,
    traces: Sequence[Trace],
    name: str,
    *,
    cascade: bool,
    siblings: bool,
    plain_seconds: Callable[[], float] | None = None,
) -> ReplayReport:
    """Make every traced reply again on the card and compare with as many plain steps.

    plain_seconds: of a plain step, where it is another model's than the clock's.
    """
    measure = plain_seconds or clock.plain_seconds
    siblings = siblings and clock.rows == ROWS  # a wide pass has none
    plain = measure()
    began = time.perf_counter()
    made: Replayed = replay(
        traces,
        clock,
        GammaController(clock.rows - 1),
        cascade=cascade,
        siblings=siblings,
        most_siblings=ROWS - 2 if siblings else 0,
        draft_rows=MAX_ROWS,
        rows=clock.rows,
    )
    seconds = time.perf_counter() - began
    plain = (plain + measure()) / 2
    return ReplayReport(
        name=name,
        acceptance=made.acceptance,
        tokens=made.tokens,
        tokens_per_cycle=made.tokens_per_cycle,
        draft_cost=clock.step_seconds(1) / plain,
        speed_up=made.tokens * plain / seconds,
        looked_up=made.looked_up,
        siblings_taken=made.taken,
    )
