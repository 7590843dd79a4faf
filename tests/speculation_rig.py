"""Judged blocks made by hand, and drafters that follow a script."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from engine.sampling.accept import accept
from engine.speculation.block import DraftPass, JudgedBlock
from engine.speculation.drafter import Proposal, SiblingPlan, Verdict

RIGHT, WRONG = 1, 2


def block(
    probs: Sequence[float], accepted: int, draft_seconds: float, verify_seconds: float, rows: int = 1
) -> JudgedBlock:
    """A chain of proposals with these probabilities, of which the first `accepted` are right; one pass a token."""
    chain = tuple(Proposal(RIGHT if i < accepted else WRONG, prob) for i, prob in enumerate(probs))
    chosen = (RIGHT,) * (len(chain) + 1)
    return JudgedBlock(
        chain=chain,
        checked=len(chain),
        chosen_ids=chosen,
        chosen_probs=(0.9,) * len(chosen),
        chain_probs=(0.9,) * len(chain),
        acceptance=accept([proposal.id for proposal in chain], chosen),
        passes=tuple(DraftPass(rows, draft_seconds / len(chain)) for _ in chain),
        verify_seconds=verify_seconds,
    )


class ScriptedDrafter:
    """Drafts and judges by functions of the tokens so far, and notes what it was asked.

    draft(ids): (best, second) after ids. full(ids): the full model's token after ids. Every probability is one half.
    seconds(kind, rows): what a pass takes. fault(ids): whether the full model's row after ids is NaN.
    """

    def __init__(
        self,
        draft: Callable[[tuple[int, ...]], tuple[int, int]],
        full: Callable[[tuple[int, ...]], int],
        *,
        most_siblings: int = 14,
        draft_rows: int = 8,
        rows: int = 16,
        seconds: Callable[[str, int], float] = lambda kind, rows: 1.0 if kind == "full" else 0.2,
        fault: Callable[[tuple[int, ...]], bool] = lambda ids: False,
    ) -> None:
        self.most_siblings, self.draft_rows, self.rows = most_siblings, draft_rows, rows
        self._draft, self._full, self._seconds, self._fault = draft, full, seconds, fault
        self.begun: list[tuple[int, ...]] = []
        self.steps: list[tuple[int, ...]] = []
        self.verified: list[tuple[tuple[int, ...], tuple[SiblingPlan, ...]]] = []

    def begin(self, ids: Sequence[int]) -> None:
        self._ids: tuple[int, ...] = tuple(ids)
        self._block: list[Proposal] = []
        self._times: list[float] = []
        self.begun.append(self._ids)

    def step(self, proposals: Sequence[int]) -> list[Proposal]:
        assert len(proposals) < self.draft_rows
        self.steps.append(tuple(proposals))
        self._times.append(self._seconds("draft", 1 + len(proposals)))
        added = []
        for proposal in (*proposals, None):
            best, second = self._draft((*self._ids, *(p.id for p in self._block)))
            added.append(Proposal(best, 0.5, second, 0.25))
            self._block.append(added[-1])
            if best != proposal:
                break
        return added

    def verify(self, tail: Sequence[int], siblings: Sequence[SiblingPlan]) -> Verdict:
        chain = (*(p.id for p in self._block), *tail)
        assert 1 + len(chain) + len(siblings) <= self.rows
        assert [plan.place for plan in siblings] == sorted(plan.place for plan in siblings)
        self.verified.append((chain, tuple(siblings)))
        rows = [(*self._ids, *chain[:i]) for i in range(len(chain) + 1)]
        beside = [(*self._ids, *chain[: plan.place], plan.id) for plan in siblings]
        return Verdict(
            chosen_ids=tuple(self._full(row) for row in rows),
            chosen_probs=tuple(math.nan if self._fault(row) else 0.5 for row in rows),
            chain_probs=(0.5,) * len(chain),
            sibling_ids=tuple(self._full(row) for row in beside),
            sibling_probs=tuple(math.nan if self._fault(row) else 0.5 for row in beside),
            step_seconds=tuple(self._times),
            verify_seconds=self._seconds("full", 1 + len(chain) + len(siblings)),
        )
