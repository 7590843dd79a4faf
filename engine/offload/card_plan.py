"""The plan of a model that is about to be loaded onto a card: by what the card has free, or by a budget."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.errors import SpecularError
from engine.files.folder import ModelFolder
from engine.offload.demands import demands_of
from engine.offload.measure_rates import measured_rates
from engine.offload.parts import parts_of
from engine.offload.plan import Plan
from engine.offload.planner import plan, whole
from engine.offload.rates import default_rates

DRAFT_BITS = (4,)  # that a card's draft can have


@dataclass(frozen=True, slots=True)
class CardPlan:
    """pass_seconds: of a full pass over one row, were every part on the card."""

    plan: Plan
    pass_seconds: float


def card_plan(folder: ModelFolder, capacity: int, budget: int | None, *, offload: bool = True) -> CardPlan | None:
    """Where the parts of a model lie; None where all of them and the draft fit. Memory and bus are measured for it.

    budget: bytes of the card's memory, None for what is free; more than is free is never counted on. offload: whether
    parts may be streamed. Raises BadSetting, with the least budget, where it is too small for any plan, and
    SpecularError where the model does not fit as a whole and may not be streamed.
    """
    config = folder.config
    sizes = {name: entry.nbytes for name, entry in folder.entries.items()}
    parts = parts_of(config, sizes)
    demands = demands_of(config, sizes, parts, device="cuda", context=capacity, widths=DRAFT_BITS)
    free = torch.cuda.mem_get_info()[0]
    limit = free if budget is None else min(budget, free)
    draft = demands.drafts[0] if demands.drafts else None
    if whole(parts, demands, draft) <= limit:
        return None
    if not offload:
        wanted = whole(parts, demands, None)
        if wanted > limit:
            raise SpecularError(
                f"The model needs {wanted / 1e9:.1f} GB of the card's memory, but may take {limit / 1e9:.1f} GB, "
                "and offload is switched off."
            )
    rates = measured_rates(default_rates("cuda"), "cuda")
    torch.cuda.empty_cache()  # of what was measured with
    chosen = plan(parts, demands if offload else demands.plain(), rates, limit)
    return CardPlan(chosen, sum(part.nbytes for part in parts) / rates.device)
