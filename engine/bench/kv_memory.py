"""The KV cache of a model's shape on a card's virtual memory: what it takes, what it costs, what it gives back.

The model is random; two copies of it share all weights, one over an arena, one over plain tensors.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from engine.bench.shapes import Shape, random_model
from engine.errors import SpecularError
from engine.kernels.triton.choose_tiles import choose_tiles
from engine.kernels.triton.judge import RANGE_UNIT
from engine.kernels.triton.step import StepKernels
from engine.kernels.triton.step_memory import FusedModel, StepBuffers
from engine.memory.kv_cache import KvCache
from engine.memory.report import KvMemory
from engine.memory.storage import RowSize
from engine.memory.tensor_storage import place_of, tensor_storage
from engine.model.decode_graphs import DecodeGraphs
from engine.model.fused import shapes_of
from engine.model.runner import CYCLE_ROWS

PROMPT = 300  # tokens
TOKENS = 384  # of a timed reply: three pages a layer of the 7B shape
PAIRS = 7  # of timed replies, plain and paged in turn
ROUNDS = 10_000
PATIENCE = 5.0  # seconds to wait for the keeper


@dataclass(frozen=True, slots=True)
class KvReport:
    """Bytes, ratios of one run, seconds.

    mapped: with a prompt of PROMPT tokens; share: of what the whole context takes. wasted_pages: the most that was
    mapped beyond what was used, in pages a layer. late: pages that cycles of warm replies waited for.
    ratio: seconds of decoding TOKENS over the arena / over plain tensors, medians. equal: the same tokens.
    free_before, free_after: the card's memory around ROUNDS rounds of growing and shrinking. held: bytes left
    `closed_seconds` after the chat was closed. page_seconds: of each operation, on average.
    """

    shape: str
    dtype: str
    card: str
    context: int
    page_bytes: int
    reserved: int
    full: int
    mapped: int
    share: float
    wasted_pages: float
    late: int
    ratio: float
    equal: bool
    rounds: int
    free_before: int
    free_after: int
    held: int
    closed_seconds: float
    page_seconds: dict[str, float]


def measure_kv_memory(shape: Shape, dtype: torch.dtype) -> KvReport:
    """Build a random model of the shape on the current card and measure. Raises SpecularError where virtual memory is
    refused."""
    device = torch.device("cuda", torch.cuda.current_device())
    config = shape.config
    rows = config.context + 256
    kv = open_cache(shape, rows, dtype, device)
    try:
        model = random_model(config, dtype, device, kv.layers, rows)
        paged = _Decoder(shape, model, kv)
        bytes_, share, wasted = prompt_memory(kv, config.layers)
        ratio, equal, late = compare(shape, paged, _plain_twin(shape, model, rows))
        free_before, free_after = rounds(kv, device)
        held, closed = close_chat(kv)
        report = kv.report()
    finally:
        kv.close()
    return KvReport(
        shape=shape.name,
        dtype=str(dtype).removeprefix("torch."),
        card=torch.cuda.get_device_name(device),
        context=config.context,
        page_bytes=report.page_bytes,
        reserved=report.reserved,
        full=report.full,
        mapped=bytes_,
        share=share,
        wasted_pages=wasted,
        late=late,
        ratio=ratio,
        equal=equal,
        rounds=ROUNDS,
        free_before=free_before,
        free_after=free_after,
        held=held,
        closed_seconds=closed,
        page_seconds={op.name: op.seconds / max(1, op.count) for op in report.operations},
    )


def open_cache(shape: Shape, rows: int, dtype: torch.dtype, device: torch.device) -> KvCache:
    """A cache as the engine opens it. Raises SpecularError where it is no virtual memory."""
    config = shape.config
    size = RowSize(config.layers, rows, 2 * config.kv_heads * config.head_dim * dtype.itemsize)
    dims = (rows, 2, config.kv_heads, config.head_dim)
    storage = tensor_storage(size, device, virtual=True)
    if storage.reason is not None:
        storage.close()
        raise SpecularError(f"There is no virtual memory to measure: {storage.reason}.")
    return KvCache(storage, lambda layer: layer.view(dtype).view(dims), place_of(device))


def prompt_memory(kv: KvCache, layers: int) -> tuple[int, float, float]:
    """Bytes under a prompt, their share of a full context, and the most pages a layer that a shorter chat wastes."""
    kv.leave(())
    wasted = 0.0
    for length in range(1, PROMPT + 1):
        kv.enter(1, ())
        kv.ensure(length)
        kv.leave([1] * length)
        report = kv.report()
        wasted = max(wasted, report.fragmentation / report.page_bytes / layers)
    kv.leave(())
    return report.mapped, report.mapped / report.full, wasted


def compare(shape: Shape, paged: _Decoder, plain: _Decoder) -> tuple[float, bool, int]:
    """Seconds over the arena / over plain tensors; whether the tokens are equal; pages that cycles waited for."""
    for decoder in (plain, paged):
        decoder.reply()
    late = paged.late
    times: dict[_Decoder, list[float]] = {plain: [], paged: []}
    tokens: dict[_Decoder, list[int]] = {}
    for _ in range(PAIRS):
        for decoder in (plain, paged):
            seconds, tokens[decoder] = decoder.reply()
            times[decoder].append(seconds)
    ratio = statistics.median(times[paged]) / statistics.median(times[plain])
    return ratio, tokens[paged] == tokens[plain], paged.late - late


def rounds(kv: KvCache, device: torch.device) -> tuple[int, int]:
    """Free bytes of the card before and after growing and shrinking again and again."""
    torch.cuda.synchronize(device)
    torch.cuda.empty_cache()
    _wait_for(kv, lambda report: report.mapped + report.pool == 0)
    before = torch.cuda.mem_get_info(device)[0]
    for round_ in range(ROUNDS):
        kv.enter(1, ())
        kv.ensure(1 + round_ % 512)
        kv.leave(())
    _wait_for(kv, lambda report: report.mapped + report.pool == 0)
    return before, torch.cuda.mem_get_info(device)[0]


def close_chat(kv: KvCache) -> tuple[int, float]:
    """Bytes held, and the seconds after which they were, once a chat of PROMPT tokens was closed."""
    kv.enter(1, ())
    kv.ensure(PROMPT)
    kv.leave([1] * PROMPT)
    kv.forget()
    began = time.monotonic()
    _wait_for(kv, lambda report: report.mapped + report.pool == 0)
    report = kv.report()
    return report.mapped + report.pool, time.monotonic() - began


class _Decoder:
    """One model that decodes plainly, token after token, through captured graphs."""

    def __init__(self, shape: Shape, model: FusedModel, kv: KvCache | None) -> None:
        config, device = shape.config, model.embedding.device
        tiles, _ = choose_tiles(shapes_of(config), model.embedding.dtype, device)
        self._kv, self._item = kv, model.embedding.element_size()
        if kv is not None:
            kv.ensure(CYCLE_ROWS)
        buffers = StepBuffers(config, tiles, model.cosine.shape[0], model)
        kernels = StepKernels(config, model, buffers, tiles, config.vocabulary)
        self._graphs = DecodeGraphs(kernels, buffers, lambda done, total: None)

    @property
    def late(self) -> int:
        """Pages that cycles waited for so far."""
        return 0 if self._kv is None else self._kv.report().late

    def reply(self) -> tuple[float, list[int]]:
        """Wall seconds of TOKENS plain cycles after PROMPT rows of zeros, and the tokens."""
        kv, units = self._kv, 0
        if kv is not None:
            kv.enter(1, ())
            kv.ensure(PROMPT + CYCLE_ROWS)
            units = kv.offset // self._item // RANGE_UNIT
            time.sleep(0.02)  # a prompt of this length takes as long; the keeper fills the pool meanwhile
        self._graphs.begin(PROMPT, [5], units)
        torch.cuda.synchronize()
        tokens, began = [], time.perf_counter()
        for position in range(PROMPT, PROMPT + TOKENS):
            if kv is not None:
                kv.ensure(position + CYCLE_ROWS, cycle=True)
            tokens.append(self._graphs.judge((), 0, ()).chosen[0])
        seconds = time.perf_counter() - began
        if kv is not None:
            kv.leave(())
        return seconds, tokens


def _plain_twin(shape: Shape, model: FusedModel, rows: int) -> _Decoder:
    """The same weights over plain tensors of full length."""
    config, like = shape.config, model.embedding
    dims = (rows, 2, config.kv_heads, config.head_dim)
    layers = tuple(
        replace(layer, cache=torch.zeros(dims, dtype=like.dtype, device=like.device)) for layer in model.layers
    )
    decoder = _Decoder(shape, replace(model, layers=layers), None)
    for layer in layers:
        layer.cache.zero_()  # steps are run once before they are captured
    return decoder


def _wait_for(kv: KvCache, holds: Callable[[KvMemory], bool]) -> None:
    began = time.monotonic()
    while not holds(kv.report()) and time.monotonic() - began < PATIENCE:
        time.sleep(0.01)
