"""MLPs of a card's model that the CPU computes, from the model's files: for links that are slower than the CPU.

The kernels are those of models on the CPU: a row's bits depend neither on the number of rows nor on threads, so that
plain steps and verify passes agree on what is computed here as they do on the card.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import torch

from engine.files.config import ModelConfig
from engine.files.folder import ModelFolder
from engine.kernels.compiled.binding import bind
from engine.kernels.compiled.memory import Weights
from engine.kernels.compiled.team import Team
from engine.model import programme as p
from engine.model.compiled_memory import allocate
from engine.model.table_pass import TablePass
from engine.model.threads import thread_count
from engine.model.weights import HostWeights
from engine.offload.parts import MLP, part_index

ROWS = 64  # of the widest pass: a piece of a prompt
TIMED = 256 << 20  # bytes of weights that speed is measured with: more than any cache holds
TIMED_ROWS, ROUNDS = 16, 3

Tensor = torch.Tensor


class HostMlps:
    """Implements engine.kernels.triton.host_blocks.HostBlocks."""

    def __init__(self, folder: ModelFolder, layers: Collection[int]) -> None:
        """layers: whose MLPs are computed here; nothing else of the model is read."""
        config = folder.config
        self._hidden = config.hidden_size
        programme = p.build(config, frozenset(folder.entries))
        steps = {layer: _mlp_of(programme, layer) for layer in layers}
        wanted = {name for mlp in steps.values() for name in p.matrices(mlp)}
        self._nbytes = sum(folder.entries[name].nbytes for name in wanted)
        others = {name for name, entry in folder.entries.items() if len(entry.shape) > 1} - wanted
        self._weights = HostWeights(folder, lambda _: None, lambda: False, others)
        self._team = Team(thread_count())
        self._pass = TablePass(self._team)
        self._memory = allocate(config, 8, (), self._team.size, ROWS)
        own = self._weights.matrix
        weights = Weights(own, own, self._weights.vector, neuron_major=own, chosen=())
        self._tables = {
            part_index(layer, MLP): bind(mlp, config, self._memory, weights) for layer, mlp in steps.items()
        }

    @classmethod
    def of(cls, folder: ModelFolder, layers: Collection[int]) -> HostMlps | None:
        """None where there are no such layers."""
        return cls(folder, layers) if layers else None

    @property
    def nbytes(self) -> int:
        """Bytes of weights that a pass reads here."""
        return self._nbytes

    def computes(self, part: int) -> bool:
        """See HostBlocks."""
        return part in self._tables

    def add(self, part: int, stream: Tensor) -> tuple[Tensor, Tensor]:
        """See HostBlocks."""
        rows = stream.shape[0]
        buffers = self._memory.buffers
        buffers[p.Buffer.STREAM][:rows] = stream.numpy()
        self._pass.begin([0] * rows, 0, 0)
        self._pass.run(self._tables[part])
        after = buffers[p.Buffer.STREAM][:rows] + buffers[p.Buffer.DELTA][:rows]
        # Row by row, so that a row's sum is the same in any company.
        squares = np.array([np.square(row, dtype=np.float64).sum() for row in after], np.float32)
        return torch.from_numpy(after), torch.from_numpy(squares)

    def seconds(self, rows: int) -> float:
        """Of the fastest of a few passes through all parts here, after one that warms up."""
        stream = torch.ones(rows, self._hidden)
        times = []
        for _ in range(1 + ROUNDS):
            began = time.perf_counter()
            for part in self._tables:
                self.add(part, stream)
            times.append(time.perf_counter() - began)
        return max(min(times[1:]), 1e-9)

    def close(self) -> None:
        """End the threads."""
        self._team.close()


@dataclass(frozen=True, slots=True)
class HostSpeed:
    """rate: bytes of weights a second, of a pass over one row. row: share of it that each further row adds."""

    rate: float
    row: float


def suits(config: ModelConfig) -> bool:
    """Whether the CPU can take a share of such a model: its kernels work on eights, and here upon gated MLPs only."""
    return config.family != "opt" and config.hidden_size % 8 == 0 and config.intermediate_size % 8 == 0


def measured_speed(folder: ModelFolder) -> HostSpeed:
    """How fast the CPU computes the model's MLPs, by some of them; a fraction of a second once they are in RAM."""
    config = folder.config
    one = sum(entry.nbytes for name, entry in folder.entries.items() if ".layers.0.mlp." in name)
    mlps = HostMlps(folder, range(min(config.layers, -(-TIMED // max(1, one)))))
    try:
        single, several = (mlps.seconds(rows) for rows in (1, TIMED_ROWS))
        return HostSpeed(mlps.nbytes / single, max(0.0, several / single - 1) / (TIMED_ROWS - 1))
    finally:
        mlps.close()


def _mlp_of(programme: p.Programme, layer: int) -> p.Programme:
    """A layer's MLP with the norm before it, upon a stream that has all that came before."""
    found = p.stages(programme)
    place = next(index for index, stage in enumerate(found) if stage.name == f"layer {layer}'s MLP")
    steps = programme[found[place - 1].last + 1 : found[place].last + 1]
    return tuple(_quiet(step) for step in steps)


def _quiet(step: p.Instruction) -> p.Instruction:
    """The same without adding what a block before left, and without statistics, which are the draft's on a CPU."""
    if isinstance(step, p.AddNorm):
        return replace(step, adds=False)
    return replace(step, observes=False) if isinstance(step, p.GatedSilu) else step
