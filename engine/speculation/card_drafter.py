"""Drafts and full passes on a card: a drafter over captured steps, whose state stays on the card."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from engine.sampling.sampler import Sampler
from engine.settings import Sampling
from engine.speculation.drafter import Proposal, SiblingPlan, Verdict

if TYPE_CHECKING:
    from engine.model.card_reports import DraftReport, Judgement


@runtime_checkable
class CardPasses(Protocol):
    """A runner whose passes hand the state of a cycle on by themselves."""

    @property
    def decode_rows(self) -> int:
        """Rows of the widest full pass that can end the cycle."""
        ...

    @property
    def most_siblings(self) -> int:
        """Sibling rows that the next full pass can carry."""
        ...

    @property
    def draft_rows(self) -> int:
        """Rows of the widest draft step."""
        ...

    def choose_by(self, settings: Sampling, seed: int, history: Sequence[int]) -> None:
        """How the passes that follow choose tokens. history: all ids so far."""
        ...

    def begin_cycle(self, token: int, position: int) -> None:
        """Start a cycle after `token`, which stands at `position`."""
        ...

    def draft_step(self, drafted: int, proposals: Sequence[int]) -> DraftReport:
        """A draft pass behind `drafted` tokens of the block, over the last of them and the proposals."""
        ...

    def judge(self, chain: Sequence[int], checked: int, siblings: Sequence[tuple[int, int]]) -> Judgement:
        """The full pass over a chain, whose first `checked` tokens are the block, and siblings (place, id)."""
        ...

    def draft_ahead(self) -> None:
        """Begin the next cycle's first draft pass, of one row: it runs while the host does other things."""
        ...


class CardDrafter:
    """Implements engine.speculation.drafter.Drafter. Times are the host's: what a cycle waits for is what it costs."""

    def __init__(self, passes: CardPasses, sampler: Sampler) -> None:
        self._passes, self._sampler = passes, sampler
        self._known: int | None = None  # tokens at the last begin
        self._block: list[int] = []
        self._seconds: list[float] = []
        passes.choose_by(sampler.settings, sampler.seed, ())

    @property
    def rows(self) -> int:
        """See Drafter.rows."""
        return self._passes.decode_rows

    @property
    def most_siblings(self) -> int:
        """See Drafter.most_siblings."""
        return self._passes.most_siblings

    @property
    def draft_rows(self) -> int:
        """See Drafter.draft_rows."""
        return self._passes.draft_rows

    def begin(self, ids: Sequence[int]) -> None:
        """See Drafter.begin."""
        if self._known in (None, len(ids)):  # the first cycle, or one repeated: its pass has marked tokens as seen
            self._passes.choose_by(self._sampler.settings, self._sampler.seed, ids)
        self._passes.begin_cycle(ids[-1], len(ids) - 1)
        self._known, self._block, self._seconds = len(ids), [], []

    def step(self, proposals: Sequence[int]) -> list[Proposal]:
        """See Drafter.step."""
        began = time.perf_counter()
        report = self._passes.draft_step(len(self._block), proposals)
        self._seconds.append(time.perf_counter() - began)
        added = []
        for token, prob, second, second_prob in zip(
            report.ids, report.probs, report.seconds, report.second_probs, strict=True
        ):
            if not math.isfinite(prob):
                break  # the cheap variant computed nonsense
            added.append(Proposal(token, prob, None if second < 0 else second, second_prob))
        self._block.extend(proposal.id for proposal in added)
        return added

    def verify(self, tail: Sequence[int], siblings: Sequence[SiblingPlan]) -> Verdict:
        """See Drafter.verify."""
        began = time.perf_counter()
        plan = [(sibling.place, sibling.id) for sibling in siblings]
        chain = (*self._block, *tail)
        result = self._passes.judge(chain, len(self._block), plan)
        seconds = time.perf_counter() - began
        if self._block:
            self._passes.draft_ahead()  # most cycles that drafted are followed by another that begins with one row
        rows = 1 + len(chain)
        return Verdict(
            chosen_ids=result.chosen[:rows],
            chosen_probs=result.chosen_probs[:rows],
            chain_probs=result.chain_probs,
            sibling_ids=result.chosen[rows:],
            sibling_probs=result.chosen_probs[rows:],
            step_seconds=tuple(self._seconds),
            verify_seconds=seconds,
        )
