"""Which parts of a model on the CPU stay in RAM under a budget, and which are read for every full pass."""

from __future__ import annotations

import math

import psutil

from engine.errors import SpecularError
from engine.offload.host_needs import HostNeeds
from engine.offload.parts import Part
from engine.offload.plan import Plan, Residency

MARGIN = 256 << 20  # bytes of RAM that stay free
SLOTS = 2  # one is read while the other is computed with
UNKNOWN = math.nan  # seconds that nothing was measured for


def plan_host(needs: HostNeeds, budget: int | None, *, offload: bool = True, held: int = 0) -> Plan:
    """The plan under a budget in bytes of RAM, None for what this computer has free.

    offload: whether parts may be streamed. held: bytes that the model already takes, which are its to place anew.
    Raises SpecularError with the figures where even the least does not fit.
    """
    free = psutil.virtual_memory().available + held - MARGIN
    limit = free if budget is None else min(budget, free)
    room = limit - needs.fixed
    if needs.whole <= limit:
        streamed: frozenset[int] = frozenset()
    else:
        streamed = _streamed(needs.parts, room) if offload else frozenset()
        if not streamed:
            raise SpecularError(_refusal(needs, budget, free, offload))
    parts = [part for part in needs.parts if part.index in streamed]
    return Plan(
        budget=limit,
        parts=needs.parts,
        residency=tuple(Residency.STREAMED if part.index in streamed else Residency.RESIDENT for part in needs.parts),
        slots=min(SLOTS, len(parts)),
        slot_bytes=max((part.nbytes for part in parts), default=0),
        always=needs.always,
        draft=needs.draft,
        kv=needs.kv,
        workspace=needs.workspace,
        margin=MARGIN,
        others=0,
        plain_seconds=UNKNOWN,
        verify_seconds=UNKNOWN,
        draft_seconds=UNKNOWN,
        gamma=0,
        tokens_per_cycle=UNKNOWN,
    )


def least(needs: HostNeeds) -> int:
    """Bytes under which nothing can be placed: every part is streamed."""
    return needs.fixed + min(SLOTS, len(needs.parts)) * max(part.nbytes for part in needs.parts)


def file_cache_holds(plan: Plan) -> bool:
    """Whether RAM that is free beside the plan could hold all that it streams, as pages of the files."""
    return plan.peak + plan.bytes_of(Residency.STREAMED) + MARGIN <= psutil.virtual_memory().available


def _streamed(parts: tuple[Part, ...], room: int) -> frozenset[int]:
    """As few bytes of parts as leave the others and the slots within `room`; none where nothing does.

    Spread over the pass, so that reading goes on beside the computing of what is in memory.
    """
    total = sum(part.nbytes for part in parts)
    for share in range(1, 101):
        chosen, owed = [], 0.0
        for part in parts:
            owed += part.nbytes * share / 100
            if owed >= part.nbytes / 2 or share == 100:
                chosen.append(part)
                owed -= part.nbytes
        if not chosen:
            continue
        slots = min(SLOTS, len(chosen)) * max(part.nbytes for part in chosen)
        if len(chosen) > SLOTS and total - sum(part.nbytes for part in chosen) + slots <= room:
            return frozenset(part.index for part in chosen)
    return frozenset()


def _refusal(needs: HostNeeds, budget: int | None, free: int, offload: bool) -> str:
    wanted = needs.whole if not offload else least(needs)
    bound = (
        f"the budget is {budget / 1e9:.2f} GB"
        if budget is not None and budget <= free
        else (f"this computer has {max(0, free) / 1e9:.2f} GB of RAM free")
    )
    held = f"draft {needs.draft / 1e9:.2f} GB, {needs.context:,} tokens of context {needs.kv / 1e9:.2f} GB"
    how = "with all of its weights in memory" if not offload else "at the least"
    return f"The model needs {wanted / 1e9:.2f} GB of RAM {how} ({held}), but {bound}: give it more, or less context."
