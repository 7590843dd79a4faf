"""A model on a CUDA card: prompts and decode steps in captured Triton graphs over one set of weights and one cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial

import numpy as np
import torch

from engine.files.folder import ModelFolder
from engine.kernels.triton.choose_tiles import choose_tiles
from engine.kernels.triton.draft_memory import CODES_A_WORD, MAX_ROWS, DraftBuffers, DraftModel
from engine.kernels.triton.draft_step import DraftKernels
from engine.kernels.triton.judge import RANGE_UNIT
from engine.kernels.triton.sampled_choice import SampledChoice
from engine.kernels.triton.step import PROMPT_ROWS, StepKernels
from engine.kernels.triton.step_memory import StepBuffers
from engine.kernels.triton.wide_choice import WIDE_ROWS
from engine.model.card_draft import KeptRows, four_bit_copy
from engine.model.card_weights import CardWeights
from engine.model.decode_graphs import DecodeGraphs, DraftReport, Judgement
from engine.model.fused import shapes_of
from engine.model.ingredients import require_ingredients
from engine.model.runner import MAX_DECODE_ROWS, MAX_DRAFT_ROWS
from engine.model.torch_runner import TorchRunner
from engine.model.wide_pass import WidePass
from engine.offload.card_plan import CardPlan
from engine.offload.plan import Plan
from engine.offload.transfers import NONE, Transfers
from engine.recipe import Ingredients, Recipe
from engine.records import LoadProgress
from engine.settings import Sampling

SPREAD = 256  # tokens that stand in for a sample text


class GraphRunner(TorchRunner):
    """Implements engine.model.runner.Runner, and the passes of engine.speculation.card_drafter.

    One thread owns it and the card. Prompts, plain steps and verify passes are the same kernels with the same order of
    every sum, so a row of the cache has the same bits whoever wrote it: a reused prefix equals one read anew.
    """

    def __init__(
        self,
        folder: ModelFolder,
        capacity: int,
        recipe: Recipe | None,
        progress: Callable[[LoadProgress], None],
        cancelled: Callable[[], bool],
        device: str,
        allowed: int,
        sample: Sequence[int] = (),
        *,
        virtual_memory: bool = True,
        placed: CardPlan | None = None,
    ) -> None:
        """allowed: token ids from here on (rows that only pad the vocabulary) are never chosen.

        sample: ids of some real text, for what the draft's rounding must preserve; () where there is none.
        placed: which parts of the model are streamed; None for none. Raises SpecularError where RAM is too short for
        them.
        """
        self._packable = all(n % CODES_A_WORD == 0 for shape in shapes_of(folder.config).values() for n in shape[1:])
        plan = None if placed is None else placed.plan
        self._plan, self._pass_seconds, self._waited = plan, 0.0 if placed is None else placed.pass_seconds, 0.0
        self._placed = CardWeights(plan, torch.device(device))
        self._streamed = self._placed.streamed_names
        # A plan without a draft has no room for a copy; without one the controller finds that drafting does not pay.
        self._copies = self._packable and (plan is None or plan.draft > 0)
        self.ingredients = _ingredients(self._copies, streams=self._placed.streams)
        recipe = recipe or Recipe(weight_bits=4 if self._copies else 16)
        try:
            super().__init__(folder, capacity, recipe, progress, cancelled, device, virtual_memory=virtual_memory)
            try:
                self._make_ready(recipe, progress, cancelled, allowed, sample)
            except BaseException:
                self.kv.close()
                raise
        except BaseException:
            self._placed.close()
            raise

    def _make_ready(
        self,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None],
        cancelled: Callable[[], bool],
        allowed: int,
        sample: Sequence[int],
    ) -> None:
        """Everything beyond what the base class loads: fused weights, buffers, captured steps."""
        self._progress, self._cancelled = progress, cancelled
        self._allowed, self._sample = allowed, tuple(sample) or _spread_ids(self.config.vocabulary)
        self.kv.ensure(PROMPT_ROWS)  # that captured steps write when they are run once
        self._model = self._placed.fuse(self.config, self._weights, self._cache, self._cosine, self._sine)
        stream = self._placed.stream
        tiles, tuned = choose_tiles(shapes_of(self.config), self._embedding.dtype, self.device)
        self.kernels = f"Triton graphs ({'tuned' if tuned else 'default'} tiles)"
        self._buffers = StepBuffers(self.config, tiles, self._cosine.shape[0], self._model)
        self._kernels = StepKernels(self.config, self._model, self._buffers, tiles, allowed, stream)
        sampled = SampledChoice(self._buffers.state, self._buffers.floats, self._buffers.logits, allowed)
        self.graphs = DecodeGraphs(
            self._kernels,
            self._buffers,
            lambda done, total: progress(LoadProgress("Capturing graphs", done, total, 0, 0)),
            sampled,
            siblings=self._model.positions is None,
            weights=stream,
        )
        self.chunk = PROMPT_ROWS
        prompt_buffers = StepBuffers(self.config, tiles, self._cosine.shape[0], self._model, PROMPT_ROWS)
        prompt_kernels = StepKernels(self.config, self._model, prompt_buffers, tiles, allowed, stream)
        self.graphs.read_prompts_with(prompt_kernels, prompt_buffers)
        if stream is not None:
            wide_buffers = StepBuffers(self.config, tiles, self._cosine.shape[0], self._model, WIDE_ROWS)
            wide_kernels = StepKernels(self.config, self._model, wide_buffers, tiles, allowed, stream)
            self._wide = WidePass(self.graphs, wide_kernels, wide_buffers)
        self._copy: DraftModel | None = None
        self._kept: KeptRows | None = None
        # Range, position and token that the card's state stands at.
        self._ready: tuple[int, int, int] | None = None
        self._capture_draft(recipe)

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        """See Runner.full. Wanted rows come from a decode step, the rows before them from passes over the prompt."""
        self._ready = None
        prompt = len(tokens) - wanted
        for first in range(0, prompt, PROMPT_ROWS):
            self.kv.ensure(position + first + PROMPT_ROWS)
            part = tokens[first : min(first + PROMPT_ROWS, prompt)]
            self.graphs.read_prompt(position + first, part, self._range_units())
        if self._kept is not None and prompt:
            self._kept.meet(tokens[:prompt])
        if wanted == 0:
            self.graphs.synchronize()  # so that progress is honest and a stop comes soon
            return np.empty((0, self.config.vocabulary), np.float32)
        self._begin(position + prompt, tokens[prompt:])
        self.graphs.run_full(wanted)
        return self.graphs.logits(wanted).numpy()

    def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
        """See Runner.draft."""
        widest, logits = self.graphs.draft_rows, []
        for first in range(0, len(tokens), widest):
            part = tokens[first : first + widest]
            self._begin(position + first, part)
            if self._kept is not None:
                self._buffers.logits[: len(part)].fill_(float("-inf"))
                torch.cuda.current_stream().synchronize()
            self.graphs.run_draft(len(part))
            logits.append(self.graphs.logits(len(part)).numpy())
        self._ready = None
        return np.concatenate(logits)

    @property
    def decode_rows(self) -> int:  # type: ignore[override]
        """See Runner.decode_rows. Where weights are brought in for each pass, its rows cost nothing."""
        return WIDE_ROWS if self._placed.streams and self.graphs.greedy else MAX_DECODE_ROWS

    @property
    def most_siblings(self) -> int:
        """See engine.speculation.card_drafter. A wide pass has none: a longer chain brings more there."""
        return 0 if self.decode_rows > MAX_DECODE_ROWS else self.graphs.most_siblings

    @property
    def draft_rows(self) -> int:
        """See engine.speculation.card_drafter."""
        return self.graphs.draft_rows

    def choose_by(self, settings: Sampling, seed: int, history: Sequence[int]) -> None:
        """How the cycles that follow choose tokens. history: all ids so far."""
        self.graphs.choose_by(settings, seed, history)

    def begin_cycle(self, token: int, position: int) -> None:
        """Start a cycle after `token` at `position`; without an upload where the card is there already."""
        if self._ready == (self.kv.index, position, token):
            self.kv.ensure(position + self.decode_rows + MAX_DRAFT_ROWS)
        else:
            self._begin(position, (token,))
        self._ready, self._at, self._token = None, position, token

    def draft_step(self, drafted: int, proposals: Sequence[int]) -> DraftReport:
        """A draft step behind `drafted` proposals of the block; waits for what it adds."""
        if self.graphs.is_ahead and (drafted or proposals):
            self._begin(self._at, (self._token,))
        return self.graphs.draft(drafted, proposals)

    def judge(self, chain: Sequence[int], checked: int, siblings: Sequence[tuple[int, int]]) -> Judgement:
        """The full pass that ends a cycle: see DecodeGraphs.judge and, for more rows, WidePass.judge."""
        began = time.perf_counter()
        try:
            return self._judge(chain, checked, siblings)
        finally:
            if self._placed.streams:
                self._waited += max(0.0, time.perf_counter() - began - self._pass_seconds)

    def _judge(self, chain: Sequence[int], checked: int, siblings: Sequence[tuple[int, int]]) -> Judgement:
        if 1 + len(chain) > MAX_DECODE_ROWS:
            return self._wide.judge(self._at, (self._token, *chain), self._range_units())
        if self.graphs.is_ahead:
            self._begin(self._at, (self._token,))
        result = self.graphs.judge(chain, checked, siblings)
        last = result.taken or result.accepted
        self._ready = (self.kv.index, self._at + result.accepted + 1 + (result.taken > 0), result.chosen[last])
        return result

    def draft_ahead(self) -> None:
        """Begin the next cycle's first draft step while the host does other things."""
        if self._ready is not None and self._ready[1] < self.capacity:
            self.graphs.draft_ahead()

    def timed_full(self, tokens: Sequence[int], position: int) -> float:
        """See engine.calibration.timing: seconds of the card for a full pass over at most sixteen tokens."""
        self._ready = None
        self._begin(position, tokens)
        return self.graphs.timed(partial(self.graphs.run_full, len(tokens)))

    def timed_draft(self, tokens: Sequence[int], position: int) -> float:
        """See engine.calibration.timing: seconds of the card for the draft steps that so many tokens take."""
        widest, seconds = self.graphs.draft_rows, 0.0
        self._ready = None
        for first in range(0, len(tokens), widest):
            part = tokens[first : first + widest]
            self._begin(position + first, part)
            seconds += self.graphs.timed(partial(self.graphs.run_draft, len(part)))
        return seconds

    def use_recipe(
        self,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """See Runner.use_recipe."""
        require_ingredients(recipe, "this card", self.ingredients)
        self._progress, self._cancelled = progress, cancelled
        if hasattr(self, "graphs"):  # not while the base class loads
            with self.kv.scratch(), self.kv.anchored():  # what is captured runs once, on rows that nobody reads
                self._begin(0, (0,))
                self._capture_draft(recipe)
        self._recipe = recipe

    def refresh_neurons(self) -> None:
        """See Runner.refresh_neurons: there are none to choose."""

    def release_copies(self, kept: Collection[int]) -> None:
        """See Runner.release_copies. The captured steps of the recipe in force keep theirs."""
        if 4 not in kept and self._recipe.weight_bits != 4:
            self._copy, self.draft_bytes = None, 0

    def _capture_draft(self, recipe: Recipe) -> None:
        """Capture the draft steps of a recipe; the low-bit copy is made when it is first asked for."""

        def progress(done: int, total: int) -> None:
            self._progress(LoadProgress("Capturing the draft", done, total, 0, 0))

        self._ready = None
        skipped = frozenset(recipe.skipped_attention), frozenset(recipe.skipped_mlp)
        if recipe.weight_bits == 16:
            attention, mlp, report = recipe.skipped_attention, recipe.skipped_mlp, self._buffers.report
            whole = self._kernels
            self.graphs.use_draft(
                lambda rows, choice: whole.draft(attention, mlp, report, choice),
                1,
                progress,
                streams=self._placed.streams,
            )
            self._kept = None
            return
        if self._copy is None:
            sample = self._sample[: self.capacity]
            complete, inputs = self._placed.with_output(self._model), self.sample_inputs(sample)
            self._copy = four_bit_copy(complete, inputs, self._progress, self._cancelled, self._placed.whole)
            self.draft_bytes = self._copy.nbytes
        kept = None
        if recipe.reduced_vocabulary is not None and recipe.reduced_vocabulary < self.config.vocabulary:
            kept = KeptRows(self._copy, recipe.reduced_vocabulary, self._always())
        model = self._copy if kept is None else kept.model
        b = self._buffers
        buffers = DraftBuffers(self.config, model, b.state, b.logits, b.report)
        draft = DraftKernels(
            self.config,
            model,
            buffers,
            self._allowed,
            skipped_attention=skipped[0],
            skipped_mlp=skipped[1],
            window=recipe.kv_window or 0,
        )
        self.graphs.use_draft(draft.step, MAX_ROWS, progress)
        self._kept = kept

    @property
    def plan(self) -> Plan | None:
        """See Runner.plan."""
        return self._plan

    @property
    def transfers(self) -> Transfers:
        """See Runner.transfers. Passes waited for what they took beyond their kernels at the card's own speed."""
        stream = self._placed.stream
        return NONE if stream is None else Transfers(stream.brought_bytes, self._waited)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what did not go as it should; nothing fails for it."""
        return self._placed.notes

    def close(self) -> None:
        """See Runner.close."""
        super().close()
        self._placed.close()

    def _begin(self, position: int, tokens: Sequence[int]) -> None:
        self.kv.ensure(position + self.decode_rows + MAX_DRAFT_ROWS)
        torch.cuda.current_stream().synchronize()  # what was written there comes first
        self.graphs.begin(position, tokens, self._range_units())

    def _range_units(self) -> int:
        """Where the conversation's rows lie, as kernels want it."""
        return self.kv.offset // self._cache[0].element_size() // RANGE_UNIT

    def _always(self) -> tuple[int, ...]:
        """Tokens that a reduced vocabulary always has."""
        first = () if self.config.bos_id is None else (self.config.bos_id,)
        return (*first, *self.config.eos_ids, *self._sample)


def _ingredients(copies: bool, *, streams: bool) -> Ingredients:
    """What a draft in captured graphs can be made with; copies: whether it can have low-bit weights of its own.

    streams: parts of the model have to be brought in for each pass, so that a draft had better have its own.
    """
    if not copies:
        return Ingredients()
    if streams:
        return Ingredients(weight_bits=(4,), reduced_vocabulary=True, kv_window=True)
    return Ingredients(weight_bits=(16, 4), reduced_vocabulary=True, kv_window=True)


def _spread_ids(vocabulary: int) -> tuple[int, ...]:
    return tuple((i * 7919 + 13) % vocabulary for i in range(SPREAD))
