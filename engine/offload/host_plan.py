"""The plan of a model on the CPU: which parts stay in RAM under a budget, and which are read for every full pass."""

from __future__ import annotations

from dataclasses import replace

import psutil

from engine.errors import BadSetting
from engine.offload import planner
from engine.offload.demands import Demands
from engine.offload.host_needs import HostNeeds
from engine.offload.plan import Plan, Residency
from engine.offload.rates import default_rates

FREE = 256 << 20  # bytes of RAM that other programs can count on
RATES = default_rates("cpu")


def plan_host(needs: HostNeeds, budget: int | None, *, offload: bool = True, held: int = 0) -> Plan:
    """The plan under a budget in bytes of RAM, None for what this computer has free.

    offload: whether parts may be streamed. held: bytes that the model already takes, which are its to place anew.
    Raises BadSetting with the figures where even the least does not fit.
    """
    free = psutil.virtual_memory().available + held - FREE
    limit = free if budget is None else min(budget, free)
    wanted = least(needs) if offload else planner.whole(needs.parts, with_draft(needs), None)
    if limit < wanted:
        bound = f"this computer has {max(0, free) / 1e9:.2f} GB of RAM free"
        if budget is not None and budget <= free:
            bound = f"the budget is {budget / 1e9:.2f} GB"
        how = "at the least" if offload else "with all of its weights in memory"
        draft, kv = needs.draft / 1e9, needs.demands.kv / 1e9
        raise BadSetting(
            f"The model needs {wanted / 1e9:.2f} GB of RAM {how} (of it {draft:.2f} GB for the draft and {kv:.2f} GB "
            f"for {needs.context:,} tokens of context), but {bound}."
        )
    found = planner.plan(needs.parts, needs.demands, RATES, limit)
    if found.recipe is None and needs.draft:  # the planner would go without, but here there always is one
        kept = planner.plan(needs.parts, with_draft(needs), RATES, limit)
        option = needs.demands.drafts[0]
        found = replace(kept, always=needs.demands.always, draft=option.nbytes, recipe=option.recipe)
    return found


def least(needs: HostNeeds) -> int:
    """Bytes of the smallest budget there is a plan for."""
    return planner.minimum(needs.parts, with_draft(needs), RATES)


def with_draft(needs: HostNeeds) -> Demands:
    """The demands with the draft's copies among what always stays."""
    return replace(needs.demands.plain(), always=needs.demands.always + needs.draft)


def file_cache_holds(plan: Plan) -> bool:
    """Whether RAM that is free beside the plan could hold all that it streams, as pages of the files."""
    own = plan.peak + plan.margin
    return own + plan.bytes_of(Residency.STREAMED) + FREE <= psutil.virtual_memory().available
