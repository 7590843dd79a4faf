"""A model on the CPU: compiled kernels, weights mapped from the file, drafts from int8 copies of them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence

import numpy as np
import psutil

from engine.files.folder import ModelFolder
from engine.kernels.compiled import table as t
from engine.kernels.compiled.binding import Memory, Weights, bind
from engine.kernels.compiled.blocks import COUNTER_BYTES
from engine.kernels.compiled.interpreter import run
from engine.kernels.compiled.peak import peak_of
from engine.kernels.compiled.team import Team
from engine.model import draft_copy, programme
from engine.model.ingredients import require_ingredients
from engine.model.matrix import Matrix
from engine.model.neurons import NeuronChoice
from engine.model.rope import rope_tables
from engine.model.weights import HostWeights, as_float32
from engine.recipe import Ingredients, Recipe
from engine.records import LoadProgress
from engine.sampling.distribution import require_finite

CHUNK, LEAST_CHUNK = 64, 8  # prompt tokens a pass: most, enough to amortise reading the weights, and fewest
CHUNK_SECONDS = 0.25  # what such a pass should take, so that a stop takes effect within a second beside other work too
INGREDIENTS = Ingredients(weight_bits=(16, 8), neurons=True)
DEFAULT_RECIPE = Recipe(weight_bits=8)


class CompiledRunner:
    """Implements engine.model.runner.Runner. Not thread-safe: one thread owns it."""

    kernels = "compiled CPU kernels"
    ingredients = INGREDIENTS

    def __init__(
        self,
        folder: ModelFolder,
        capacity: int,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None],
        cancelled: Callable[[], bool],
    ) -> None:
        self.config, self.capacity, self._chunk = folder.config, capacity, CHUNK
        self._weights = HostWeights(folder, progress, cancelled)
        self._team = Team(thread_count())
        try:
            self._memory = self._allocate()
            self._control = np.zeros(t.CONTROL, np.int64)
            self._counters = np.zeros(0, np.int64)
            self._copies: dict[str, Matrix] = {}
            self._neuron_major: dict[str, Matrix] = {}
            full = programme.build(self.config, self._weights.names)
            own = self._weights.matrix
            weights = Weights(own, own, self._weights.vector, neuron_major=own, chosen=())
            self._full = bind(full, self.config, self._memory, weights)
            self._stages = programme.stages(full)
            self.use_recipe(recipe, progress, cancelled)
        except BaseException:
            self._team.close()
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
        return draft_copy.size_of(self._copies) + draft_copy.size_of(self._neuron_major)

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        """See Runner.full."""
        began = time.perf_counter()
        logits = self._pass(self._full, tokens, position, wanted)
        if not wanted and len(tokens) == self._chunk:
            self._chunk = fitting_chunk(self._chunk, time.perf_counter() - began)
        return logits

    def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
        """See Runner.draft."""
        return self._pass(self._draft, tokens, position, len(tokens))

    def peak(self, row: np.ndarray, position: int | None) -> tuple[int, np.float32, float]:
        """See Runner.peak."""
        index, top, total = peak_of(row.ctypes.data, len(row))
        if not math.isfinite(total):
            require_finite(np.float32(np.nan if np.isnan(row).any() else top), position)
        return int(index), np.float32(top), total

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
        steps = programme.build(self.config, self._weights.names, recipe)
        if recipe.weight_bits == 8:
            missing = tuple(name for name in programme.matrices(steps) if name not in self._copies)
            self._copies |= draft_copy.quantised_all(self._weights.matrix, missing, self._team, progress, cancelled)
        kept = programme.kept_neurons(self.config, recipe)
        reach = self._reach() if kept < self.config.intermediate_size else np.ones((self.config.layers, 1), np.float32)
        choice = NeuronChoice(self.config.layers, self.config.intermediate_size, kept, reach)
        choice.refresh(self._memory.statistics)
        matrix = self._draft_matrix if recipe.weight_bits == 8 else self._weights.matrix
        own, vector = self._weights.matrix, self._weights.vector
        weights = Weights(own, matrix, vector, self._neuron_rows(recipe), choice.chosen)
        self._draft = bind(steps, self.config, self._memory, weights)
        self._choice, self._recipe = choice, recipe

    def find_fault(self, tokens: Sequence[int], position: int) -> str | None:
        """See Runner.find_fault. The parts of one pass, run one after the other over the same buffers."""
        first, count = 0, len(tokens)
        for stage in self._stages:
            self._pass(self._full[first : stage.last + 1], tokens, position, 1)
            rows = slice(count - 1 if stage.on_tail else 0, count)
            if not np.isfinite(self._memory.buffers[stage.buffer][rows]).all():
                return stage.name
            first = stage.last + 1
        return None

    def close(self) -> None:
        """See Runner.close."""
        self._team.close()

    def _pass(self, table: np.ndarray, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        ids = np.asarray(tokens, np.int64)
        control = self._control
        control[t.ROWS], control[t.POSITION], control[t.TAIL] = len(ids), position, wanted
        if len(self._counters) < len(table) * COUNTER_BYTES // 8:
            self._counters = np.zeros(len(table) * COUNTER_BYTES // 8, np.int64)
        self._counters[:] = 0
        control[t.COUNTERS] = self._counters.ctypes.data
        addresses = table.ctypes.data, len(table), control.ctypes.data, ids.ctypes.data
        self._team.run(lambda member: run(*addresses, member))
        first = len(ids) - wanted
        return self._memory.buffers[programme.Buffer.LOGITS][first : len(ids)]

    def _allocate(self) -> Memory:
        config = self.config
        stored = self._weights.matrix(programme.EMBEDDING).kind
        cache_type = np.float32 if stored == 0 else np.float16
        cosine, sine = rope_tables(config, self.capacity)
        shape = (self.capacity, 2, config.kv_heads, config.head_dim)
        return Memory(
            buffers={name: np.zeros((CHUNK, width), np.float32) for name, width in programme.widths(config).items()},
            cache=tuple(np.zeros(shape, cache_type) for _ in range(config.layers)),
            cosine=cosine,
            sine=sine,
            scores=np.zeros((self._team.size, self.capacity + 8), np.float32),
            scalars=np.array([config.rms_norm_eps, config.head_dim**-0.5], np.float32),
            statistics=np.zeros((config.layers, config.intermediate_size), np.float32),
        )

    def _draft_matrix(self, name: str) -> Matrix:
        return self._copies.get(name) or self._weights.matrix(name)

    def _neuron_rows(self, recipe: Recipe) -> Callable[[str], Matrix]:
        def neuron_major(name: str) -> Matrix:
            key = f"{name} {recipe.weight_bits}"
            if key not in self._neuron_major:
                turned = draft_copy.transposed(self._weights.matrix(name))
                eight = recipe.weight_bits == 8
                self._neuron_major[key] = draft_copy.quantised(turned, self._team) if eight else turned
            return self._neuron_major[key]

        return neuron_major

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


def thread_count() -> int:
    """Threads of a pass: one a physical core, as far as this process may use them."""
    cores = psutil.cpu_count(logical=False) or 1
    return min(cores, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else cores
