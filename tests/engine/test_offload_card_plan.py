"""Plans of a model on a card, where the CPU may take a share: the card and its rates are given, the model is real."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.errors import SpecularError
from engine.files.folder import open_folder
from engine.model.host_mlps import HostSpeed
from engine.offload import card_plan
from engine.offload.card_plan import CardPlanner
from engine.offload.demands import demands_of
from engine.offload.parts import MLP, parts_of
from engine.offload.plan import Residency
from engine.offload.planner import whole
from engine.offload.rates import GIGA, Rates
from step_rig import small_model

CAPACITY = 64


@pytest.fixture(autouse=True)
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card with room for any model, on a slow bus."""

    def measured(rates: Rates, device: str) -> Rates:
        assert device == "cuda"
        return rates.measured(device=400 * GIGA, link=3 * GIGA)

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (80 << 30, 80 << 30))
    monkeypatch.setattr(card_plan, "measured_rates", measured)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_model(tmp_path, torch.float16, layers=6)


def budget_of(folder: Path) -> int:
    """Bytes that a third of the parts and a draft are too much for."""
    model = open_folder(folder)
    sizes = {name: entry.nbytes for name, entry in model.entries.items()}
    parts = parts_of(model.config, sizes)
    demands = demands_of(model.config, sizes, parts, device="cuda", context=CAPACITY)
    return whole(parts, demands, None) - sum(part.nbytes for part in parts) // 3


def test_a_fast_cpu_computes_mlps_instead_of_a_slow_bus(folder: Path) -> None:
    planner = CardPlanner(open_folder(folder), CAPACITY, host=lambda: HostSpeed(60 * GIGA, 0.01))
    plan = planner.plan(budget_of(folder)).plan
    assert plan is not None
    away = [part for part, lies in zip(plan.parts, plan.residency, strict=True) if lies is not Residency.RESIDENT]
    assert away
    assert {part.kind for part in away} == {MLP}
    assert Residency.STREAMED not in plan.residency
    assert planner.notes == ()


def test_a_slow_cpu_computes_nothing(folder: Path) -> None:
    planner = CardPlanner(open_folder(folder), CAPACITY, host=lambda: HostSpeed(1 * GIGA, 0.01))
    plan = planner.plan(budget_of(folder)).plan
    assert plan is not None
    assert Residency.HOST not in plan.residency
    assert Residency.STREAMED in plan.residency


def test_rows_that_cost_the_cpu_much_are_counted(folder: Path) -> None:
    """A CPU faster than the bus for one row, but not for a verify pass, loses where drafting pays."""
    planner = CardPlanner(open_folder(folder), CAPACITY, host=lambda: HostSpeed(3.1 * GIGA, 5.0))
    plan = planner.plan(budget_of(folder)).plan
    assert plan is not None
    assert Residency.HOST not in plan.residency or plan.gamma == 0


def test_kernels_that_fail_are_told_and_their_share_is_streamed(folder: Path) -> None:
    calls = []

    def fails() -> HostSpeed:
        calls.append(1)
        raise RuntimeError("no compiler here\nmore")

    planner = CardPlanner(open_folder(folder), CAPACITY, host=fails)
    budget = budget_of(folder)
    for _ in range(2):
        plan = planner.plan(budget).plan
        assert plan is not None
        assert Residency.HOST not in plan.residency
    assert planner.notes == (
        "The CPU cannot compute a share of the model (no compiler here): what does not fit is streamed.",
    )
    assert len(calls) == 1


def test_a_model_that_fits_asks_nobody(folder: Path) -> None:
    def fails() -> HostSpeed:
        raise AssertionError("nothing is to be measured")

    assert CardPlanner(open_folder(folder), CAPACITY, host=fails).plan(None).plan is None


def test_offload_switched_off_says_what_is_missing(folder: Path) -> None:
    planner = CardPlanner(open_folder(folder), CAPACITY, offload=False)
    with pytest.raises(SpecularError, match="offload is switched off"):
        planner.plan(budget_of(folder))
