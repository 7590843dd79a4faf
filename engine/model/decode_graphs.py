"""Decode steps as CUDA graphs: one for every width of the full pass and of the draft, captured once at load.

A replay needs no host work but its launch. The state of a conversation (position, block of tokens) lies on the card
and is handed from graph to graph. The host reads what a draft step reports from pinned memory, and one small record
after the full pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch

from engine.kernels.triton import judge
from engine.kernels.triton.sampled_choice import SampledChoice
from engine.kernels.triton.step import StepKernels
from engine.kernels.triton.step_memory import ROWS, StepBuffers
from engine.model.card_reports import DraftReport, Judgement, read_judgement, read_report
from engine.offload.weight_stream import WeightStream
from engine.settings import Sampling

GREEDY, SAMPLED = 0, 1  # how tokens are chosen: the best one; by settings
DraftLaunch = Callable[[int, SampledChoice | None], None]  # rows, and how to choose tokens (None: the best)


class Pass(Protocol):
    """Something that can be queued on the current stream again and again."""

    def replay(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Launched:
    """A pass that is not captured."""

    launch: Callable[[], None]

    def replay(self) -> None:
        """Launch its kernels."""
        self.launch()


class DecodeGraphs:
    """Captured steps over one model's buffers. All calls come from the thread that owns the card."""

    def __init__(
        self,
        kernels: StepKernels,
        buffers: StepBuffers,
        progress: Callable[[int, int], None],
        sampled: SampledChoice | None = None,
        *,
        siblings: bool = False,
        weights: WeightStream | None = None,
        mode: int = GREEDY,
        range_units: int = 0,
    ) -> None:
        """Capture the full passes; with `sampled` also those that choose by settings. progress: (done, total).

        siblings: also those whose last rows may be siblings. weights: what the kernels' full passes bring parts of the
        model in with. mode, range_units: how tokens are chosen, and where the rows lie that capturing may write.
        """
        self._buffers, self._sampled, self.weights = buffers, sampled, weights
        self.stream = torch.cuda.Stream(buffers.state.device)
        self._pool = torch.cuda.graph_pool_handle()
        self._captures = kernels.captures
        self._readback = torch.zeros(judge.STATE_SIZE, dtype=torch.int32).pin_memory()
        # One for each kind of upload: each is read before the next of its kind, since steps are waited for.
        self._start, self._proposals, self._block = (torch.zeros(64, dtype=torch.int32).pin_memory() for _ in range(3))
        self._begun, self._ended, self._started = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        self._ahead: torch.cuda.Event | None = None  # of a draft step queued before it was asked for
        self._next_ahead = torch.cuda.Event()
        launches: list[Callable[[], None]] = [partial(kernels.full, rows) for rows in range(1, ROWS + 1)]
        if sampled is not None:
            launches += [partial(kernels.full, rows, sampled) for rows in range(1, ROWS + 1)]
        if siblings:
            launches += [partial(kernels.full, rows, siblings=True) for rows in range(3, ROWS + 1)]
        self._range = range_units  # of the last state that was set, see judge.RANGE
        self._held: list[object] = [launches]  # graphs read and write memory that must live as long as they do
        graphs: list[Pass] = []
        for number, launch in enumerate(launches):
            progress(number, len(launches))
            graphs.append(self.capture(launch, buffers, weights))
        if not self._captures:
            for launch in (launches[0], launches[1], launches[ROWS - 1], launches[-1]):
                self._run_once(launch, buffers, weights)  # every kernel is compiled before a reply needs it
        progress(len(launches), len(launches))
        modes = 1 if sampled is None else 2
        self._fulls = [graphs[mode * ROWS : (mode + 1) * ROWS] for mode in range(modes)]
        self._with_siblings = dict(zip(range(3, ROWS + 1), graphs[modes * ROWS :], strict=False))
        self._drafts: list[list[Pass]] = []
        self.mode = mode

    @property
    def most_siblings(self) -> int:
        """Sibling rows that the next full pass can carry."""
        return ROWS - 2 if self._with_siblings and self.mode == GREEDY else 0

    @property
    def greedy(self) -> bool:
        """Whether steps take the best token."""
        return self.mode == GREEDY

    @property
    def draft_rows(self) -> int:
        """Rows of the widest draft step."""
        return len(self._drafts[0]) if self._drafts else 0

    def choose_by(self, settings: Sampling, seed: int, history: Sequence[int]) -> None:
        """From the next step on choose tokens by these settings; history: all ids so far, for the penalty.

        Raises RuntimeError where only greedy steps were captured and the settings are not greedy.
        """
        greedy = settings.greedy and settings.repetition_penalty == 1.0
        self.mode = GREEDY if greedy else SAMPLED
        if greedy:
            return
        if self._sampled is None:
            raise RuntimeError("only greedy steps were captured")
        with torch.cuda.stream(self.stream):
            self._sampled.configure(settings, seed, history)

    def read_prompts_with(self, kernels: StepKernels, buffers: StepBuffers) -> None:
        """Capture the pass over a piece of a prompt, as many tokens as its own buffers are high."""
        self._prompt_buffers = buffers
        self._held.append(kernels)
        self._prompt_upload = torch.zeros(judge.TOKENS + buffers.height, dtype=torch.int32).pin_memory()
        self._prompt = self.capture(kernels.prompt, buffers, self.weights)
        if not self._captures:
            self._run_once(kernels.prompt, buffers, self.weights)

    def read_prompt(self, position: int, tokens: Sequence[int], range_units: int = 0) -> None:
        """Fill the cache for at most `height` tokens from `position` on; rows beyond them are garbage that the next
        pass there overwrites. Queued after all that went before."""
        upload = self._prompt_upload
        self._started.synchronize()  # the last upload has been read
        upload.zero_()
        upload[judge.POSITION], upload[judge.RANGE] = position, range_units
        upload[judge.TOKENS : judge.TOKENS + len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
        with torch.cuda.stream(self.stream):
            self._prompt_buffers.state[: len(upload)].copy_(upload, non_blocking=True)
            self._started.record(self.stream)
            self.replay_full(self._prompt)

    def synchronize(self) -> None:
        """Wait for all that was queued."""
        self.stream.synchronize()

    def use_draft(
        self,
        launch: DraftLaunch,
        rows: int,
        progress: Callable[[int, int], None],
        weights: WeightStream | None = None,
        *,
        full: bool = False,
    ) -> None:
        """Capture the draft steps of a recipe, of 1 to `rows` rows. progress: (done, total).

        weights: what brings in the parts that they read, their own or the full model's; None where all are there.
        full: they run the full model's kernels.
        """
        self.synchronize()
        self._ahead = None
        choices = [None] if self._sampled is None else [None, self._sampled]
        drafts: list[list[Pass]] = [[] for _ in choices]
        for count in range(1, rows + 1):
            progress(count - 1, rows)
            for graphs, choice in zip(drafts, choices, strict=True):
                graphs.append(self.capture(partial(launch, count, choice), self._buffers, weights, full=full))
        progress(rows, rows)
        self._drafts, self._draft_launch, self._draft_weights = drafts, launch, weights

    def begin(self, position: int, tokens: Sequence[int], range_units: int = 0) -> None:
        """Set the state: the block's tokens, of which the first stands at `position`. Ordered before what follows.

        range_units: where the conversation's rows lie, see judge.RANGE.
        """
        self._started.synchronize()  # the last upload has been read
        self._ahead = None
        start = self._start.numpy()
        start[judge.POSITION], start[judge.CURSOR], start[judge.RANGE] = position, 0, range_units
        self._range = range_units
        start[judge.TOKENS : judge.TOKENS + len(tokens)] = tokens
        with torch.cuda.stream(self.stream):
            self._upload(self._start, 0, judge.TOKENS + len(tokens))
            self._started.record(self.stream)

    def run_full(self, rows: int) -> None:
        """Queue a full pass over the block's first `rows` tokens."""
        with torch.cuda.stream(self.stream):
            self.replay_full(self._fulls[self.mode][rows - 1])

    def run_draft(self, rows: int = 1) -> None:
        """Queue a draft step over the token at the cursor and rows - 1 proposals behind it."""
        with torch.cuda.stream(self.stream):
            self._replay_draft(rows)

    def draft(self, drafted: int, proposals: Sequence[int]) -> DraftReport:
        """One draft step behind `drafted` proposals of the block, checking these; waits for it."""
        if self._ahead is not None and drafted == 0 and not proposals:
            self._ahead.synchronize()
            self._ahead = None
            return read_report(self._buffers.report)
        with torch.cuda.stream(self.stream):
            if proposals:
                first = judge.TOKENS + 1 + drafted
                self._proposals.numpy()[first : first + len(proposals)] = proposals
                self._upload(self._proposals, first, first + len(proposals))
            self._replay_draft(1 + len(proposals))
            self._ended.record(self.stream)
        self._ended.synchronize()
        return read_report(self._buffers.report)

    def draft_ahead(self) -> None:
        """Queue the first draft step of the next cycle, so that the card works while the host keeps its books.

        `draft` then only waits for it; where the cycle begins otherwise, `begin` must come first.
        """
        with torch.cuda.stream(self.stream):
            self._replay_draft(1)
            self._next_ahead.record(self.stream)
        self._ahead = self._next_ahead

    @property
    def is_ahead(self) -> bool:
        """Whether a draft step was queued that nobody has waited for."""
        return self._ahead is not None

    def judge(self, chain: Sequence[int], checked: int, siblings: Sequence[tuple[int, int]]) -> Judgement:
        """The full pass over a chain of proposals, of which the first `checked` are on the card, and siblings.

        siblings: (place, id) each. Waits for the pass and reads the outcome back.
        """
        height = 1 + len(chain)
        rows = height + len(siblings)
        with torch.cuda.stream(self.stream):
            if len(chain) > checked or siblings:
                block, first = self._block.numpy(), judge.TOKENS + 1
                block[first : first + len(chain)] = chain
                block[first + len(chain) : first + rows - 1] = [token for _, token in siblings]
                block[judge.PLACES : judge.PLACES + height] = range(height)
                block[judge.PLACES + height : judge.PLACES + rows] = [place + 1 for place, _ in siblings]
                self._upload(self._block, first, judge.PLACES + rows)
            if siblings:
                self._block[judge.CHAIN] = height
                self._upload(self._block, judge.CHAIN, judge.CHAIN + 1)
                self.replay_full(self._with_siblings[rows], self._read_state)
            else:
                self.replay_full(self._fulls[self.mode][rows - 1], self._read_state)
        self._ended.synchronize()
        return read_judgement(self._readback, height, rows, siblings=bool(siblings))

    def _read_state(self) -> None:
        self._readback.copy_(self._buffers.state, non_blocking=True)
        self._ended.record(self.stream)

    def timed(self, replay: Callable[[], None], replays: int = 1) -> float:
        """Seconds of the card for something queued; of several in a row without pause, of one of them."""
        with torch.cuda.stream(self.stream):
            self._begun.record(self.stream)
            for _ in range(replays):
                replay()
            self._ended.record(self.stream)
        self._ended.synchronize()
        return self._begun.elapsed_time(self._ended) / 1e3 / replays

    def logits(self, rows: int) -> torch.Tensor:
        """float32 [rows, vocabulary] on the host, of the last pass."""
        self.stream.synchronize()
        return self._buffers.logits[:rows].cpu()

    def _upload(self, source: torch.Tensor, first: int, last: int) -> None:
        self._buffers.state[first:last].copy_(source[first:last], non_blocking=True)

    def replay_full(self, graph: Pass, after: Callable[[], None] = lambda: None) -> None:
        """Queue a full pass on the stream of the graphs, then `after` on it, then the parts that the next begins with.

        Those go on while the host, which waits for what `after` records, drafts.
        """
        with torch.cuda.stream(self.stream):
            self._replay(graph, self.weights, after)

    def _replay_draft(self, rows: int) -> None:
        self._replay(self._drafts[self.mode][rows - 1], self._draft_weights)

    @staticmethod
    def _replay(graph: Pass, weights: WeightStream | None, after: Callable[[], None] = lambda: None) -> None:
        if weights is not None:
            weights.wait()
        graph.replay()
        after()
        if weights is not None:
            weights.prefetch()

    def capture(
        self,
        launch: Callable[[], None],
        buffers: StepBuffers,
        weights: WeightStream | None = None,
        *,
        full: bool = True,
    ) -> Pass:
        """Run once to compile and warm up, then capture. Writes the first rows of the range in use.

        What cannot be captured is launched anew for every pass, kernel by kernel: what it waits for takes longer.

        buffers: whose state the pass goes by. weights: what brings in parts for the pass. full: it runs the full
        model's kernels.
        """
        if full and not self._captures:
            return Launched(launch)
        self._run_once(launch, buffers, weights)
        if weights is not None and not weights.captures:
            return Launched(launch)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self.stream):
            launch()
        return graph

    def _run_once(self, launch: Callable[[], None], buffers: StepBuffers, weights: WeightStream | None) -> None:
        """Compile and warm up what a pass launches."""
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream), nullcontext() if weights is None else weights.dry():
            buffers.state.zero_()  # what it stood at last may be rows that count
            buffers.state[judge.RANGE] = self._range
            launch()
        self.stream.synchronize()
