"""Where the full model's matrices lie on the CPU: mapped from the file for good, or brought into slots for each pass.

A pass is one call over the whole table while everything is in memory. Where parts are streamed, it is cut where they
begin and end, and waits for them there; the kernels and the order of every sum are the same, so the bits are too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from engine.files.safetensors_header import TensorEntry
from engine.kernels.compiled import table as t
from engine.model import programme as p
from engine.model.matrix import Matrix
from engine.model.table_pass import TablePass
from engine.model.weights import HostWeights
from engine.offload.host_plan import file_cache_holds
from engine.offload.host_stream import FilePart, HostStream
from engine.offload.parts import Part
from engine.offload.plan import Plan
from engine.offload.transfers import NONE, Transfers
from engine.records import LoadProgress


@dataclass(frozen=True, slots=True)
class Segment:
    """Instructions first to last - 1 of the full table. streamed: the number in the stream that they wait for."""

    first: int
    last: int
    streamed: int | None


class HostPlacement:
    """The full model's table under a plan that can change between two passes. Not thread-safe: one owner."""

    def __init__(
        self,
        programme: p.Programme,
        table: np.ndarray,
        weights: HostWeights,
        entries: Mapping[str, TensorEntry],
        plan: Plan,
    ) -> None:
        """table: bound to `weights`, which hold what the plan has in memory; kept, and rewritten as plans change.

        Raises ModelFileError.
        """
        self.table, self._weights, self._entries = table, weights, entries
        self._users = {step.weight: row for row, step in enumerate(programme) if isinstance(step, p.Linear)}
        self._plan, self._stream = plan, self._open(plan)
        self._done = NONE  # transfers of earlier plans
        self._stopped: Callable[[], bool] = lambda: False
        self._take(plan, self._stream)

    @property
    def plan(self) -> Plan:
        """In force."""
        return self._plan

    @property
    def streams(self) -> bool:
        """Whether any part is brought in for every pass."""
        return self._stream is not None

    @property
    def transfers(self) -> Transfers:
        """Since the load, under all plans."""
        stream = self._stream  # asked for from any thread
        return self._done if stream is None else self._done.plus(stream.transfers)

    def resident(self, name: str) -> Matrix | None:
        """A matrix where the full pass reads it, or None for one that is streamed."""
        return self._weights.held(name)

    def run(self, passes: TablePass, first: int = 0, last: int | None = None) -> None:
        """Execute instructions first to last - 1 of a pass that has begun. Those of a pass come in order.

        Raises ModelFileError where a streamed part cannot be read, PassStopped within `interruptible`.
        """
        last = len(self.table) if last is None else last
        if self._stream is None:
            passes.run(self.table[first:last])
            return
        if first == 0:
            self._stream.check_files()
        for segment in self._segments:
            begin, end = max(first, segment.first), min(last, segment.last)
            if begin >= end:
                continue
            if segment.streamed is not None:
                self._stream.acquire(segment.streamed)
            passes.run(self.table[begin:end])
            if segment.streamed is not None and end == segment.last:
                self._stream.release(segment.streamed)

    @contextmanager
    def interruptible(self, stopped: Callable[[], bool]) -> Iterator[None]:
        """Within, a pass that waits for a part is given up once `stopped`."""
        before, self._stopped = self._stopped, stopped
        self._tell_stream()
        try:
            yield
        finally:
            self._stopped = before
            self._tell_stream()

    def move(self, plan: Plan, progress: Callable[[LoadProgress], None] = lambda _: None) -> None:
        """Have parts lie as another plan says, from the next pass on; progress part by part.

        Raises ModelFileError or MemoryError; all then lies as before.
        """
        if (plan.residency, plan.slots) == (self._plan.residency, self._plan.slots):
            self._plan = plan
            return
        stream = self._open(plan)
        streamed = names_of(plan.streamed)
        arriving = [part for part in plan.parts if part.index not in {s.index for s in plan.streamed}]
        arriving = [part for part in arriving if any(self._weights.held(name) is None for name in part.tensors)]
        total, done = sum(part.nbytes for part in arriving), 0
        brought: dict[str, Matrix] = {}
        try:
            for number, part in enumerate(arriving):
                progress(LoadProgress(f"Bringing in {part.name}", number, len(arriving), done, total))
                brought |= {name: self._weights.bring_in(name) for name in part.tensors}
                done += part.nbytes
        except BaseException:
            if stream is not None:
                stream.close()
            raise
        progress(LoadProgress("Moving parts of the model", len(arriving), len(arriving), total, total))
        self.close()
        self._weights.hold(brought, without=streamed)
        self._take(plan, stream)

    def close(self) -> None:
        """Give the slots back; no pass may follow."""
        if self._stream is not None:
            self._done = self._done.plus(self._stream.transfers)
            self._stream.close()
            self._stream = None

    def _open(self, plan: Plan) -> HostStream | None:
        if not plan.streamed:
            return None
        parts = [FilePart(tuple(self._entries[name] for name in part.tensors)) for part in plan.streamed]
        return HostStream(parts, plan.slots, cached=file_cache_holds(plan))

    def _take(self, plan: Plan, stream: HostStream | None) -> None:
        """Let the table's addresses say where things lie now."""
        self._plan, self._stream = plan, stream
        for part in plan.parts:
            for name in part.tensors:
                matrix = self._weights.held(name)
                if matrix is not None:
                    self.table[self._users[name], t.WEIGHT] = matrix.address
        if stream is not None:
            for number, part in enumerate(plan.streamed):
                for name, address in zip(part.tensors, stream.addresses(number), strict=True):
                    self.table[self._users[name], t.WEIGHT] = address
        self._segments = tuple(_segments(plan.streamed, self._users, len(self.table)))
        self._tell_stream()

    def _tell_stream(self) -> None:
        if self._stream is not None:
            self._stream.stopped = self._stopped


def names_of(parts: Collection[Part]) -> frozenset[str]:
    """Of all their tensors."""
    return frozenset(name for part in parts for name in part.tensors)


def _segments(streamed: tuple[Part, ...], users: Mapping[str, int], length: int) -> Iterator[Segment]:
    """The table cut where streamed parts begin and end; what reads no matrix goes with what follows."""
    at = 0
    for number, part in enumerate(streamed):
        rows = [users[name] for name in part.tensors]
        if any(at <= row < min(rows) for row in users.values()):
            yield Segment(at, min(rows), None)
            at = min(rows)
        yield Segment(at, max(rows) + 1, number)
        at = max(rows) + 1
    if at < length:
        yield Segment(at, length, None)
