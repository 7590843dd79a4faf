"""A model on the CPU: compiled kernels, weights mapped from the file, drafts from int8 copies of them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
import psutil

from engine.errors import LoadCancelled
from engine.files.fingerprint import fingerprint
from engine.files.folder import ModelFolder
from engine.kernels.compiled import table as t
from engine.kernels.compiled.binding import bind, move_cache
from engine.kernels.compiled.exact_leaders import exact_leaders
from engine.kernels.compiled.interpreter import run
from engine.kernels.compiled.memory import Weights
from engine.kernels.compiled.peak import peak_of
from engine.kernels.compiled.team import Team
from engine.lowbit.copies import Watch
from engine.lowbit.statistics import InputStatistics, Statistics
from engine.model import programme
from engine.model.compiled_memory import allocate, open_cache
from engine.model.cpu_default import default_recipe
from engine.model.draft_weights import DraftWeights
from engine.model.ingredients import require_ingredients
from engine.model.kept_output import KeptOutput
from engine.model.neurons import NeuronChoice
from engine.model.runner import MAX_DECODE_ROWS, MAX_DRAFT_ROWS
from engine.model.weights import HostWeights, as_float32
from engine.predict.report import PredictorReport
from engine.predict.samples import MlpInputs
from engine.recipe import Ingredients, Recipe
from engine.records import LoadProgress
from engine.sampling.distribution import require_finite

CHUNK, LEAST_CHUNK = 64, 8  # prompt tokens a pass: most, enough to amortise reading the weights, and fewest
PLANE_SAMPLE = 256  # tokens of the sample that thresholds of planes are fitted on
SPREAD = 256  # tokens that stand in for a sample text
CHUNK_SECONDS = 0.25  # what such a pass should take, so that a stop takes effect within a second beside other work too
INGREDIENTS = Ingredients(weight_bits=(16, 8, 4, 3), neurons=True, reduced_vocabulary=True, kv_window=True)


class CompiledRunner:
    """Implements engine.model.runner.Runner. Not thread-safe: one thread owns it."""

    kernels = "compiled CPU kernels"
    ingredients = INGREDIENTS
    decode_rows = MAX_DECODE_ROWS

    def __init__(
        self,
        folder: ModelFolder,
        capacity: int,
        recipe: Recipe | None,
        progress: Callable[[LoadProgress], None],
        cancelled: Callable[[], bool],
        sample: Sequence[int] = (),
        *,
        virtual_memory: bool = True,
    ) -> None:
        """recipe: None for the device's default.

        sample: token ids of some real text, for what the draft's rounding must preserve; () where there is none.
        """
        self.config, self.capacity, self._chunk = folder.config, capacity, CHUNK
        self._sample = tuple(sample) or spread_ids(folder.config.vocabulary)
        self._weights = HostWeights(folder, progress, cancelled)
        self._team = Team(thread_count())
        float32 = self._weights.matrix(programme.EMBEDDING).kind == 0
        self.kv = open_cache(self.config, capacity, np.dtype(np.float32 if float32 else np.float16), virtual_memory)
        try:
            self._memory = allocate(self.config, capacity, self.kv.layers, self._team.size, CHUNK)
            self._bound = self.kv.index  # the range that addresses in the tables are of
            self._control = np.zeros(t.CONTROL, np.int64)
            self._control[t.THREADS] = self._team.size
            self._counters = np.zeros(0, np.int64)
            self._counter_words = t.counter_bytes(self._team.size) // 8
            self._programme = programme.build(self.config, self._weights.names)
            own = self._weights.matrix
            self._output = own(programme.output_matrix(self.config, self._weights.names))
            weights = Weights(own, own, self._weights.vector, neuron_major=own, chosen=())
            self._full = bind(self._programme, self.config, self._memory, weights)
            self._copies = DraftWeights(
                self._weights,
                self.config,
                self._team,
                fingerprint(folder),
                self._sample_statistics,
                self._sample_mlp_inputs,
            )
            self._kept: KeptOutput | None = None
            self.use_recipe(recipe or default_recipe(self.config), progress, cancelled)
        except BaseException:
            self.close()
            raise

    @property
    def recipe(self) -> Recipe:
        """The recipe in force."""
        return self._recipe

    @property
    def chunk(self) -> int:
        """See Runner.chunk. Fewer where passes take long; what a row computes is the same in any chunk."""
        return self._chunk

    @property
    def draft_bytes(self) -> int:
        """Memory of the draft's own copies."""
        return self._copies.nbytes

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what did not go as it should; nothing fails for it."""
        return tuple(self._copies.notes)

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        """See Runner.full."""
        began = time.perf_counter()
        if self._kept is not None:
            self._kept.meet(tokens)
        logits = self._pass(self._full, tokens, position, wanted)
        if not wanted and len(tokens) == self._chunk:
            self._chunk = fitting_chunk(self._chunk, time.perf_counter() - began)
        return logits

    def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
        """See Runner.draft. Raises ValueError for more rows than a draft pass takes."""
        if len(tokens) > MAX_DRAFT_ROWS:
            raise ValueError(f"a draft pass takes at most {MAX_DRAFT_ROWS} tokens, not {len(tokens)}")
        self._pass(self._draft, tokens, position, len(tokens))
        if self._recipe.weight_bits < 16:
            self._sharpen(len(tokens))
        return self._logits[: len(tokens)]

    def _sharpen(self, rows: int) -> None:
        """Compute the leading logits of the last draft pass with the full model's output matrix."""
        output, logits, inputs = self._output, self._logits, self._memory.buffers[programme.Buffer.NORMED]
        first, source = logits.ctypes.data, inputs.ctypes.data
        for row in range(rows):
            addresses = first + row * logits.strides[0], logits.shape[1], source + row * inputs.strides[0]
            exact_leaders(*addresses, output.address, output.kind, output.columns)

    def activation_statistics(self, tokens: Sequence[int], cancelled: Callable[[], bool] = lambda: False) -> Statistics:
        """Of the inputs of all matrices of the full model over these tokens, as far as the cache has room for them.

        Leaves the cache and the neurons' averages as they were. Raises LoadCancelled.
        """
        seen = InputStatistics(self._programme)
        self._watch_full_passes(seen, tokens, cancelled)
        return seen.means()

    def neuron_report(self) -> PredictorReport | None:
        """How well the draft's neurons are chosen, layer by layer; None where planes do not choose them."""
        share, planes = self._recipe.neuron_share, self._copies.planes
        if not programme.chooses_by_planes(self.config, self._weights.names, self._recipe):
            return None
        return PredictorReport("MLP neurons by 2-bit planes", tuple(layer.curve.report(share) for layer in planes))

    def _watch_full_passes(
        self, seen: InputStatistics | MlpInputs, tokens: Sequence[int], cancelled: Callable[[], bool]
    ) -> None:
        """Full passes over the tokens that `seen` looks into; the cache and the averages stay as they were."""
        tokens = tokens[: self.capacity]
        self._follow(len(tokens))
        memory = self._memory
        before = [layer[: len(tokens)].copy() for layer in memory.cache]
        neurons = memory.statistics.copy()
        try:
            for first in range(0, len(tokens), CHUNK):
                if cancelled():
                    raise LoadCancelled("Loading was cancelled.")
                self._see_inputs(seen, tokens[first : first + CHUNK], first)
        finally:
            memory.statistics[:] = neurons
            for layer, rows in zip(memory.cache, before, strict=True):
                layer[: len(tokens)] = rows

    def peak(self, row: np.ndarray, position: int | None) -> tuple[int, np.float32, float]:
        """See Runner.peak."""
        index, top, total = peak_of(row.ctypes.data, len(row))
        if not math.isfinite(total):
            require_finite(np.float32(np.nan if np.isnan(row).any() else top), position)
        return int(index), np.float32(top), total

    def release_copies(self, kept: Collection[int]) -> None:
        """See Runner.release_copies. They are on disk too, where there was room."""
        self._copies.release({*kept, self._recipe.weight_bits})

    def refresh_neurons(self) -> None:
        """See Runner.refresh_neurons."""
        self._choice.refresh(self._memory.statistics)

    def use_recipe(
        self,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """See Runner.use_recipe. Copies already made are kept, so that turning a dial back costs nothing."""
        require_ingredients(recipe, "this computer's CPU", self.ingredients)
        with self.kv.working():  # weights are rounded by what passes over the sample show
            self._use_recipe(recipe, progress, cancelled)

    def _use_recipe(
        self, recipe: Recipe, progress: Callable[[LoadProgress], None], cancelled: Callable[[], bool]
    ) -> None:
        config = self.config
        steps = programme.build(config, self._weights.names, recipe)
        self._copies.prepare(steps, recipe, Watch(progress, cancelled))
        kept = programme.kept_neurons(config, recipe)
        reach = self._reach() if kept < config.intermediate_size else np.ones((config.layers, 1), np.float32)
        choice = NeuronChoice(config.layers, config.intermediate_size, kept, reach)
        choice.refresh(self._memory.statistics)
        tokens = programme.kept_tokens(config, recipe)
        output = None if tokens == config.vocabulary else KeptOutput(self._copies, recipe, tokens, self._always())
        memory = self._memory if output is None else output.beside(self._memory)
        table = self._copies.table(recipe, choice.chosen, None if output is None else output.rows)
        self._draft = bind(steps, config, memory, table)
        self._logits = memory.buffers[programme.Buffer.LOGITS if output is None else programme.Buffer.DRAFT_LOGITS]
        self._draft_table = table  # holds what the addresses in `_draft` point at
        self._choice, self._recipe, self._kept = choice, recipe, output

    def find_fault(self, tokens: Sequence[int], position: int) -> str | None:
        """See Runner.find_fault. The parts of one pass, run one after the other over the same buffers."""
        first, count = 0, len(tokens)
        for stage in programme.stages(self._programme):
            self._pass(self._full[first : stage.last + 1], tokens, position, 1)
            rows = slice(count - 1 if stage.on_tail else 0, count)
            if not np.isfinite(self._memory.buffers[stage.buffer][rows]).all():
                return stage.name
            first = stage.last + 1
        return None

    def close(self) -> None:
        """See Runner.close."""
        self._team.close()
        self.kv.close()

    def _pass(self, table: np.ndarray, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        ids = np.asarray(tokens, np.int64)
        if len(ids) > CHUNK:
            raise ValueError(f"a pass takes at most {CHUNK} tokens, not {len(ids)}")
        self._follow(position + len(ids))
        control = self._control
        control[t.ROWS], control[t.POSITION], control[t.TAIL] = len(ids), position, wanted
        counters = len(table) * self._counter_words
        if len(self._counters) < counters:
            self._counters = np.zeros(counters, np.int64)
        self._counters[:] = 0
        control[t.COUNTERS] = self._counters.ctypes.data
        addresses = table.ctypes.data, len(table), control.ctypes.data, ids.ctypes.data
        self._team.run(lambda member: run(*addresses, member))
        first = len(ids) - wanted
        return self._memory.buffers[programme.Buffer.LOGITS][first : len(ids)]

    def _follow(self, rows: int) -> None:
        """Have memory under the first rows of the range in use, and the tables point there."""
        self.kv.ensure(rows)
        if self.kv.index == self._bound:
            return
        before, self._memory = self._memory, replace(self._memory, cache=self.kv.layers)
        moved = self._memory.cache[0].ctypes.data - before.cache[0].ctypes.data
        for table in (self._full, self._draft):
            move_cache(table, moved)
        self._bound = self.kv.index

    def _sample_statistics(self, cancelled: Callable[[], bool]) -> Statistics:
        return self.activation_statistics(self._sample, cancelled)

    def _sample_mlp_inputs(self, cancelled: Callable[[], bool]) -> tuple[np.ndarray, ...]:
        seen = MlpInputs(self._programme)
        self._watch_full_passes(seen, self._sample[:PLANE_SAMPLE], cancelled)
        return seen.layers()

    def _see_inputs(self, seen: InputStatistics | MlpInputs, tokens: Sequence[int], position: int) -> None:
        def execute(first: int, last: int) -> None:
            self._pass(self._full[first:last], tokens, position, len(tokens))

        seen.see(execute, self._memory.buffers, len(tokens))

    def _always(self) -> tuple[int, ...]:
        """Tokens that a reduced vocabulary always has."""
        first = () if self.config.bos_id is None else (self.config.bos_id,)
        return (*first, *self.config.eos_ids, *self._sample)

    def _reach(self) -> np.ndarray:
        """Norm of each neuron's down-projection column, float32 [layers, neurons]."""
        names = [f"model.layers.{layer}.mlp.down_proj.weight" for layer in range(self.config.layers)]
        kinds = {0: "F32", 1: "F16", 2: "BF16"}
        downs = [self._weights.matrix(name) for name in names]
        return np.stack([np.linalg.norm(as_float32(down.owner[0], kinds[down.kind]), axis=0) for down in downs])


def fitting_chunk(rows: int, seconds: float) -> int:
    """Rows a prefill pass should have next, when one of `rows` took so long: a multiple of eight, at most doubled."""
    fitting = min(2.0 * rows, rows * CHUNK_SECONDS / max(seconds, 1e-9))
    return min(CHUNK, max(LEAST_CHUNK, int(fitting) // 8 * 8))


def spread_ids(vocabulary: int) -> tuple[int, ...]:
    """Tokens from all over a vocabulary, in place of a text where there is no tokenizer."""
    return tuple((i * 7919 + 13) % vocabulary for i in range(SPREAD))


def thread_count() -> int:
    """Threads of a pass: one a physical core, as far as this process may use them."""
    cores = psutil.cpu_count(logical=False) or 1
    return min(cores, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else cores
