"""The plan of a model on a card: by what the card has free, or by a budget; before it is loaded, and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from engine.errors import SpecularError
from engine.files.folder import ModelFolder
from engine.model.host_mlps import HostSpeed
from engine.offload.demands import CARD_MARGIN, demands_of
from engine.offload.measure_rates import CARD_COPY, measured_rates
from engine.offload.parts import parts_of
from engine.offload.plan import Plan
from engine.offload.planner import plan, whole
from engine.offload.rates import Rates, default_rates

DRAFT_BITS = (4,)  # that a card's draft can have


@dataclass(frozen=True, slots=True)
class CardPlan:
    """plan: None where all parts and the draft fit. pass_seconds: of a full pass over one row, were all on the card."""

    plan: Plan | None
    pass_seconds: float = 0.0


class CardPlanner:
    """Plans one model on the current card, as often as it is asked to."""

    def __init__(
        self,
        folder: ModelFolder,
        capacity: int,
        *,
        offload: bool = True,
        host: Callable[[], HostSpeed] | None = None,
    ) -> None:
        """capacity: positions of the KV cache. offload: whether parts may be streamed.

        host: finds out how fast the CPU computes MLPs; asked once, where the model does not fit. None where it cannot.
        """
        sizes = {name: entry.nbytes for name, entry in folder.entries.items()}
        self.parts = parts_of(folder.config, sizes)
        self._demands = demands_of(folder.config, sizes, self.parts, device="cuda", context=capacity, widths=DRAFT_BITS)
        self._offload, self._host = offload, host
        self._rates: Rates | None = None
        self.notes: tuple[str, ...] = ()  # for people

    def plan(self, budget: int | None, held: int = 0, *, draft: bool | None = None) -> CardPlan:
        """Where the parts lie under a budget in bytes, None for what is free; more than is free is never counted on.

        Memory and bus are measured for it where need be. held: bytes that the model has already, which are its to place
        anew. draft: whether there is one; None where that is open. Raises BadSetting, with the least budget, where it
        is too small for any plan, and SpecularError where the model does not fit as a whole and may not be streamed.
        """
        demands = self._demands.plain() if draft is False else replace(self._demands, always_drafts=draft is True)
        free = torch.cuda.mem_get_info()[0] + held
        limit = free if budget is None else min(budget, free)
        copy = demands.drafts[0] if demands.drafts else None
        if whole(self.parts, demands, copy) <= limit:
            return CardPlan(None)
        if not self._offload:
            wanted = whole(self.parts, demands, None)
            if wanted > limit:
                raise SpecularError(
                    f"The model needs {wanted / 1e9:.1f} GB of the card's memory, but may take {limit / 1e9:.1f} GB, "
                    "and offload is switched off."
                )
            demands = demands.plain()
        rates = self._measured()
        demands = replace(demands, allow_host=self._host is not None)
        chosen = plan(self.parts, demands, rates, limit)
        return CardPlan(chosen, sum(part.nbytes for part in self.parts) / rates.device)

    @property
    def pressed(self) -> bool:
        """Whether less of the card is free than a plan leaves to other programs, by half."""
        return self._offload and torch.cuda.mem_get_info()[0] < CARD_MARGIN // 2

    def _measured(self) -> Rates:
        """What memory and bus give; defaults, until there is room to measure in."""
        if self._rates is None:
            if torch.cuda.mem_get_info()[0] < 4 * CARD_COPY:
                return default_rates("cuda")
            self._rates = self._with_host(measured_rates(default_rates("cuda"), "cuda"))
            torch.cuda.empty_cache()  # of what was measured with
        return self._rates

    def _with_host(self, rates: Rates) -> Rates:
        """The rates with the CPU's own; where its kernels fail, it takes no share, and that is said."""
        if self._host is None:
            return rates
        try:
            speed = self._host()
        except Exception as error:  # whatever a compiler or a broken package may raise: it is shown
            self._host = None
            gist = next(iter(str(error).splitlines()), "") or type(error).__name__
            self.notes = (f"The CPU cannot compute a share of the model ({gist}): what does not fit is streamed.",)
            return rates
        return replace(rates.measured(device=rates.device, link=rates.link, cpu=speed.rate), cpu_row=speed.row)
