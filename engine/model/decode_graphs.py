"""Decode steps as CUDA graphs: one for every width of the full pass, one for the draft, captured once at load.

A replay needs no host work but its launch. The state of a conversation (position, block of tokens) lies on the card
and is handed from graph to graph; the host reads one small record a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from engine.kernels.triton import judge
from engine.kernels.triton.sampled_choice import SampledChoice
from engine.kernels.triton.step import ROWS, StepBuffers, StepKernels
from engine.recipe import Recipe
from engine.settings import Sampling


@dataclass(frozen=True, slots=True)
class CycleResult:
    """What one cycle left in the state, read back once. Times are of the card, in seconds.

    chosen: the full model's token for each row of the block. Probabilities as in JudgedBlock.
    """

    drafted: tuple[int, ...]
    drafted_probs: tuple[float, ...]
    chosen: tuple[int, ...]
    chosen_probs: tuple[float, ...]
    proposal_probs: tuple[float, ...]
    accepted: int
    draft_seconds: float
    verify_seconds: float


class DecodeGraphs:
    """Captured steps over one model's buffers. All calls come from the thread that owns the card."""

    def __init__(
        self,
        kernels: StepKernels,
        buffers: StepBuffers,
        progress: Callable[[int, int], None],
        sampled: SampledChoice | None = None,
    ) -> None:
        """Capture the full passes; with `sampled` also those that choose by settings. progress: (done, total)."""
        self._kernels, self._buffers, self._sampled = kernels, buffers, sampled
        self._stream = torch.cuda.Stream(buffers.state.device)
        self._pool = torch.cuda.graph_pool_handle()
        self._readback = torch.zeros(judge.STATE_SIZE, dtype=torch.int32).pin_memory()
        self._upload = torch.zeros(2 + ROWS, dtype=torch.int32).pin_memory()
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
        choices = [None] if sampled is None else [None, sampled]
        self._fulls: list[list[torch.cuda.CUDAGraph]] = []
        self._drafts: list[torch.cuda.CUDAGraph] = []
        for number, choice in enumerate(choices):
            graphs = []
            for rows in range(1, ROWS + 1):
                progress(number * ROWS + rows - 1, len(choices) * ROWS)
                graphs.append(self._capture(partial(kernels.full, rows, choice)))
            self._fulls.append(graphs)
        progress(len(choices) * ROWS, len(choices) * ROWS)
        self._mode = 0  # which of the choices is in use

    def choose_by(self, settings: Sampling, seed: int, history: Sequence[int]) -> None:
        """From the next step on choose tokens by these settings; history: all ids so far, for the penalty.

        Raises RuntimeError where only greedy steps were captured and the settings are not greedy.
        """
        greedy = settings.greedy and settings.repetition_penalty == 1.0
        self._mode = 0 if greedy else 1
        if greedy:
            return
        if self._sampled is None:
            raise RuntimeError("only greedy steps were captured")
        with torch.cuda.stream(self._stream):
            self._sampled.configure(settings, seed, history)

    def read_prompts_with(self, kernels: StepKernels, buffers: StepBuffers) -> None:
        """Capture the pass over a piece of a prompt, as many tokens as its own buffers are high."""
        self._prompt_buffers = buffers
        self._prompt_upload = torch.zeros(judge.TOKENS + buffers.height, dtype=torch.int32).pin_memory()
        self._prompt = self._capture(kernels.prompt)

    def read_prompt(self, position: int, tokens: Sequence[int]) -> None:
        """Fill the cache for at most `height` tokens from `position` on; rows beyond them are garbage that the next
        pass there overwrites. Queued after all that went before."""
        upload = self._prompt_upload
        self._events[2].synchronize()  # the last upload has been read
        upload.zero_()
        upload[0] = position
        upload[judge.TOKENS : judge.TOKENS + len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
        with torch.cuda.stream(self._stream):
            self._prompt_buffers.state[: len(upload)].copy_(upload, non_blocking=True)
            self._events[2].record(self._stream)
            self._prompt.replay()

    def synchronize(self) -> None:
        """Wait for all that was queued."""
        self._stream.synchronize()

    def use_recipe(self, recipe: Recipe) -> None:
        """Capture the draft step of a recipe that skips blocks."""
        skipped = recipe.skipped_attention, recipe.skipped_mlp
        choices = [None] if self._sampled is None else [None, self._sampled]
        self._drafts = [self._capture(partial(self._kernels.draft, *skipped, choice)) for choice in choices]

    def begin(self, position: int, tokens: Sequence[int]) -> None:
        """Set the state: the block's tokens, of which the first stands at `position`. Ordered before what follows."""
        self._upload[0], self._upload[1] = position, 0
        self._upload[2 : 2 + len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
        with torch.cuda.stream(self._stream):
            state = self._buffers.state
            state[:2].copy_(self._upload[:2], non_blocking=True)
            state[judge.TOKENS : judge.TOKENS + len(tokens)].copy_(self._upload[2 : 2 + len(tokens)], non_blocking=True)
            self._events[2].record(self._stream)
        self._events[2].synchronize()  # the upload buffer may be written again

    def run_full(self, rows: int) -> None:
        """Queue a full pass over the block's first `rows` tokens."""
        with torch.cuda.stream(self._stream):
            self._fulls[self._mode][rows - 1].replay()

    def run_draft(self) -> None:
        """Queue a draft step; its proposal follows the block."""
        with torch.cuda.stream(self._stream):
            self._drafts[self._mode].replay()

    def cycle(self, gamma: int) -> CycleResult:
        """Draft `gamma` tokens, judge them, and read the outcome back: one synchronisation."""
        start, middle, end = self._events
        with torch.cuda.stream(self._stream):
            start.record()
            for _ in range(gamma):
                self._drafts[self._mode].replay()
            middle.record()
            self._fulls[self._mode][gamma].replay()
            self._readback.copy_(self._buffers.state, non_blocking=True)
            end.record()
        end.synchronize()
        return self._result(gamma, start.elapsed_time(middle) / 1e3, middle.elapsed_time(end) / 1e3)

    def timed_full(self, rows: int, replays: int = 1) -> float:
        """Seconds of the card for a full pass; with several replays, of one of them in a row without pause."""
        start, _, end = self._events
        with torch.cuda.stream(self._stream):
            start.record()
            for _ in range(replays):
                self._fulls[self._mode][rows - 1].replay()
            end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3 / replays

    def logits(self, rows: int) -> torch.Tensor:
        """float32 [rows, vocabulary] on the host, of the last full pass."""
        self._stream.synchronize()
        return self._buffers.logits[:rows].cpu()

    def _result(self, gamma: int, draft: float, verify: float) -> CycleResult:
        whole = self._readback.tolist()
        floats = self._readback[judge.FLOATS :].view(torch.float32).tolist()
        return CycleResult(
            drafted=tuple(whole[judge.TOKENS + 1 : judge.TOKENS + 1 + gamma]),  # the judge replaced only the first
            drafted_probs=tuple(floats[judge.DRAFT_PROBS : judge.DRAFT_PROBS + gamma]),
            chosen=tuple(whole[judge.CHOSEN : judge.CHOSEN + gamma + 1]),
            chosen_probs=tuple(floats[judge.CHOSEN_PROBS : judge.CHOSEN_PROBS + gamma + 1]),
            proposal_probs=tuple(floats[judge.FULL_PROBS : judge.FULL_PROBS + gamma]),
            accepted=whole[judge.ACCEPTED],
            draft_seconds=draft if gamma else 0.0,
            verify_seconds=verify,
        )

    def _capture(self, launch: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Run once to compile and warm up, then capture."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            launch()
        self._stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            launch()
        return graph
