"""The answer to "what if the budget were this?", as plain data that a window shows without importing numpy."""

from __future__ import annotations

from dataclasses import dataclass

from engine.probes.reading import Measure


@dataclass(frozen=True, slots=True)
class Help:
    """A fix that would better things: what it changes, by how much (see engine.offload.estimate.Fix), and what then."""

    remedy: str
    amount: int
    verdict: str
    tokens_per_second: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """A model under one budget. Bytes of the fast memory, unless said otherwise; None where the model does not fit.

    asked: the budget that the question was about, None for all that is free; limit: what that comes to.
    verdict: "fits", "fits streamed" or "does not fit". resident, slots, draft, kv, workspace: of the model, the
    embedding and norms among the resident. streamed: bytes outside the fast memory. parts, streamed_parts: how many.
    plain, speculative: tokens a second as predicted. measured_rates: whether the memory's speed was measured here.
    peak: what the model takes at most. least, whole: budgets from which it fits at all, and without streaming.
    total, free: of the fast memory, `free` counting what this program holds. helps: the cheapest fixes.
    on_card: the fast memory is a card's.
    """

    asked: int | None
    limit: int
    verdict: str
    on_card: bool
    total: Measure
    free: Measure
    kv: int
    workspace: int
    least: int
    whole: int
    context: int
    resident: int | None = None
    slots: int | None = None
    draft: int | None = None
    streamed: int | None = None
    peak: int | None = None
    parts: int = 0
    streamed_parts: int = 0
    plain: float | None = None
    speculative: float | None = None
    measured_rates: bool = False
    helps: tuple[Help, ...] = ()
