"""The full pass over more rows than a decode step has, for models that are streamed: rows cost nothing there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from engine.kernels.triton import judge
from engine.kernels.triton.step import StepKernels
from engine.kernels.triton.step_memory import StepBuffers
from engine.kernels.triton.wide_choice import CHOSEN_PROBS, IDS, NEXT_PROBS
from engine.model.card_reports import Judgement
from engine.model.decode_graphs import DecodeGraphs


class WidePass:
    """One captured pass beside the others of a model, with buffers and a state of its own."""

    def __init__(self, graphs: DecodeGraphs, kernels: StepKernels, buffers: StepBuffers) -> None:
        """Capture it; it is as wide as the buffers are high. Writes the first rows of the range in use."""
        self._graphs, self._buffers = graphs, buffers
        self._kernels = kernels  # the graph reads and writes memory that must live as long as it does
        self._found = torch.zeros(3, buffers.height, dtype=torch.int32, device=buffers.state.device)
        self._upload = torch.zeros(judge.TOKENS + buffers.height, dtype=torch.int32).pin_memory()
        self._readback = torch.zeros(3, buffers.height, dtype=torch.int32).pin_memory()
        self._ended = torch.cuda.Event()
        self._graph = graphs.capture(partial(kernels.wide, self._found), buffers, graphs.weights)

    def judge(self, position: int, tokens: Sequence[int], range_units: int = 0) -> Judgement:
        """A full pass over the last known token, at `position`, and a chain of proposals, judged by best tokens.

        Waits for it. Rows behind the chain are garbage that the next pass there overwrites. The state that the other
        steps hand on is left as it was: DecodeGraphs.begin must come before the next of them.
        """
        upload = self._upload
        upload.zero_()
        upload[judge.POSITION], upload[judge.RANGE] = position, range_units
        upload[judge.TOKENS : judge.TOKENS + len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
        with torch.cuda.stream(self._graphs.stream):
            self._buffers.state[: len(upload)].copy_(upload, non_blocking=True)
        self._graphs.replay_full(self._graph, self._read_back)
        self._ended.synchronize()
        ids, probs = self._readback[IDS].tolist(), self._readback.view(torch.float32)
        accepted = next((i for i, token in enumerate(tokens[1:]) if token != ids[i]), len(tokens) - 1)
        return Judgement(
            chosen=tuple(ids[: len(tokens)]),
            chosen_probs=tuple(probs[CHOSEN_PROBS, : len(tokens)].tolist()),
            chain_probs=tuple(probs[NEXT_PROBS, : len(tokens) - 1].tolist()),
            accepted=accepted,
            taken=0,
        )

    def _read_back(self) -> None:
        self._readback.copy_(self._found, non_blocking=True)
        self._ended.record(self._graphs.stream)
