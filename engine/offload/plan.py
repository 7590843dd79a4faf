"""A plan: where each part of a model lies, what that takes of the fast memory, and how fast it should be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from engine.offload.parts import Part
from engine.recipe import Recipe


class Residency(str, Enum):
    """Where a part lies and is computed."""

    RESIDENT = "resident"  # in the fast memory
    STREAMED = "streamed"  # in the slow memory, brought into a slot for every full pass
    HOST = "computed on the CPU"


@dataclass(frozen=True, slots=True)
class DraftPlacement:
    """A draft's copy that does not fit as a whole: some of its parts are brought in for every draft step.

    parts: of the copy, numbered as the model's. slots: as Plan's.
    """

    parts: tuple[Part, ...]
    residency: tuple[Residency, ...]
    slots: int
    slot_bytes: int

    @property
    def streamed(self) -> tuple[Part, ...]:
        """The parts that take turns in the slots."""
        pairs = zip(self.parts, self.residency, strict=True)
        return tuple(part for part, lies in pairs if lies is Residency.STREAMED)


@dataclass(frozen=True, slots=True)
class Plan:
    """Bytes and seconds of one model under one budget.

    residency: of each of `parts`. slots: places in the fast memory that streamed parts take turns in, each of
    `slot_bytes`, as large as the largest streamed part; 0 where nothing is streamed.
    always: embedding, norms and biases. draft: of the draft's own copy, slots with it; 0 without one. kv: rows of the
    KV cache that are counted on. workspace: activations, graphs, the context. margin: kept free. others: of other
    programs.
    plain_seconds: of a plain step. verify_seconds: of a full pass over a whole block; draft_seconds: of a draft step.
    tokens_per_cycle: expected, with the block length that `speed_up` is best at; gamma is 0 where there is no draft.
    recipe: of the draft that `draft` is the copy of; None without one.
    draft_placement: None where the whole copy is in the fast memory.
    """

    budget: int
    parts: tuple[Part, ...]
    residency: tuple[Residency, ...]
    slots: int
    slot_bytes: int
    always: int
    draft: int
    kv: int
    workspace: int
    margin: int
    others: int
    plain_seconds: float
    verify_seconds: float
    draft_seconds: float
    gamma: int
    tokens_per_cycle: float
    recipe: Recipe | None = None
    draft_placement: DraftPlacement | None = None

    def bytes_of(self, residency: Residency) -> int:
        """Weights that lie there."""
        return sum(part.nbytes for part, lies in zip(self.parts, self.residency, strict=True) if lies is residency)

    @property
    def streamed(self) -> tuple[Part, ...]:
        """The parts that take turns in the slots, in the order of a pass."""
        pairs = zip(self.parts, self.residency, strict=True)
        return tuple(part for part, lies in pairs if lies is Residency.STREAMED)

    @property
    def peak(self) -> int:
        """Bytes of the fast memory that the model takes at most, the margin not counted."""
        slots = self.slots * self.slot_bytes
        return self.always + self.bytes_of(Residency.RESIDENT) + slots + self.draft + self.kv + self.workspace

    @property
    def speculative_seconds(self) -> float:
        """Of a token, with speculation."""
        return (self.gamma * self.draft_seconds + self.verify_seconds) / self.tokens_per_cycle

    @property
    def speed_up(self) -> float:
        """Plain seconds over speculative ones."""
        return self.plain_seconds / self.speculative_seconds


def arrangement(plan: Plan | None) -> tuple[object, ...]:
    """What plans have in common that have all parts, the draft's too, lie alike. None: everything is resident."""
    if plan is None:
        return ((), 0, None)
    pairs = zip(plan.parts, plan.residency, strict=True)
    away = tuple((part.index, residency) for part, residency in pairs if residency is not Residency.RESIDENT)
    return (away, plan.slots, plan.draft_placement)
