"""The draft of a model on a card: its low-bit copy, made when it is first asked for, and its captured steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from engine.files.config import ModelConfig
from engine.kernels.triton.draft_memory import MAX_ROWS, DraftBuffers
from engine.kernels.triton.draft_step import DraftKernels
from engine.model.card_copy import CardCopy
from engine.model.card_draft import KeptRows
from engine.model.card_steps import CardMemory, CardSteps
from engine.offload.plan import Plan
from engine.offload.weight_stream import WeightStream
from engine.recipe import Recipe

Progress = Callable[[int, int], None]  # (done, total)


class CardDrafting:
    """Captures the draft steps of one recipe after the other. The copy stays until it is released."""

    def __init__(
        self,
        config: ModelConfig,
        device: torch.device,
        always: Sequence[int],
        fill: Callable[[CardCopy], None],
    ) -> None:
        """always: tokens that a reduced vocabulary always has. fill: makes the copy, part by part."""
        self._config, self._device, self._always, self._fill = config, device, tuple(always), fill
        self._copy: CardCopy | None = None
        self.kept: KeptRows | None = None

    @property
    def has_copy(self) -> bool:
        """Whether the low-bit copy has been made."""
        return self._copy is not None

    @property
    def nbytes(self) -> int:
        """Bytes of the copy, wherever its parts lie."""
        return 0 if self._copy is None else self._copy.nbytes

    @property
    def stream(self) -> WeightStream | None:
        """What brings in parts of the copy for every step; None where all are on the card."""
        return None if self._copy is None else self._copy.stream

    @property
    def brought_bytes(self) -> int:
        """Bytes that draft steps have brought in so far."""
        return 0 if self._copy is None else self._copy.brought_bytes

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what did not go as it should."""
        return () if self._copy is None else self._copy.notes

    def capture(
        self, recipe: Recipe, steps: CardSteps, memory: CardMemory, plan: Plan | None, progress: Progress
    ) -> None:
        """Capture the steps of a recipe beside the full model's. plan: where parts of a copy that is yet to be made
        are to lie. Raises what `fill` raises; the steps before are then still there."""
        b = memory.steps
        if recipe.weight_bits == 16:
            attention, mlp, whole = recipe.skipped_attention, recipe.skipped_mlp, steps.kernels
            steps.graphs.use_draft(
                lambda rows, choice: whole.draft(attention, mlp, b.report, choice),
                1,
                progress,
                steps.graphs.weights,
                full=True,
            )
            self.kept = None
            return
        if self._copy is None:
            self._copy = self._made(plan)
        kept, model = None, self._copy.model()
        if recipe.reduced_vocabulary is not None and recipe.reduced_vocabulary < self._config.vocabulary:
            kept = KeptRows(model, recipe.reduced_vocabulary, self._always)
            model = kept.model
        draft = DraftKernels(
            self._config,
            model,
            DraftBuffers(self._config, model, b.state, b.logits, b.report),
            memory.allowed,
            skipped_attention=frozenset(recipe.skipped_attention),
            skipped_mlp=frozenset(recipe.skipped_mlp),
            window=recipe.kv_window or 0,
            weights=self._copy.stream,
        )
        steps.graphs.use_draft(draft.step, MAX_ROWS, progress, self._copy.stream)
        self.kept = kept

    def move(self, plan: Plan | None, progress: Progress) -> None:
        """Have the parts of the copy lie by another plan; no captured step may use it any more. See CardCopy.move."""
        if self._copy is not None:
            self._copy.move(None if plan is None else plan.draft_placement, progress)

    def release(self) -> None:
        """Give the copy back. Captured steps that use it keep the matrices that lie on the card."""
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def _made(self, plan: Plan | None) -> CardCopy:
        copy = CardCopy(None if plan is None else plan.draft_placement, self._device)
        try:
            self._fill(copy)
        except BaseException:
            copy.close()
            raise
        return copy
