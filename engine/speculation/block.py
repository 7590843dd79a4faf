"""A block that was drafted and judged: what the reply loop, the controller and the benchmarks read of a cycle."""

from __future__ import annotations

from dataclasses import dataclass

from engine.records import Sibling
from engine.sampling.accept import Acceptance
from engine.speculation.drafter import Proposal, SiblingPlan


@dataclass(frozen=True, slots=True)
class DraftPass:
    """One draft pass. rows: the last token and the proposals it checked. agreed: places of the chain whose token was
    looked up and then chosen by the draft too."""

    rows: int
    seconds: float
    agreed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedBlock:
    """A chain of proposals, its siblings, and what the full model says of them.

    chain: what the draft chose (the first `checked`), then a tail of look-ups that nobody checked.
    chosen_ids, chosen_probs: the full model's token after each prefix of the chain, one more than the chain is long;
        -1 and NaN where it was not computed, behind the first wrong one.
    chain_probs: the full model's probability of each of the chain.
    sibling_probs: of its token after each sibling. tail_length: how long the suffix was that the tail was found by.
    """

    chain: tuple[Proposal, ...]
    checked: int
    chosen_ids: tuple[int, ...]
    chosen_probs: tuple[float, ...]
    chain_probs: tuple[float, ...]
    acceptance: Acceptance
    passes: tuple[DraftPass, ...] = ()
    verify_seconds: float = 0.0
    siblings: tuple[SiblingPlan, ...] = ()
    sibling_probs: tuple[float, ...] = ()
    tail_length: int = 0

    @property
    def chain_ids(self) -> tuple[int, ...]:
        """The chain's tokens."""
        return tuple(proposal.id for proposal in self.chain)

    @property
    def draft_seconds(self) -> float:
        """Time of all draft passes."""
        return sum(draft.seconds for draft in self.passes)

    @property
    def looked_up(self) -> int:
        """Tokens of the chain that were found rather than computed."""
        return len(self.chain) - self.checked + sum(len(draft.agreed) for draft in self.passes)

    @property
    def next_prob(self) -> float:
        """The full model's probability of its own token after what was accepted."""
        taken = self.acceptance.sibling
        return self.chosen_probs[self.acceptance.agreed] if taken is None else self.sibling_probs[taken]

    @property
    def tested_probs(self) -> tuple[float, ...]:
        """The full model's probability of each tested proposal of the chain."""
        return self.chain_probs[: self.acceptance.agreed + 1]

    def sibling_records(self) -> tuple[Sibling, ...]:
        """The siblings as a cycle record has them."""
        taken, agreed = self.acceptance.sibling, self.acceptance.agreed
        return tuple(
            Sibling(
                plan.place, plan.id, plan.prob, number == taken, self.chosen_probs[agreed] if number == taken else None
            )
            for number, plan in enumerate(self.siblings)
        )
