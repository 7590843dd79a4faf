"""One model over several devices: layers in order, every budget kept, and the work divided sensibly."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from engine.errors import BadSetting
from engine.offload.devices import DeviceRoom, DeviceShare, plan_devices
from engine.offload.plan import Residency
from engine.offload.planner import plan
from offload_rig import CARD, Case, random_case, shape_case

GB = 10**9


def divided(case: Case, *budgets: float, others: int = 0) -> tuple[DeviceShare, ...]:
    """The case over devices alike but for their budgets; `others` of the first one's."""
    rooms = [DeviceRoom(int(budget), case.rates, 0 if place else others) for place, budget in enumerate(budgets)]
    return plan_devices(case.parts, case.demands, rooms)


def token_seconds(shares: tuple[DeviceShare, ...]) -> float:
    """Of a token, the faster way: every share's plan says it."""
    (seconds,) = {min(share.plan.plain_seconds, share.plan.speculative_seconds) for share in shares}
    return seconds


def streamed(shares: tuple[DeviceShare, ...]) -> int:
    """Bytes that all devices bring in."""
    return sum(share.plan.bytes_of(Residency.STREAMED) for share in shares)


def test_two_unequal_devices_hold_all_layers_in_order_within_their_budgets() -> None:
    case = shape_case("llama2-7b")
    shares = divided(case, 6 * GB, 12 * GB, others=GB)
    small, large = shares
    assert (small.layers.start, small.layers.stop, large.layers.stop) == (0, large.layers.start, 32)
    assert len(small.layers) < len(large.layers)
    parts = [part for share in shares for part in share.plan.parts]
    assert parts == list(case.parts)  # the output matrix comes last, on the last device
    for share in shares:
        found = share.plan
        assert found.peak <= found.budget - found.margin - found.others
        assert len(found.residency) == len(found.parts)
    assert small.plan.others == GB and small.plan.always > 100 * large.plan.always == 0
    assert sum(share.plan.kv for share in shares) == pytest.approx(case.demands.kv, rel=0.001)


def test_two_devices_that_hold_it_together_stream_nothing() -> None:
    case = shape_case("llama2-7b")
    shares = divided(case, 10 * GB, 12 * GB)
    assert len(shares) == 2 and streamed(shares) == 0
    assert all(share.plan.slots == 0 and share.plan.draft for share in shares)
    alone = plan(case.parts, case.demands, case.rates, 24 * GB)
    assert token_seconds(shares) == pytest.approx(alone.speculative_seconds, rel=0.05)
    assert token_seconds(shares) > alone.speculative_seconds  # of the handovers


def test_one_device_that_holds_it_is_enough() -> None:
    (only,) = divided(shape_case("llama2-7b"), 24 * GB, 24 * GB)
    assert (only.device, only.layers) == (0, range(32))


def test_a_device_without_room_for_a_layer_gets_none() -> None:
    (only,) = divided(shape_case("llama2-7b"), 0.5 * GB, 24 * GB)
    assert (only.device, only.layers) == (1, range(32))


def test_both_links_work_at_once() -> None:
    case = shape_case("llama2-7b")
    shares = divided(case, 4.5 * GB, 4.5 * GB)
    copies = [share.plan.bytes_of(Residency.STREAMED) for share in shares]
    assert min(copies) > 0.7 * max(copies)
    alone = plan(case.parts, case.demands, case.rates, 9 * GB)
    assert token_seconds(shares) < alone.speculative_seconds


def test_a_slow_link_gets_less_to_bring_in() -> None:
    case = shape_case("llama2-7b")
    rooms = [DeviceRoom(5 * GB, CARD), DeviceRoom(5 * GB, replace(CARD, link=CARD.link / 4))]
    quick, slow = plan_devices(case.parts, case.demands, rooms)
    assert slow.plan.bytes_of(Residency.STREAMED) < 0.5 * quick.plan.bytes_of(Residency.STREAMED)


def test_a_tied_matrix_is_there_where_it_is_read_and_where_it_makes_logits() -> None:
    case = shape_case("smollm2-135m", device="cpu")
    first, last = divided(case, 0.25 * GB, 0.25 * GB)
    embedding = 49152 * 576 * 2
    assert embedding <= first.plan.always < 1.01 * embedding
    assert last.plan.always == embedding


def test_one_device_is_planned_as_by_itself() -> None:
    chance = random.Random(3)
    for _ in range(20):
        case = random_case(chance)
        case = replace(case, demands=replace(case.demands, allow_host=False, others=0))
        budget = case.demands.always + case.demands.kv + case.demands.workspace + chance.randint(4, 40) * GB
        try:
            alone = plan(case.parts, case.demands, case.rates, budget)
        except BadSetting:
            continue
        (share,) = divided(case, budget)
        assert share.plan.peak <= budget - case.demands.margin
        assert token_seconds((share,)) == pytest.approx(min(alone.plain_seconds, alone.speculative_seconds), rel=0.1)


@pytest.mark.parametrize("seed", range(8))
def test_any_number_of_any_devices(seed: int) -> None:
    chance = random.Random(seed)
    case = random_case(chance)
    rooms = [
        DeviceRoom(chance.randint(1, 20) * GB, replace(case.rates, link=case.rates.link * chance.uniform(0.3, 3)))
        for _ in range(chance.randint(1, 5))
    ]
    try:
        shares = plan_devices(case.parts, case.demands, rooms)
    except BadSetting as error:
        assert "layers they hold" in str(error)
        return
    assert [part for share in shares for part in share.plan.parts] == list(case.parts)
    assert all(share.plan.peak <= share.plan.budget - share.plan.margin for share in shares)
    assert token_seconds(shares) > 0


def test_budgets_that_are_too_small_say_how_far_they_go() -> None:
    case = shape_case("llama2-7b", context=4096)
    said = r"^The budgets, 1\.00 GB and 1\.10 GB, are too small .*: of its 32 layers they hold 0\.$"
    with pytest.raises(BadSetting, match=said):
        divided(case, GB, 1.1 * GB)
    with pytest.raises(BadSetting, match=r"of its 32 layers they hold ([1-9]|1\d)\.$"):
        divided(case, 2.2 * GB, 1.2 * GB)
