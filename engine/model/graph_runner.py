"""A model on a CUDA card: prompts and decode steps in captured Triton graphs over one set of weights and one cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial

import numpy as np
import torch

from engine.errors import BadSetting, SpecularError
from engine.files.folder import ModelFolder
from engine.kernels.triton.choose_tiles import choose_tiles
from engine.kernels.triton.draft_memory import CODES_A_WORD
from engine.kernels.triton.judge import RANGE_UNIT
from engine.kernels.triton.step import PROMPT_ROWS
from engine.kernels.triton.wide_choice import WIDE_ROWS
from engine.model.card_copy import CardCopy
from engine.model.card_draft import four_bit_copy
from engine.model.card_drafting import CardDrafting
from engine.model.card_placement import CardPlacement
from engine.model.card_reports import DraftReport, Judgement
from engine.model.card_steps import CardMemory, CardSteps
from engine.model.card_weights import away
from engine.model.decode_graphs import GREEDY, DecodeGraphs
from engine.model.fused import shapes_of
from engine.model.ingredients import card_ingredients, require_ingredients
from engine.model.runner import MAX_DECODE_ROWS, MAX_DRAFT_ROWS
from engine.model.torch_runner import TorchRunner
from engine.offload.card_plan import CardPlan, CardPlanner
from engine.offload.demands import CARD_FIXED
from engine.offload.plan import Plan, arrangement
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
        planner: CardPlanner,
        budget: int | None = None,
        virtual_memory: bool = True,
    ) -> None:
        """allowed: token ids from here on (rows that only pad the vocabulary) are never chosen.

        sample: ids of some real text, for what the draft's rounding must preserve; () where there is none.
        planner, budget: by which parts of the model are streamed. Raises as CardPlanner.plan, and SpecularError where
        RAM is too short for what is streamed.
        """
        packable = all(n % CODES_A_WORD == 0 for shape in shapes_of(folder.config).values() for n in shape[1:])
        self._placement, self._waited = CardPlacement(folder, planner, budget, torch.device(device)), 0.0
        self._placed, plan = self._placement.weights, self._placement.plan
        self._streamed = self._placed.names_away
        # A plan without a draft has no room for a copy; without one the controller finds that drafting does not pay.
        self._copies = packable and (plan is None or plan.draft > 0)
        self._steps: CardSteps | None = None  # until the base class has loaded, and while parts move
        recipe = recipe or Recipe(weight_bits=4 if self._copies else 16)
        try:
            super().__init__(folder, capacity, recipe, progress, cancelled, device, virtual_memory=virtual_memory)
            try:
                self._make_ready(recipe, progress, cancelled, allowed, sample)
            except BaseException:
                self.kv.close()
                raise
        except BaseException:
            self._placement.close()
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
        model = self._placed.fuse(self.config, self._weights, self._cache, self._cosine, self._sine)
        tiles, tuned = choose_tiles(shapes_of(self.config), self._embedding.dtype, self.device)
        self.kernels = f"Triton graphs ({'tuned' if tuned else 'default'} tiles)"
        self._drafting = CardDrafting(self.config, self.device, self._always(), self._fill_copy)
        self._memory = CardMemory(self.config, model, tiles, self._cosine.shape[0], allowed, PROMPT_ROWS)
        self.chunk = PROMPT_ROWS
        # Range, position and token that the card's state stands at.
        self._ready: tuple[int, int, int] | None = None
        self._capture(recipe)

    def _capture(self, recipe: Recipe, mode: int = GREEDY) -> None:
        """Capture all steps over the parts as they lie now."""
        model, stream, host = self._placed.model(), self._placed.stream, self._placement.host
        self._steps = CardSteps(self._memory, model, stream, host, self._progress, mode, self._range_units())
        self._capture_draft(recipe)

    @property
    def graphs(self) -> DecodeGraphs:
        """The captured steps."""
        if self._steps is None:  # parts do not move while steps run
            raise SpecularError("Moving parts of the model failed, and so did the way back: load it again.")
        return self._steps.graphs

    @property
    def ingredients(self) -> Ingredients:  # type: ignore[override]
        """See Runner.ingredients."""
        return card_ingredients(self._copies, whole=self._placed.is_whole)

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        """See Runner.full. Wanted rows come from a decode step, the rows before them from passes over the prompt."""
        self._ready = None
        prompt = len(tokens) - wanted
        for first in range(0, prompt, PROMPT_ROWS):
            self.kv.ensure(position + first + PROMPT_ROWS)
            part = tokens[first : min(first + PROMPT_ROWS, prompt)]
            self.graphs.read_prompt(position + first, part, self._range_units())
        if self._drafting.kept is not None and prompt:
            self._drafting.kept.meet(tokens[:prompt])
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
            if self._drafting.kept is not None:
                self._memory.steps.logits[: len(part)].fill_(float("-inf"))
                torch.cuda.current_stream().synchronize()
            self.graphs.run_draft(len(part))
            logits.append(self.graphs.logits(len(part)).numpy())
        self._ready = None
        return np.concatenate(logits)

    @property
    def decode_rows(self) -> int:  # type: ignore[override]
        """See Runner.decode_rows. Where weights are brought in for each pass, its rows cost nothing."""
        drafts_wait = self._drafting.stream is not None  # a long chain would cost too many steps
        wide = self._placed.streams and self.graphs.greedy and not drafts_wait
        return WIDE_ROWS if wide else MAX_DECODE_ROWS

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
                self._waited += max(0.0, time.perf_counter() - began - self._placement.found.pass_seconds)

    def _judge(self, chain: Sequence[int], checked: int, siblings: Sequence[tuple[int, int]]) -> Judgement:
        if 1 + len(chain) > MAX_DECODE_ROWS:
            assert self._steps is not None and self._steps.wide is not None  # see decode_rows
            return self._steps.wide.judge(self._at, (self._token, *chain), self._range_units())
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
        if self._steps is not None:  # not while the base class loads
            with self.kv.scratch(), self.kv.anchored():  # what is captured runs once, on rows that nobody reads
                self._begin(0, (0,))
                self._capture_draft(recipe)
        self._recipe = recipe

    def refresh_neurons(self) -> None:
        """See Runner.refresh_neurons: there are none to choose."""

    def release_copies(self, kept: Collection[int]) -> None:
        """See Runner.release_copies. The captured steps of the recipe in force keep theirs."""
        if 4 not in kept and self._recipe.weight_bits != 4:
            self._drafting.release()
            self.draft_bytes = 0

    def use_budget(self, budget: int | None, progress: Callable[[LoadProgress], None] = lambda _: None) -> None:
        """See Runner.use_budget."""
        if self.kv.reason is not None and self.kv.replying:
            raise SpecularError("Parts can move between replies only, because the KV cache is a plain tensor.")
        draft = True if self._drafting.has_copy else None if self._copies else False
        found = self._placement.planned(budget, self._held(), draft=draft)
        if away(found.plan) and self._copies and self._recipe.weight_bits == 16:
            raise BadSetting(
                "The draft has the model's own 16 bit weights, so all of them must be on the card: "
                "take a draft of 4 bits first, or a larger budget."
            )
        if not self._placement.lies_as(found):
            same_bits = self._placement.rounds_as(found)
            self._rearrange(found, progress)
            if not same_bits:
                self.kv.distrust()
        self._placement.settle(found, budget)

    def relieve(self, progress: Callable[[LoadProgress], None] = lambda _: None) -> bool:
        """See Runner.relieve. Between replies only where the KV cache is a plain tensor."""
        stuck = self.kv.reason is not None and self.kv.replying
        if stuck or not self._placement.pressed:
            return False
        before = arrangement(self.plan)
        self.use_budget(self._placement.asked, progress)
        return arrangement(self.plan) != before

    def _rearrange(self, found: CardPlan, progress: Callable[[LoadProgress], None]) -> None:
        """Have parts lie by another plan, with all steps captured anew; as before, where that fails."""
        before, mode = self._placement.found, self.graphs.mode
        self._progress, self._cancelled = progress, lambda: False
        with self.kv.scratch(), self.kv.anchored():  # what is captured runs once, on rows that nobody reads
            self._begin(0, (0,))
            self.graphs.synchronize()
            self._ready = self._steps = self._drafting.kept = None
            try:
                self._placement.move(found, self._weights, self._drafting, progress)
                self._capture(self._recipe, mode)
            except BaseException:
                self._steps = None
                self._placement.move(before, self._weights, self._drafting, progress)
                self._capture(self._recipe, mode)
                raise

    def _held(self) -> int:
        """Bytes of the card that the model has."""
        rows = self.kv.report().mapped + self.kv.report().pool if self.kv.reason is None else 0
        return torch.cuda.memory_reserved(self.device) + rows + CARD_FIXED

    def _capture_draft(self, recipe: Recipe) -> None:
        """Capture the draft steps of a recipe; the low-bit copy is made when it is first asked for."""

        def progress(done: int, total: int) -> None:
            self._progress(LoadProgress("Capturing the draft", done, total, 0, 0))

        assert self._steps is not None  # captured just before
        self._ready = None
        self._drafting.capture(recipe, self._steps, self._memory, self.plan, progress)
        self.draft_bytes = self._drafting.nbytes

    def _fill_copy(self, copy: CardCopy) -> None:
        """Make the four-bit copy, rounded by what a sample text needs. Raises LoadCancelled."""
        complete = self._placed.with_output(self._placed.model())
        inputs = self.sample_inputs(self._sample[: self.capacity])
        copy.finish(four_bit_copy(complete, inputs, self._progress, self._cancelled, self._placed.whole, copy.take))

    @property
    def plan(self) -> Plan | None:
        """See Runner.plan."""
        return self._placement.plan

    @property
    def transfers(self) -> Transfers:
        """See Runner.transfers. Passes waited for what they took beyond their kernels at the card's own speed."""
        streamed = self._placed.brought_bytes + self._drafting.brought_bytes
        return Transfers(streamed, self._waited) if streamed else NONE

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what did not go as it should; nothing fails for it."""
        return (*self._placement.notes, *self._drafting.notes)

    def close(self) -> None:
        """See Runner.close."""
        self._steps = None
        super().close()
        self._drafting.release()
        self._placement.close()

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


def _spread_ids(vocabulary: int) -> tuple[int, ...]:
    return tuple((i * 7919 + 13) % vocabulary for i in range(SPREAD))
