"""Forecasts of a model under budgets: a millisecond each, so that they can follow a slider. Nothing is loaded."""

from __future__ import annotations

from dataclasses import replace

import psutil

from engine.errors import BadSetting
from engine.files.resolve import read_headers
from engine.kernels.dispatch import card_of, choose_device
from engine.model.loaded import capacity_of
from engine.offload.basis import Basis
from engine.offload.demands import DRAFT_WIDTHS
from engine.offload.estimate import Estimate, Wanted, estimate, tokens_per_second
from engine.offload.fast_memory import FastMemory
from engine.offload.host_plan import FREE
from engine.offload.measure_rates import measured_rates
from engine.offload.outlook import Help, Outlook
from engine.offload.plan import Residency
from engine.offload.rates import Rates, default_rates
from engine.probes.nvml import NvmlProbe
from engine.probes.reading import CardProbe, Measure


def basis_of_headers(model: str, context: int | None) -> Basis:
    """Of a model that is not loaded, on the device that it would be loaded to. Raises ModelFileError as opening it
    would, and BadSetting for a context out of range."""
    headers = read_headers(model)
    placement = choose_device(None)
    device = placement.device
    capacity = capacity_of(headers.config, context)
    return Basis(headers.config, headers.sizes, device, capacity, DRAFT_WIDTHS[device], card_of(placement))


class Forecaster:
    """One thread uses it. Speeds of the CPU's memory are measured once; those of a card are defaults, for a
    measurement would stand in a reply's way."""

    def __init__(self, probe: CardProbe | None = None) -> None:
        self._probe = probe or NvmlProbe()
        self._rates: dict[str, Rates] = {}

    def outlook(self, basis: Basis, budget: int | None) -> Outlook:
        """What a budget in bytes would bring, None for all that is free. Raises BadSetting where it cannot be told."""
        memory = self.memory(basis)
        limit = memory.free.value if budget is None else float(budget)
        if limit is None:
            raise BadSetting(f"How much memory is free cannot be told: {memory.free.reason}")
        rates = self.rates(basis.device)
        wanted = Wanted(basis.config, basis.sizes, basis.device, basis.context, int(limit), memory, rates, basis.widths)
        return outlook_of(estimate(wanted), budget)

    def memory(self, basis: Basis) -> FastMemory:
        """How the fast memory stands now; what the model holds of it counts as free."""
        if basis.device == "cpu":
            memory = psutil.virtual_memory()
            return FastMemory(
                Measure(float(memory.total)), Measure(float(max(0, memory.available + basis.held - FREE)))
            )
        try:
            card = self._probe.read(basis.card or "", bus=False)
        finally:
            self._probe.rest()
        if card.total.value is None or card.used.value is None:
            return FastMemory(card.total, Measure(None, card.total.reason or card.used.reason))
        own = card.own.value if card.own.value is not None else float(basis.held)
        return FastMemory(card.total, Measure(max(0.0, card.total.value - max(0.0, card.used.value - own))))

    def rates(self, device: str) -> Rates:
        """What the device's memory gives."""
        if device not in self._rates:
            found = default_rates(device)
            self._rates[device] = found if device == "cuda" else measured_rates(found, device)
        return self._rates[device]


def outlook_of(made: Estimate, asked: int | None) -> Outlook:
    """An estimate as plain data."""
    wanted, found, alone = made.wanted, made.plan, made.plain_alone
    helps = tuple(Help(fix.remedy.value, fix.amount, fix.verdict.value, fix.tokens_per_second) for fix in made.fixes)
    outlook = Outlook(
        asked=asked,
        limit=wanted.budget,
        verdict=made.verdict.value,
        on_card=wanted.device == "cuda",
        total=wanted.memory.total,
        free=wanted.memory.free,
        kv=made.demands.kv,
        workspace=made.demands.workspace,
        least=made.least,
        whole=made.whole,
        context=wanted.context,
        measured_rates="device" not in wanted.rates.assumed,
        helps=helps,
    )
    if found is None or alone is None:
        return outlook
    return replace(
        outlook,
        resident=found.always + found.bytes_of(Residency.RESIDENT),
        slots=found.slots * found.slot_bytes,
        draft=found.draft,
        streamed=found.bytes_of(Residency.STREAMED),
        peak=found.peak,
        parts=len(found.parts),
        streamed_parts=len(found.streamed),
        plain=1 / alone.plain_seconds,
        speculative=tokens_per_second(found) if found.gamma else None,
    )
