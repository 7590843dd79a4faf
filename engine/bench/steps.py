"""Times of decode steps on a card: plain, every verify width, the overhead of a cycle, against the copy bandwidth."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch

from engine.bench.random_draft import random_draft
from engine.bench.shapes import Shape, matrix_bytes, random_model
from engine.kernels.triton.choose_tiles import choose_tiles, tune
from engine.kernels.triton.draft_memory import MAX_ROWS, DraftBuffers, DraftModel
from engine.kernels.triton.draft_step import DraftKernels
from engine.kernels.triton.step import StepKernels
from engine.kernels.triton.step_memory import FusedModel, StepBuffers
from engine.kernels.triton.tiles import Role, Tile
from engine.model.decode_graphs import DecodeGraphs
from engine.model.fused import shapes_of

POSITIONS = 1024
WIDTHS = (1, 2, 3, 4, 5, 6, 8, 12, 16)
REPEATS, REPLAYS, DRAFT_REPLAYS = 7, 10, 3  # a draft step's block may hold sixteen tokens


@dataclass(frozen=True, slots=True)
class StepReport:
    """Seconds and ratios of one shape. Ratios come from one run; `bandwidth_share` counts weight bytes only.

    verify: rows -> time of a pass over them / time of a plain step. draft: the same of a four-bit draft step, c first.
    overhead_seconds: wall time of a whole plain cycle from the host, read-back included, beyond that of its kernels.
    """

    shape: str
    dtype: str
    card: str
    layers: int
    kv_length: int
    weight_bytes: int
    copy_bytes_per_second: float
    step_seconds: float
    bandwidth_share: float
    verify: dict[int, float]
    draft: dict[int, float]
    overhead_seconds: float
    rows_equal: bool
    tiles: dict[str, str]


def copy_bandwidth(device: torch.device, size: int = 2**32) -> float:
    """Bytes read plus bytes written per second by a large device-to-device copy, the best of several."""
    source = torch.randint(0, 255, (size,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    return 2 * size / min(_timed(lambda: target.copy_(source), 4) for _ in range(5))


def measure_shape(shape: Shape, dtype: torch.dtype, kv_length: int, *, tunes: bool = False) -> StepReport:
    """Build a random model of the shape on the current card and measure its steps."""
    device = torch.device("cuda", torch.cuda.current_device())
    ceiling = copy_bandwidth(device)
    cache_shape = (POSITIONS, 2, shape.config.kv_heads, shape.config.head_dim)
    caches = [torch.randn(cache_shape, dtype=dtype, device=device) for _ in range(shape.config.layers)]
    model = random_model(shape.config, dtype, device, caches, POSITIONS)
    bench = _Bench(shape, model, kv_length)
    shapes = shapes_of(shape.config)
    tiles = tune(shapes, dtype, device, bench.plain_seconds) if tunes else choose_tiles(shapes, dtype, device)[0]
    graphs, seconds, drafts = bench.widths(tiles)
    item = torch.finfo(dtype).bits // 8
    read = matrix_bytes(shape.config, shape.reported_layers, item)
    return StepReport(
        shape=shape.name,
        dtype=str(dtype).removeprefix("torch."),
        card=torch.cuda.get_device_name(device),
        layers=shape.reported_layers,
        kv_length=kv_length,
        weight_bytes=read,
        copy_bytes_per_second=ceiling,
        step_seconds=seconds[1],
        bandwidth_share=read / seconds[1] / ceiling,
        verify={rows: seconds[rows] / seconds[1] for rows in WIDTHS},
        draft={rows: taken / seconds[1] for rows, taken in drafts.items()},
        overhead_seconds=bench.overhead(graphs),
        rows_equal=bench.rows_equal(graphs),
        tiles={role.value: f"{t.block_n}x{t.block_k}w{t.warps}s{t.stages}a{t.ahead}" for role, t in tiles.items()},
    )


class _Bench:
    """One random model; times its steps for any tiles."""

    def __init__(self, shape: Shape, model: FusedModel, kv_length: int) -> None:
        self._shape, self._model, self._kv_length = shape, model, kv_length
        self._tokens = torch.randint(0, shape.config.vocabulary, (16,)).tolist()

    def plain_seconds(self, tiles: dict[Role, Tile]) -> float:
        """A plain step of a model cut to four layers: enough for tuning, and quick."""
        kernels, buffers = self._kernels(tiles, min(4, len(self._model.layers)))
        self._begin(buffers)
        return _graph_seconds(lambda: kernels.full(1), 20, 3)

    def widths(self, tiles: dict[Role, Tile]) -> tuple[DecodeGraphs, dict[int, float], dict[int, float]]:
        """Captured graphs of the whole shape; seconds of each width of full passes and of draft steps.

        Extrapolated to the reported layers.
        """
        layers = len(self._model.layers)
        copy = random_draft(self._shape.config, self._model)
        graphs = self._graphs(tiles, copy, layers)
        full, draft = self._times(graphs)
        extra = self._shape.reported_layers - layers
        if extra:
            fewer = layers // 3
            few_full, few_draft = self._times(self._graphs(tiles, copy, fewer))
            share = extra / (layers - fewer)
            full = {rows: seconds + share * (seconds - few_full[rows]) for rows, seconds in full.items()}
            draft = {rows: seconds + share * (seconds - few_draft[rows]) for rows, seconds in draft.items()}
        return graphs, full, draft

    def overhead(self, graphs: DecodeGraphs) -> float:
        """Median wall time of a plain cycle from the host minus the card's time for it."""
        card, wall = self._time(graphs, partial(graphs.run_full, 1)), []
        for _ in range(50):
            graphs.begin(self._kv_length, self._tokens[:1])
            began = time.perf_counter()
            graphs.judge((), 0, ())
            wall.append(time.perf_counter() - began)
        return statistics.median(wall) - card

    def rows_equal(self, graphs: DecodeGraphs) -> bool:
        """Whether every width gives the rows it shares with sixteen the same bits, and no NaN."""
        graphs.begin(self._kv_length, self._tokens)
        graphs.run_full(16)
        reference = graphs.logits(16)
        for rows in range(1, 16):
            graphs.begin(self._kv_length, self._tokens)
            graphs.run_full(rows)
            if not torch.equal(graphs.logits(rows), reference[:rows]):
                return False
        return not bool(reference.isnan().any())

    def _times(self, graphs: DecodeGraphs) -> tuple[dict[int, float], dict[int, float]]:
        full = {rows: self._time(graphs, partial(graphs.run_full, rows)) for rows in WIDTHS}
        drafts = range(1, graphs.draft_rows + 1)
        return full, {rows: self._time(graphs, partial(graphs.run_draft, rows), DRAFT_REPLAYS) for rows in drafts}

    def _time(self, graphs: DecodeGraphs, replay: Callable[[], None], replays: int = REPLAYS) -> float:
        """Median seconds of a pass, over replays in a row: the cache grows by a token each, from the KV length on."""
        seconds = []
        for _ in range(REPEATS + 1):
            graphs.begin(self._kv_length, self._tokens)
            seconds.append(graphs.timed(replay, replays))
        return statistics.median(seconds[1:])

    def _graphs(self, tiles: dict[Role, Tile], copy: DraftModel, layers: int) -> DecodeGraphs:
        kernels, buffers = self._kernels(tiles, layers)
        graphs = DecodeGraphs(kernels, buffers, lambda done, total: None)
        config, model = replace(self._shape.config, layers=layers), replace(copy, layers=copy.layers[:layers])
        memory = DraftBuffers(config, model, buffers.state, buffers.logits, buffers.report)
        graphs.use_draft(
            DraftKernels(config, model, memory, config.vocabulary).step, MAX_ROWS, lambda done, total: None
        )
        return graphs

    def _kernels(self, tiles: dict[Role, Tile], layers: int) -> tuple[StepKernels, StepBuffers]:
        config = replace(self._shape.config, layers=layers)
        model = replace(self._model, layers=self._model.layers[:layers])
        buffers = StepBuffers(config, tiles, POSITIONS, model)
        return StepKernels(config, model, buffers, tiles, config.vocabulary), buffers

    def _begin(self, buffers: StepBuffers) -> None:
        buffers.state[0] = self._kv_length
        buffers.state[8:24] = torch.tensor(self._tokens, dtype=torch.int32, device=buffers.state.device)


def _timed(work: Callable[[], object], count: int) -> float:
    """Seconds of one call on the card, over `count` calls in a row."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / count


def _graph_seconds(launch: Callable[[], None], replays: int, repeats: int) -> float:
    """Median seconds of a step captured into a graph of its own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        launch()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        launch()
    graph.replay()
    return statistics.median(_timed(graph.replay, replays) for _ in range(repeats))
