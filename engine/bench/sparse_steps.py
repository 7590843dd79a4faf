"""Times of sparse draft steps of a shape with random weights, beside the dense draft and the plain step.

`python3 -m engine.bench.sparse_steps --shape wide-8192 --what ahead --share 0.5 0.1`. Every kernel is checked against
torch first; all times are of whole steps in one CUDA graph, and a layer's is the slope over the number of layers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import torch

from engine.bench.shapes import SHAPES, Shape, matrix_bytes, random_model
from engine.bench.sparse_models import FittingKernels, Shares, channel_parts, neuron_parts, random_draft
from engine.kernels.triton import judge
from engine.kernels.triton.choose_tiles import choose_tiles
from engine.kernels.triton.draft_memory import DraftBuffers, DraftModel
from engine.kernels.triton.draft_step import DraftKernels
from engine.kernels.triton.sparse_memory import ChannelLayer, ColumnTile, NeuronMlp, RowTile, SparseTiles
from engine.kernels.triton.sparse_step import SparseKernels
from engine.kernels.triton.step import StepBuffers, StepKernels
from engine.kernels.triton.tiles import Role
from engine.model.fused import shapes_of

POSITIONS, KV_LENGTH = 1024, 512
REPEATS, REPLAYS = 7, 10
WHAT = ("ahead", "low rank", "planes", "channels")
Part = NeuronMlp | ChannelLayer
Tensor = torch.Tensor

ROW_TRIALS = (RowTile(8, 8), RowTile(8, 4), RowTile(4, 4), RowTile(16, 8))
DOWN_TRIALS = (
    ColumnTile(4, 64, 24),
    ColumnTile(4, 64, 40),
    ColumnTile(8, 64, 16),
    ColumnTile(4, 128, 32),
    ColumnTile(8, 32, 12),
)
CHANNEL_TRIALS = ((4, 64, 1), (8, 64, 1), (4, 128, 1), (4, 64, 2), (4, 32, 1))  # warps, words, groups of a warp


@dataclass(frozen=True, slots=True)
class Timing:
    """One kind of step. layer_us: slope over layers; step_ms: of the reported layers; c: share of the plain step."""

    name: str
    share: float
    layer_us: float
    step_ms: float
    c: float
    chosen: float | None
    tiles: str


class Bench:
    """One shape on the current card: models of all its layers and of a third of them."""

    def __init__(self, shape: Shape, device: torch.device) -> None:
        self.shape, self.device = shape, device
        config = shape.config
        cache = (POSITIONS, 2, config.kv_heads, config.head_dim)
        self.caches = [torch.randn(cache, dtype=torch.bfloat16, device=self.device) for _ in range(config.layers)]
        self.state = torch.zeros(judge.STATE_SIZE, dtype=torch.int32, device=self.device)
        self.state[judge.POSITION] = KV_LENGTH
        self.state[judge.TOKENS] = 17
        self.start = self.state.clone()
        self.logits = torch.zeros(16, config.vocabulary, device=self.device)
        self.report = torch.zeros(judge.REPORT_SIZE, dtype=torch.int32)
        if device.type == "cuda":
            self.report = self.report.pin_memory()

    def slope(self, seconds: Callable[[int], float]) -> tuple[float, float]:
        """Seconds of a layer, and of a step with the reported number of layers."""
        layers = self.shape.config.layers
        few, whole = seconds(layers // 3), seconds(layers)
        layer = (whole - few) / (layers - layers // 3)
        return layer, whole + (self.shape.reported_layers - layers) * layer

    def plain(self) -> tuple[float, float]:
        """Times of a plain step of the bf16 model; its weights are freed again."""
        config = self.shape.config
        model = random_model(config, torch.bfloat16, self.device, self.caches, POSITIONS)
        tiles = choose_tiles(shapes_of(config), torch.bfloat16, self.device)[0]

        def seconds(layers: int) -> float:
            cut = replace(config, layers=layers)
            part = replace(model, layers=model.layers[:layers])
            buffers = StepBuffers(cut, tiles, POSITIONS, part)
            kernels = StepKernels(cut, part, buffers, tiles, config.vocabulary)
            return self.seconds(lambda: kernels.full(1), buffers.state)

        return self.slope(seconds)

    def draft(self, model: DraftModel, parts: Sequence[Part] | None, tiles: SparseTiles) -> Callable[[int], float]:
        """Seconds of a draft step by its number of layers; parts None: dense."""
        config = self.shape.config

        def seconds(layers: int) -> float:
            cut, part = replace(config, layers=layers), replace(model, layers=model.layers[:layers])
            buffers = DraftBuffers(cut, part, self.state, self.logits, self.report)
            if parts is None:
                kernels = DraftKernels(cut, part, buffers, config.vocabulary)
            else:
                kernels = SparseKernels(cut, part, buffers, config.vocabulary, parts[:layers], tiles)
            return self.seconds(lambda: kernels.step(1), self.state)

        return seconds

    def fit(self, model: DraftModel, parts: Sequence[Part], share: float, tiles: SparseTiles | None = None) -> Shares:
        """Set every threshold for the share, layer by layer, and check the kernels of the first and the last layer."""
        buffers = DraftBuffers(self.shape.config, model, self.state, self.logits, self.report)
        kernels = FittingKernels(self.shape.config, model, buffers, self.shape.config.vocabulary, parts, tiles)
        kernels.share, kernels.found = share, Shares({}, [])
        ends = (parts[0], parts[-1])
        matrices = [m for p in ends if isinstance(p, ChannelLayer) for m in (p.qkv, p.gate_up, p.down)]
        kernels.checked = frozenset(id(thing) for thing in (*ends, *matrices))
        self.state.copy_(self.start)
        kernels.step(1)
        kernels.found.errors["logits not finite"] = float((~self.logits[0].isfinite()).sum())
        return kernels.found

    def seconds(self, launch: Callable[[], None], state: Tensor) -> float:
        """Median seconds of a step captured into a graph, each from the same state."""

        def whole() -> None:
            state.copy_(self.start)
            launch()

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            whole()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            whole()
        times = []
        for _ in range(REPEATS + 1):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for _ in range(REPLAYS):
                graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 1e3 / REPLAYS)
        return statistics.median(times[1:])


def trials(what: str, base: SparseTiles, config_groups: dict[Role, int]) -> list[tuple[str, list[SparseTiles]]]:
    """What to try, one kernel after the other: its name, and tiles that differ in it alone."""
    if what == "channels":
        return [
            (
                role.value,
                [
                    replace(base, channels=base.channels | {role: ColumnTile(rows, words, -(-groups // rows // each))})
                    for rows, words, each in CHANNEL_TRIALS
                ],
            )
            for role, groups in config_groups.items()
        ]
    found = [("down", [replace(base, down=tile) for tile in DOWN_TRIALS])]
    found.append(("gate_up", [replace(base, gate_up=tile) for tile in ROW_TRIALS]))
    if what == "planes":
        found.append(("planes", [replace(base, planes=tile) for tile in (*ROW_TRIALS, RowTile(16, 4))]))
    return found


def with_tiles(parts: Sequence[Part], tiles: SparseTiles) -> list[Part]:
    """The same random copies, taken as if they had been packed for these tiles."""
    found: list[Part] = []
    for part in parts:
        if isinstance(part, ChannelLayer):
            words = {role: tile.words for role, tile in tiles.channels.items()}
            part = replace(
                part,
                qkv=replace(part.qkv, tile=words.get(Role.QKV, part.qkv.tile)),
                gate_up=replace(part.gate_up, tile=words.get(Role.GATE_UP, part.gate_up.tile)),
                down=replace(part.down, tile=words.get(Role.DOWN, part.down.tile)),
            )
        found.append(part)
    return found


def tune(bench: Bench, what: str, model: DraftModel, parts: Sequence[Part], say: Callable[[str], None]) -> SparseTiles:
    """The fastest tiles of each kernel in turn, by the time of a third of the layers."""
    best = SparseTiles()
    config = bench.shape.config
    groups = {Role.QKV: config.hidden_size // 128, Role.GATE_UP: config.hidden_size // 128}
    groups[Role.DOWN] = config.intermediate_size // 128
    for name in [name for name, _ in trials(what, best, groups)]:
        timed: list[tuple[float, int, SparseTiles]] = []
        for tiles in dict(trials(what, best, groups))[name]:
            try:
                seconds = bench.draft(model, with_tiles(parts, tiles), tiles)(config.layers // 3)
            except Exception as error:  # a tile that the card cannot run is no candidate; the next one may be
                say(f"  {name} {tiles}: {error}"[:200])
                continue
            timed.append((seconds, len(timed), tiles))
            say(f"  {name} {_short(what, tiles)} {seconds * 1e6:.1f} us")
        best = min(timed, key=lambda one: one[:2])[2]
    return best


def run(shape: Shape, what: Sequence[str], shares: Sequence[float], drops: Sequence[float], tuned: bool) -> dict:
    """Measure everything; returns what is printed as JSON. Progress goes to standard error."""
    began = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - began:5.1f}] {text}", file=sys.stderr, flush=True)

    bench = Bench(shape, torch.device("cuda", torch.cuda.current_device()))
    plain_layer, plain = bench.plain()
    torch.cuda.empty_cache()
    share_of_copy = matrix_bytes(shape.config, shape.reported_layers) / plain / 1e12
    say(f"plain {plain_layer * 1e6:.1f} us a layer, {plain * 1e3:.3f} ms, {share_of_copy:.2f} TB/s of weights")
    model = random_draft(shape.config, bench.device, bench.caches, POSITIONS)
    timings, errors = [], {}

    def add(name: str, share: float, seconds: Callable[[int], float], chosen: float | None, tiles: str) -> None:
        layer, step = bench.slope(seconds)
        timings.append(Timing(name, share, layer * 1e6, step * 1e3, step / plain, chosen, tiles))
        say(f"{name} {share:g}: {layer * 1e6:.1f} us a layer, c {step / plain:.4f}, c of a layer "
            f"{layer / plain_layer:.4f}, chosen {chosen} {tiles}")  # fmt: skip

    add("dense", 1.0, bench.draft(model, None, SparseTiles()), None, "")
    for kind in what:
        parts: Sequence[Part]
        if kind == "channels":
            sparse_model, parts = model, channel_parts(model, shape.config)
        else:
            sparse_model, parts = neuron_parts(model, kind)
        tiles = SparseTiles()
        for index, share in enumerate(drops if kind == "channels" else shares):
            found = bench.fit(sparse_model, parts, share)
            errors[f"{kind} {share:g}"] = found.errors
            say(f"{kind} {share:g} errors { ({name: float(f'{e:.1e}') for name, e in found.errors.items()}) }")
            if tuned and index == 0:
                tiles = tune(bench, kind, sparse_model, parts, say)
            chosen = statistics.mean(found.chosen) if found.chosen else None
            seconds = bench.draft(sparse_model, with_tiles(parts, tiles), tiles)
            add(kind, share, seconds, chosen, _short(kind, tiles))
        del parts, sparse_model
        torch.cuda.empty_cache()
    return {
        "shape": shape.name,
        "card": torch.cuda.get_device_name(),
        "kv_length": KV_LENGTH,
        "plain_layer_us": plain_layer * 1e6,
        "plain_ms": plain * 1e3,
        "timings": [asdict(timing) for timing in timings],
        "relative_errors": errors,
        "seconds": time.perf_counter() - began,
    }


def _short(what: str, tiles: SparseTiles) -> str:
    """The tiles that matter to a kind of step, in a few characters."""
    if what == "channels":
        return " ".join(f"{role.value} {t.rows}x{t.words}/{t.splits}" for role, t in tiles.channels.items())
    down = f"down {tiles.down.rows}x{tiles.down.words}/{tiles.down.splits}"
    rows = f"gate_up {tiles.gate_up.block}w{tiles.gate_up.warps} {down}"
    return rows if what != "planes" else f"planes {tiles.planes.block}w{tiles.planes.warps} {rows}"


def main() -> int:
    """Command line; prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=("wide-8192", "llama2-7b"), default="wide-8192")
    parser.add_argument("--what", nargs="+", choices=WHAT, default=WHAT)
    parser.add_argument("--share", nargs="+", type=float, default=[0.5, 0.1], help="of neurons kept")
    parser.add_argument("--drop", nargs="+", type=float, default=[0.3], help="of channels dropped")
    parser.add_argument("--tune", action="store_true", help="try tiles first, at the first share")
    options = parser.parse_args()
    result = run(SHAPES[options.shape], options.what, options.share, options.drop, options.tune)
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
