"""What a model takes of a budget, how fast it should be, and what would help: from headers alone, before any load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from engine.files.config import ModelConfig
from engine.offload.demands import Demands, demands_of
from engine.offload.fast_memory import FastMemory
from engine.offload.parts import Part, parts_of
from engine.offload.plan import Plan, Residency
from engine.offload.planner import gigabytes, least_draft, minimum, plan, rounded_up, too_small, whole
from engine.offload.rates import Rates
from engine.probes.reading import Measure

SHORTEST = 256  # tokens of context that are worth proposing
MOST_FIXES = 2


class Verdict(str, Enum):
    """Whether a model can be used within its budget."""

    FITS = "fits"
    STREAMED = "fits streamed"
    TOO_LARGE = "does not fit"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The question: a model's shape and the bytes of its tensors, on "cuda" or "cpu", with how much context.

    budget: bytes of the fast memory. memory: how that stands. widths: bits that drafts may have.
    """

    config: ModelConfig
    sizes: Mapping[str, int]
    device: str
    context: int
    budget: int
    memory: FastMemory
    rates: Rates
    widths: tuple[int, ...]


class Remedy(str, Enum):
    """What a fix changes."""

    CONTEXT = "context"
    BUDGET = "budget"
    NO_DRAFT = "no draft"
    ALONE = "other programs"


@dataclass(frozen=True, slots=True)
class Fix:
    """Something that would help. cost: bytes that are given up or added, by which fixes are compared.

    amount: tokens of a shorter context, bytes of a larger budget; else 0. tokens_per_second: as predicted with it.
    """

    remedy: Remedy
    amount: int
    text: str
    cost: int
    verdict: Verdict
    tokens_per_second: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """The answer. plan: None where the model does not fit, which `refusal` then says in a sentence.

    least, whole: bytes from which the model fits at all, and without streaming, drafts included.
    plain_alone: the plan of plain decoding: without a draft, where the device can do without one, which keeps more of
    the model in the fast memory.
    others: of the budget, held by other programs.
    """

    wanted: Wanted
    verdict: Verdict
    demands: Demands
    parts: tuple[Part, ...]
    plan: Plan | None
    plain_alone: Plan | None
    refusal: str | None
    least: int
    whole: int
    others: Measure
    fixes: tuple[Fix, ...]

    @property
    def undrafted(self) -> str:
        """Why there is no draft, for people; empty where there is one."""
        if self.plan is None or self.plan.draft:
            return ""
        if not self.demands.drafts:
            return "this model has no low-bit copy"
        if self.least + min(map(least_draft, self.demands.drafts)) > self.wanted.budget:
            return "there is no room for one"
        return "plain decoding is faster here"


def estimate(wanted: Wanted) -> Estimate:
    """Answer the question; nothing is loaded, measured or asked."""
    parts, demands = _needs(wanted)
    least = minimum(parts, demands, wanted.rates)
    found = alone = refusal = None
    if wanted.budget >= least:
        found = plan(parts, demands, wanted.rates, wanted.budget)
        alone = found if demands.always_drafts else plan(parts, demands.plain(), wanted.rates, wanted.budget)
    else:
        refusal = too_small(wanted.budget, least)
    made = Estimate(
        wanted=wanted,
        verdict=verdict_of(found),
        demands=demands,
        parts=parts,
        plan=found,
        plain_alone=alone,
        refusal=refusal,
        least=least,
        whole=_whole(parts, demands, wanted.rates),
        others=wanted.memory.others(wanted.budget),
        fixes=(),
    )
    return replace(made, fixes=_cheapest(made))


def verdict_of(found: Plan | None) -> Verdict:
    """Of a plan, or of there being none."""
    if found is None:
        return Verdict.TOO_LARGE
    return Verdict.STREAMED if found.bytes_of(Residency.RESIDENT) < _weights(found) else Verdict.FITS


def tokens_per_second(found: Plan) -> float:
    """Predicted, the faster way."""
    return 1.0 / min(found.plain_seconds, found.speculative_seconds)


def _whole(parts: tuple[Part, ...], demands: Demands, rates: Rates) -> int:
    """The budget of everything that is worth having: all parts, and the draft that is fastest then."""
    largest = max(demands.drafts, key=lambda option: option.nbytes, default=None)
    found = plan(parts, demands, rates, whole(parts, demands, largest))
    return found.peak + found.margin + found.others


def _weights(found: Plan) -> int:
    return sum(part.nbytes for part in found.parts)


def _needs(wanted: Wanted) -> tuple[tuple[Part, ...], Demands]:
    parts = parts_of(wanted.config, wanted.sizes)
    others = wanted.memory.others(wanted.budget).value
    demands = demands_of(
        wanted.config,
        wanted.sizes,
        parts,
        device=wanted.device,
        context=wanted.context,
        others=0 if others is None else int(others),
        widths=wanted.widths,
    )
    return parts, demands


def _cheapest(made: Estimate) -> tuple[Fix, ...]:
    """The two cheapest things that better the verdict, or failing that the speed; none where all is well."""
    if made.verdict is Verdict.FITS:
        return ()
    present = 0.0 if made.plan is None else tokens_per_second(made.plan)
    order = list(Verdict)
    helpful = [
        fix
        for fix in (*_shorter(made), *_larger(made), *_undrafted(made), *_closed(made))
        if fix.tokens_per_second > present and order.index(fix.verdict) <= order.index(made.verdict)
    ]
    helpful.sort(key=lambda fix: (fix.verdict is made.verdict, fix.cost))
    return tuple(helpful[:MOST_FIXES])


def _fix(remedy: Remedy, amount: int, text: str, cost: int, wanted: Wanted) -> Fix | None:
    """What a change of the question brings; None where it does not fit."""
    parts, demands = _needs(wanted)
    if wanted.budget < minimum(parts, demands, wanted.rates):
        return None
    found = plan(parts, demands, wanted.rates, wanted.budget)
    return Fix(remedy, amount, text, cost, verdict_of(found), tokens_per_second(found))


def _shorter(made: Estimate) -> Iterator[Fix]:
    """The longest shorter context that betters the verdict; where none does, half of it."""
    wanted, fallback = made.wanted, None
    context = wanted.context // 2
    while context >= SHORTEST:
        _, demands = _needs(replace(wanted, context=context))
        words, saved = f"A context of {context:,} tokens", made.demands.kv - demands.kv
        fix = _fix(Remedy.CONTEXT, context, words, saved, replace(wanted, context=context))
        if fix is not None and fix.verdict is not made.verdict:
            yield fix
            return
        fallback, context = fallback or fix, context // 2
    if fallback is not None:
        yield fallback


def _larger(made: Estimate) -> Iterator[Fix]:
    """The budgets from which the model fits at all, and from which nothing is streamed."""
    wanted = made.wanted
    for least in (made.least, made.whole):
        budget = rounded_up(least)
        if budget <= wanted.budget or (wanted.memory.total.value or budget) < budget:
            continue
        words, added = f"A budget of {gigabytes(budget)}", budget - wanted.budget
        fix = _fix(Remedy.BUDGET, budget, words, added, replace(wanted, budget=budget))
        if fix is not None:
            yield fix


def _undrafted(made: Estimate) -> Iterator[Fix]:
    """Doing without the draft's copy."""
    if made.plan is not None and made.plan.draft and not made.demands.always_drafts:
        fix = _fix(Remedy.NO_DRAFT, 0, "No draft", made.plan.draft, replace(made.wanted, widths=()))
        if fix is not None:
            yield fix


def _closed(made: Estimate) -> Iterator[Fix]:
    """Having the whole budget to ourselves."""
    if made.demands.others:
        alone = FastMemory(made.wanted.memory.total, Measure(float(made.wanted.budget)))
        fix = _fix(Remedy.ALONE, 0, "Closing other programs", made.demands.others, replace(made.wanted, memory=alone))
        if fix is not None:
            yield fix
