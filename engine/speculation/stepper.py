"""One block of a reply: drafted pass by pass, judged in one full pass. The same loop for every device."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.errors import NumericFault
from engine.sampling.accept import Branch, accept
from engine.speculation.block import DraftPass, JudgedBlock
from engine.speculation.controller import GammaController
from engine.speculation.cycle_plan import CyclePlan, Extras
from engine.speculation.drafter import Drafter, Proposal, Verdict
from engine.speculation.lookup import NOTHING, Found, SuffixIndex

LONGEST_LOOKUP = 10


class Stepper(Protocol):
    """Drafts and judges block after block of one reply."""

    @property
    def rows(self) -> int:
        """Rows of the widest full pass: the last known token and what is proposed after it."""
        ...

    def step(self, ids: Sequence[int], gamma: int, most: int) -> JudgedBlock | None:
        """Draft about `gamma` tokens after `ids`, at most `most`, and judge them; the cache covers ids[:-1].

        gamma 0 is a plain step. None when stopped. Raises NumericFault for a fault that plain decoding would meet.
        """
        ...


class CycleStepper:
    """Implements Stepper over a Drafter, by the controller's decisions. cascade, siblings: whether to use them."""

    def __init__(
        self,
        drafter: Drafter,
        controller: GammaController,
        stopped: Callable[[], bool],
        *,
        cascade: bool = True,
        siblings: bool = True,
    ) -> None:
        self._drafter, self._controller, self._stopped = drafter, controller, stopped
        self._index = SuffixIndex() if cascade else None
        self._siblings = siblings

    @property
    def rows(self) -> int:
        """See Stepper.rows."""
        return self._drafter.rows

    def step(self, ids: Sequence[int], gamma: int, most: int) -> JudgedBlock | None:
        """See Stepper.step."""
        if self._stopped():
            return None
        if self._index is not None:
            self._index.follow(ids)
        if gamma == 0 or most == 0:
            return self._plain(ids)
        self._drafter.begin(ids)
        plan = self._controller.plan(gamma, most)
        drafted = self._draft(plan, most)
        if drafted is None:
            return None
        found = self._find(drafted.block, most)
        most_siblings = self._drafter.most_siblings if self._siblings else 0
        extras = plan.extras(drafted.block, found, self._drafter.rows - 1 - len(drafted.block), most_siblings)
        verdict = self._drafter.verify([proposal.id for proposal in extras.tail], extras.siblings)
        judged = _judged(drafted, extras, found, verdict)
        # A row that plain decoding would never compute may be at fault, one behind a wrong proposal.
        return judged if _sound(judged) else self._plain(ids)

    def _plain(self, ids: Sequence[int]) -> JudgedBlock:
        self._drafter.begin(ids)
        judged = _judged(_Drafted(), Extras((), ()), NOTHING, self._drafter.verify((), ()))
        if not _sound(judged):
            raise NumericFault("NaN", len(ids))
        return judged

    def _draft(self, plan: CyclePlan, most: int) -> _Drafted | None:
        """The block; None when stopped."""
        drafted = _Drafted()
        while len(drafted.block) < most:
            found = self._find(drafted.block, most - 1)
            count = plan.next_pass(len(drafted.block), found, self._drafter.draft_rows)
            if count is None:
                break
            if self._stopped():
                return None
            if not drafted.add(self._drafter.step(found.ids[:count]), found.ids[:count]):
                break  # the cheap variant fails where the model need not
            plan.added(drafted.newest, count, found)
        return drafted

    def _find(self, block: Sequence[Proposal], most: int) -> Found:
        """What may follow the block, so that the chain is at most `most` long."""
        if self._index is None:
            return NOTHING
        return self._index.find([proposal.id for proposal in block], min(LONGEST_LOOKUP, most - len(block)))


@dataclass
class _Drafted:
    """A block as it grows, with the rows of each draft pass and the places where it chose what was looked up."""

    block: list[Proposal] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    agreed: list[tuple[int, ...]] = field(default_factory=list)
    newest: Sequence[Proposal] = ()

    def add(self, proposals: Sequence[Proposal], checked: Sequence[int]) -> bool:
        """Take what a pass returned; False where the draft failed before its own token."""
        first = len(self.block)
        equal = 0
        while equal < min(len(proposals), len(checked)) and proposals[equal].id == checked[equal]:
            equal += 1
        self.block.extend(proposals)
        self.rows.append(1 + len(checked))
        self.agreed.append(tuple(range(first, first + equal)))
        self.newest = proposals
        return len(proposals) > equal


def _judged(drafted: _Drafted, extras: Extras, found: Found, verdict: Verdict) -> JudgedBlock:
    chain = (*drafted.block, *extras.tail)
    branches = [
        Branch(plan.place, plan.id, following)
        for plan, following in zip(extras.siblings, verdict.sibling_ids, strict=True)
    ]
    return JudgedBlock(
        chain=chain,
        checked=len(drafted.block),
        chosen_ids=verdict.chosen_ids,
        chosen_probs=verdict.chosen_probs,
        chain_probs=verdict.chain_probs,
        acceptance=accept([proposal.id for proposal in chain], verdict.chosen_ids, branches),
        passes=tuple(map(DraftPass, drafted.rows, verdict.step_seconds, drafted.agreed)),
        verify_seconds=verdict.verify_seconds,
        siblings=extras.siblings,
        sibling_probs=verdict.sibling_probs,
        tail_length=found.length,
    )


def _sound(block: JudgedBlock) -> bool:
    """Whether the full model's rows that count are free of NaN."""
    counting = block.chosen_probs[: block.acceptance.agreed + 1]
    return all(map(math.isfinite, (*counting, block.next_prob)))
