"""A model on the CPU: compiled kernels, weights mapped from the file, drafts from int8 copies of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial

import numpy as np

from engine.errors import LoadCancelled, PassStopped
from engine.files.fingerprint import fingerprint
from engine.files.folder import ModelFolder
from engine.kernels.compiled.binding import bind, move_cache
from engine.kernels.compiled.memory import Weights
from engine.kernels.compiled.peak import peak_of
from engine.kernels.compiled.team import Team
from engine.lowbit.copies import Watch
from engine.lowbit.statistics import InputStatistics, Statistics
from engine.model import programme
from engine.model.compiled_draft import make_draft
from engine.model.compiled_memory import allocate, open_cache, unchanged
from engine.model.cpu_default import default_recipe
from engine.model.draft_weights import DraftWeights
from engine.model.host_budget import HostBudget, streaming_note
from engine.model.host_placement import HostPlacement, names_of
from engine.model.ingredients import require_ingredients
from engine.model.runner import MAX_DECODE_ROWS, MAX_DRAFT_ROWS
from engine.model.table_pass import TablePass
from engine.model.threads import thread_count
from engine.model.weights import HostWeights
from engine.offload.host_needs import host_needs
from engine.offload.plan import Plan
from engine.offload.transfers import Transfers
from engine.predict.report import PredictorReport
from engine.predict.samples import MlpInputs
from engine.recipe import Ingredients, Recipe
from engine.records import LoadProgress
from engine.sampling.distribution import require_finite

CHUNK, LEAST_CHUNK = 64, 8  # prompt tokens a pass: most, enough to amortise reading the weights, and fewest
PLANE_SAMPLE = 256  # tokens of the sample that thresholds of planes are fitted on
SPREAD = 256  # tokens that stand in for a sample text
CHUNK_SECONDS = 0.25  # what such a pass should take, so that a stop takes effect within a second beside other work too
PLACE = "this computer's CPU"
INGREDIENTS = Ingredients(weight_bits=(16, 8, 4, 3), neurons=True, reduced_vocabulary=True, kv_window=True)


class CompiledRunner:
    """Implements engine.model.runner.Runner. Not thread-safe: one thread owns it."""

    kernels = "compiled CPU kernels"
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
        budget: int | None = None,
        offload: bool = True,
    ) -> None:
        """recipe: None for the device's default.

        sample: token ids of some real text, for what the draft's rounding must preserve; () where there is none.
        budget: bytes of RAM the model may take, None for what is free; offload: whether parts of it may be read for
        every full pass where it does not fit. Raises SpecularError with the figures where it cannot be made to fit.
        """
        self.config, self.capacity, self._chunk = folder.config, capacity, CHUNK
        self._sample = tuple(sample) or spread_ids(folder.config.vocabulary)
        needs = partial(host_needs, self.config, folder.entries, capacity=capacity)
        self._budget = HostBudget(needs, budget, offload)
        plan, recipe = self._budget.first_plan(recipe, default_recipe(self.config))
        self._weights = HostWeights(folder, progress, cancelled, names_of(plan.streamed))
        self._held = ExitStack()  # what `close` gives back
        self._team = Team(thread_count())
        self._held.callback(self._team.close)
        float32 = self._weights.matrix(programme.EMBEDDING).kind == 0
        try:
            self.kv = open_cache(self.config, capacity, np.dtype(np.float32 if float32 else np.float16), virtual_memory)
            self._held.callback(self.kv.close)
            self._memory = allocate(self.config, capacity, self.kv.layers, self._team.size, CHUNK)
            self._bound = self.kv.index  # the range that addresses in the tables are of
            self._passes = TablePass(self._team)
            self._programme = programme.build(self.config, self._weights.names)
            self._output_source = programme.output_source(self._programme)
            self._output = programme.output_matrix(self.config, self._weights.names)
            own = self._weights.matrix
            weights = Weights(own, own, self._weights.vector, neuron_major=own, chosen=())
            full = bind(self._programme, self.config, self._memory, weights)
            self._placed = HostPlacement(self._programme, full, self._weights, folder.entries, plan)
            self._held.callback(self._placed.close)
            self._tables: tuple[np.ndarray, ...] = (full,)  # that hold addresses of the cache
            self._copies = DraftWeights(
                self._weights,
                self.config,
                self._team,
                fingerprint(folder),
                self._sample_statistics,
                self._sample_mlp_inputs,
            )
            require_ingredients(recipe, PLACE, self.ingredients)
            self._use_recipe(recipe, progress, cancelled)
        except BaseException:
            self.close()
            raise

    @property
    def recipe(self) -> Recipe:
        """The recipe in force."""
        return self._draft.recipe

    @property
    def ingredients(self) -> Ingredients:
        """See Runner.ingredients. A draft of 16 bits reads the full model's matrices, which must then be in memory."""
        return replace(INGREDIENTS, weight_bits=INGREDIENTS.weight_bits[1:]) if self._placed.streams else INGREDIENTS

    @property
    def plan(self) -> Plan:
        """See Runner.plan."""
        return self._placed.plan

    @property
    def transfers(self) -> Transfers:
        """See Runner.transfers."""
        return self._placed.transfers

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
        return (*self._copies.notes, *streaming_note(self.plan))

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        """See Runner.full."""
        began, waited = time.perf_counter(), self.transfers.wait_seconds
        if self._draft.kept is not None:
            self._draft.kept.meet(tokens)
        self._begin(tokens, position, wanted)
        self._placed.run(self._passes)
        if not wanted and len(tokens) == self._chunk:
            computed = time.perf_counter() - began - (self.transfers.wait_seconds - waited)
            self._chunk = fitting_chunk(self._chunk, computed)
        return self._memory.buffers[programme.Buffer.LOGITS][len(tokens) - wanted : len(tokens)]

    def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
        """See Runner.draft. Raises ValueError for more rows than a draft pass takes."""
        if len(tokens) > MAX_DRAFT_ROWS:
            raise ValueError(f"a draft pass takes at most {MAX_DRAFT_ROWS} tokens, not {len(tokens)}")
        self._begin(tokens, position, len(tokens))
        self._passes.run(self._draft.table)
        output = self._placed.resident(self._output)
        if self.recipe.weight_bits < 16 and output is not None:
            self._draft.sharpen(len(tokens), self._memory.buffers[self._output_source], output)
        return self._draft.logits[: len(tokens)]

    def activation_statistics(self, tokens: Sequence[int], cancelled: Callable[[], bool] = lambda: False) -> Statistics:
        """Of the inputs of all matrices of the full model over these tokens, as far as the cache has room for them.

        Leaves the cache and the neurons' averages as they were. Raises LoadCancelled.
        """
        seen = InputStatistics(self._programme)
        self._watch_full_passes(seen, tokens, cancelled)
        return seen.means()

    def neuron_report(self) -> PredictorReport | None:
        """How well the draft's neurons are chosen, layer by layer; None where planes do not choose them."""
        share, planes = self.recipe.neuron_share, self._copies.planes
        if not programme.chooses_by_planes(self.config, self._weights.names, self.recipe):
            return None
        return PredictorReport("MLP neurons by 2-bit planes", tuple(layer.curve.report(share) for layer in planes))

    def _watch_full_passes(
        self, seen: InputStatistics | MlpInputs, tokens: Sequence[int], cancelled: Callable[[], bool]
    ) -> None:
        """Full passes over the tokens that `seen` looks into; the cache and the averages stay as they were."""
        tokens = tokens[: self.capacity]
        self._follow(len(tokens))
        with unchanged(self._memory, len(tokens)):
            for first in range(0, len(tokens), CHUNK):
                if cancelled():
                    raise LoadCancelled("Loading was cancelled.")
                self._see_inputs(seen, tokens[first : first + CHUNK], first)

    def peak(self, row: np.ndarray, position: int | None) -> tuple[int, np.float32, float]:
        """See Runner.peak."""
        index, top, total = peak_of(row.ctypes.data, len(row))
        if not math.isfinite(total):
            require_finite(np.float32(np.nan if np.isnan(row).any() else top), position)
        return int(index), np.float32(top), total

    def release_copies(self, kept: Collection[int]) -> None:
        """See Runner.release_copies. They are on disk too, where there was room."""
        self._copies.release({*kept, self.recipe.weight_bits})

    def refresh_neurons(self) -> None:
        """See Runner.refresh_neurons."""
        self._draft.choice.refresh(self._memory.statistics)

    def use_recipe(
        self,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """See Runner.use_recipe. Copies already made are kept, so that turning a dial back costs nothing."""
        require_ingredients(recipe, PLACE, self.ingredients)
        bounded = self._budget.bytes is not None or self._placed.streams
        if bounded and recipe.weight_bits != self.recipe.weight_bits:
            self._copies.release({self.recipe.weight_bits})
            self._move(recipe, self._budget.bytes, progress)  # another draft may leave less room, or more
        self._use_recipe(recipe, progress, cancelled)
        if bounded:
            self.release_copies(())

    def use_budget(self, budget: int | None, progress: Callable[[LoadProgress], None] = lambda _: None) -> None:
        """See Runner.use_budget."""
        self._move(self.recipe, budget, progress)
        self._budget.bytes = budget

    def relieve(self, progress: Callable[[LoadProgress], None] = lambda _: None) -> bool:
        """See Runner.relieve. What stays is mapped from files: the system takes such pages by itself."""
        return False

    def interruptible(self, stopped: Callable[[], bool]) -> AbstractContextManager[None]:
        """See Runner.interruptible."""
        return self._placed.interruptible(stopped)

    def _move(self, recipe: Recipe, budget: int | None, progress: Callable[[LoadProgress], None]) -> None:
        """Have parts lie as the budget allows with a draft by this recipe."""
        self._placed.move(self._budget.plan_anew(recipe, budget, self.plan), progress)

    def _use_recipe(
        self, recipe: Recipe, progress: Callable[[LoadProgress], None], cancelled: Callable[[], bool]
    ) -> None:
        with self.kv.working(), self.interruptible(cancelled):  # rounding looks at passes over the sample
            try:
                steps = programme.build(self.config, self._weights.names, recipe)
                self._copies.prepare(steps, recipe, Watch(progress, cancelled))
                always = self._always()
                self._draft = make_draft(self.config, self._weights, self._copies, self._memory, recipe, always)
                self._tables = (self._placed.table, self._draft.table)
            except PassStopped as stop:
                raise LoadCancelled("Loading was cancelled.") from stop
            finally:
                self._weights.take_back()

    def find_fault(self, tokens: Sequence[int], position: int) -> str | None:
        """See Runner.find_fault. The parts of one pass, run one after the other over the same buffers."""
        first, count = 0, len(tokens)
        self._begin(tokens, position, 1)
        for stage in programme.stages(self._programme):
            self._placed.run(self._passes, first, stage.last + 1)
            rows = slice(count - 1 if stage.on_tail else 0, count)
            if not np.isfinite(self._memory.buffers[stage.buffer][rows]).all():
                return stage.name
            first = stage.last + 1
        return None

    def close(self) -> None:
        """See Runner.close."""
        self._held.close()

    def _begin(self, tokens: Sequence[int], position: int, wanted: int) -> None:
        if len(tokens) > CHUNK:
            raise ValueError(f"a pass takes at most {CHUNK} tokens, not {len(tokens)}")
        self._follow(position + len(tokens))
        self._passes.begin(tokens, position, wanted)

    def _follow(self, rows: int) -> None:
        """Have memory under the first rows of the range in use, and the tables point there."""
        self.kv.ensure(rows)
        if self.kv.index == self._bound:
            return
        before, self._memory = self._memory, replace(self._memory, cache=self.kv.layers)
        moved = self._memory.cache[0].ctypes.data - before.cache[0].ctypes.data
        for table in self._tables:
            move_cache(table, moved)
        self._bound = self.kv.index

    def _sample_statistics(self, cancelled: Callable[[], bool]) -> Statistics:
        return self.activation_statistics(self._sample, cancelled)

    def _sample_mlp_inputs(self, cancelled: Callable[[], bool]) -> tuple[np.ndarray, ...]:
        seen = MlpInputs(self._programme)
        self._watch_full_passes(seen, self._sample[:PLANE_SAMPLE], cancelled)
        return seen.layers()

    def _see_inputs(self, seen: InputStatistics | MlpInputs, tokens: Sequence[int], position: int) -> None:
        self._begin(tokens, position, len(tokens))
        seen.see(lambda first, last: self._placed.run(self._passes, first, last), self._memory.buffers, len(tokens))

    def _always(self) -> tuple[int, ...]:
        """Tokens that a reduced vocabulary always has."""
        first = () if self.config.bos_id is None else (self.config.bos_id,)
        return (*first, *self.config.eos_ids, *self._sample)


def fitting_chunk(rows: int, seconds: float) -> int:
    """Rows a prefill pass should have next, when one of `rows` took so long: a multiple of eight, at most doubled."""
    fitting = min(2.0 * rows, rows * CHUNK_SECONDS / max(seconds, 1e-9))
    return min(CHUNK, max(LEAST_CHUNK, int(fitting) // 8 * 8))


def spread_ids(vocabulary: int) -> tuple[int, ...]:
    """Tokens from all over a vocabulary, in place of a text where there is no tokenizer."""
    return tuple((i * 7919 + 13) % vocabulary for i in range(SPREAD))
