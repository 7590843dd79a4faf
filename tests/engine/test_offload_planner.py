"""Plans: what they may take, that more memory is never slower, and that their prediction is what streaming does."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from builders import tiny_llama
from engine.errors import BadSetting
from engine.files.folder import open_folder
from engine.model.cpu_default import default_recipe
from engine.offload.demands import Demands, demands_of
from engine.offload.host_needs import host_needs
from engine.offload.parts import MLP, Part, parts_of
from engine.offload.plan import Plan, Residency
from engine.offload.planner import least_draft, minimum, plan, whole
from engine.offload.prediction import Device, Reads, pass_seconds
from offload_rig import CARD, Case, random_case, shape_case, simulated_pass

GB = 10**9


def plan_of(case: Case, budget: float) -> Plan:
    """The plan within so many bytes."""
    return plan(case.parts, case.demands, case.rates, int(budget))


def token_seconds(found: Plan) -> float:
    """Of a token, the faster way."""
    return min(found.plain_seconds, found.speculative_seconds)


def test_no_plan_takes_more_than_the_budget_leaves() -> None:
    chance = random.Random(5)
    seen = set()
    for _ in range(300):
        case = random_case(chance)
        least = minimum(case.parts, case.demands, case.rates)
        found = plan_of(case, least + chance.random() ** 3 * 30 * GB)
        assert found.peak <= found.budget - found.margin - found.others
        assert len(found.residency) == len(case.parts)
        streamed = found.streamed
        if streamed:
            assert found.slots == 2 < len(streamed)
            assert max(part.nbytes for part in streamed) <= found.slot_bytes
        else:
            assert (found.slots, found.slot_bytes) == (0, 0)
        assert found.verify_seconds >= found.plain_seconds * 0.2 > 0
        seen.add((bool(streamed), found.gamma > 0, Residency.HOST in found.residency))
    assert len(seen) >= 5  # streamed and not, drafting and not, with and without the CPU


def test_a_larger_budget_is_never_slower() -> None:
    chance = random.Random(6)
    for _ in range(60):
        case = random_case(chance)
        case = replace(case, demands=replace(case.demands, rows=case.demands.streamed_rows))
        least = minimum(case.parts, case.demands, case.rates)
        most = whole(case.parts, case.demands, None) + sum(part.nbytes for part in case.parts)
        budgets = sorted([least, most, *(chance.randint(least, most) for _ in range(25))])
        times = [token_seconds(plan_of(case, budget)) for budget in budgets]
        assert all(after <= before * (1 + 1e-12) for before, after in pairwise(times))


def test_what_fits_is_not_streamed() -> None:
    case = shape_case("llama2-7b")
    (draft,) = case.demands.drafts
    enough = whole(case.parts, case.demands, draft)
    found = plan_of(case, enough)
    assert set(found.residency) == {Residency.RESIDENT}
    assert (found.slots, found.slot_bytes, found.streamed) == (0, 0, ())
    assert found.peak == enough - found.margin
    assert found.recipe == draft.recipe
    assert 1.5 < found.speed_up < 2.5
    tight = plan_of(case, enough - 1)
    assert tight.streamed or not tight.draft


def test_below_the_minimum_one_sentence_names_it_and_the_minimum_works() -> None:
    case = shape_case("llama2-7b")
    with pytest.raises(BadSetting, match=r"^The budget is 1\.50 GB, but .* needs at least (\d\.\d\d) GB\.$") as caught:
        plan_of(case, 1.5 * GB)
    named = float(str(caught.value).split()[-2])
    assert plan_of(case, named * GB).streamed
    with pytest.raises(BadSetting):
        plan_of(case, (named - 0.02) * GB)


@pytest.mark.parametrize("budget", [0, -5])
def test_no_budget_at_all_is_refused(budget: int) -> None:
    with pytest.raises(BadSetting, match="needs at least"):
        plan_of(shape_case("smollm2-135m"), budget)


def test_a_7b_model_from_four_to_twenty_four_gigabytes() -> None:
    case = shape_case("llama2-7b")
    plans = {size: plan_of(case, size * GB) for size in (4, 6, 8, 12, 16, 24)}
    streamed = {size: found.bytes_of(Residency.STREAMED) / GB for size, found in plans.items()}
    copy = case.demands.drafts[0].nbytes  # 3.5 GB
    assert streamed[4] > 13 and plans[4].draft < copy and plans[4].draft_placement is not None
    assert 2 < plans[4].speed_up < 4 and plans[6].draft_placement is None
    assert 12 < streamed[6] < 13.3 and 3.4 * GB < plans[6].draft < 3.6 * GB
    assert 10 < streamed[8] < 12 and plans[8].speed_up > 5
    assert streamed[12] < streamed[8] and streamed[24] == 0
    rates = [1 / token_seconds(found) for found in plans.values()]
    assert rates == sorted(rates) and rates[0] > 1.5 and rates[-1] < 80


def test_a_copy_that_does_not_fit_is_streamed_as_far_as_it_must_be() -> None:
    case = shape_case("llama2-7b")
    found = [plan_of(case, size / 10 * GB) for size in range(35, 56, 4)]
    shares = []
    for each in found:
        assert each.draft_placement is not None and each.recipe is not None
        placement = each.draft_placement
        slots = placement.slots * placement.slot_bytes
        resident = sum(part.nbytes for part in placement.parts) - sum(part.nbytes for part in placement.streamed)
        (option,) = case.demands.drafts
        others = option.nbytes - sum(part.nbytes for part in option.parts)  # the output matrix
        assert each.draft == others + resident + slots
        assert each.peak + each.margin + each.others <= each.budget
        assert not each.bytes_of(Residency.RESIDENT), "the draft's parts come first: a cycle reads them more than once"
        shares.append(sum(part.nbytes for part in placement.streamed))
    assert shares == sorted(shares, reverse=True) and shares[0] > 2 * shares[-1]
    seconds = [each.draft_seconds for each in found]
    assert seconds[0] == pytest.approx(shares[0] / case.rates.link) and seconds == sorted(seconds, reverse=True)


def test_a_copy_that_is_better_left_out_is_left_out() -> None:
    case = shape_case("llama2-7b")
    poor = replace(case.demands.drafts[0], acceptance=0.05)
    found = plan(case.parts, replace(case.demands, drafts=(poor,)), case.rates, 8 * GB)
    assert (found.draft, found.gamma, found.recipe, found.speed_up) == (0, 0, None, 1.0)


def test_the_best_of_several_drafts_is_taken() -> None:
    case = shape_case("llama2-7b")
    (four,) = case.demands.drafts
    small = replace(four, recipe=replace(four.recipe, weight_bits=3), nbytes=GB, read=GB, acceptance=0.8)
    demands = replace(case.demands, drafts=(four, small))
    assert plan(case.parts, demands, case.rates, 4 * GB).recipe == small.recipe  # the other one does not fit
    assert plan(case.parts, demands, case.rates, 8 * GB).recipe == four.recipe


def test_a_device_that_always_drafts_has_its_copy_in_the_minimum() -> None:
    case = shape_case("llama2-7b")
    always = replace(case.demands, always_drafts=True)
    least = minimum(case.parts, always, case.rates)
    assert least == minimum(case.parts, case.demands, case.rates) + least_draft(case.demands.drafts[0])
    assert plan(case.parts, always, case.rates, least).draft == least_draft(case.demands.drafts[0])
    with pytest.raises(BadSetting, match="needs at least"):
        plan(case.parts, always, case.rates, least - 1)


def test_a_measured_draft_step_counts() -> None:
    case = shape_case("llama2-7b")
    slow = replace(case.demands.drafts[0], seconds=0.2)
    found = plan(case.parts, replace(case.demands, drafts=(slow,)), case.rates, 8 * GB)
    assert found.gamma < plan_of(case, 8 * GB).gamma
    assert found.draft_seconds in (0.2, 0.0)


def test_parts_go_to_the_cpu_only_where_it_may_and_is_faster_than_the_link() -> None:
    case = shape_case("llama2-7b")
    case = replace(case, demands=replace(case.demands, drafts=()))  # passes of many rows are slow on a CPU
    allowed = replace(case.demands, allow_host=True)
    quick = replace(case.rates, cpu=2 * case.rates.link)
    assert Residency.HOST not in plan(case.parts, allowed, case.rates, 8 * GB).residency
    assert Residency.HOST not in plan(case.parts, case.demands, quick, 8 * GB).residency
    found = plan(case.parts, allowed, quick, 8 * GB)
    hosted = [part for part, lies in zip(found.parts, found.residency, strict=True) if lies is Residency.HOST]
    assert hosted and found.slots == 0 and all(part.kind == MLP for part in hosted)
    assert token_seconds(found) < token_seconds(plan(case.parts, case.demands, quick, 8 * GB))


def test_a_matrix_that_is_tied_is_counted_once() -> None:
    case = shape_case("smollm2-135m", device="cpu")
    embedding = 49152 * 576 * 2
    assert case.demands.output_read == embedding
    assert embedding <= case.demands.always < 1.01 * embedding
    weights = case.demands.always + sum(part.nbytes for part in case.parts)
    assert weights == pytest.approx(269_030_016, rel=1e-3)
    assert all(part.layer is not None for part in case.parts)


def test_the_prediction_is_what_ordered_copies_and_kernels_take() -> None:
    chance, errors = random.Random(7), []
    for _ in range(200):
        case = random_case(chance)
        demands = replace(case.demands, allow_host=False, attended=0)
        least = minimum(case.parts, demands, case.rates)
        found = plan(case.parts, demands, case.rates, int(least + chance.random() * 8 * GB))
        if len(found.streamed) < 6:
            continue
        errors.append(abs(1 - found.plain_seconds / simulated_pass(found, case.rates, 0)))
        if found.gamma:
            rates = replace(case.rates, device=case.rates.device / (1 + case.rates.row * found.gamma))
            simulated = simulated_pass(found, rates, 0, found.gamma * found.draft_seconds)
            errors.append(abs(1 - found.verify_seconds / simulated))
    errors.sort()
    assert len(errors) > 150
    assert errors[-1] < 0.17
    assert errors[len(errors) * 9 // 10] < 0.05


def test_the_same_question_has_the_same_answer_and_a_slider_can_ask_it() -> None:
    parts = tuple(
        Part(2 * layer + side, layer, kind, (), size)
        for layer in range(80)
        for side, (kind, size) in enumerate((("attention", 302 * 10**6), ("mlp", 1409 * 10**6)))
    )
    demands = Demands(GB, 0, GB, 0, GB, 0, 0, shape_case("llama2-7b").demands.drafts, streamed_rows=48)
    plan(parts, demands, CARD, 24 * GB)
    began = time.process_time()
    answers = {plan(parts, demands, CARD, 24 * GB) for _ in range(20)}
    assert (time.process_time() - began) / 20 < 0.005
    assert len(answers) == 1


def test_what_is_demanded_on_the_cpu_is_what_loading_counts_on(tmp_path: Path) -> None:
    folder = open_folder(tiny_llama(tmp_path / "model", hidden=128, dtype="float16", positions=512))
    config = folder.config
    sizes = {name: entry.nbytes for name, entry in folder.entries.items()}
    parts = parts_of(config, sizes)
    demands = demands_of(config, sizes, parts, device="cpu", context=300)
    needs = host_needs(config, folder.entries, default_recipe(config), 300)
    assert (parts, demands) == (needs.parts, replace(needs.demands, always_drafts=True))


def test_a_pass_takes_as_long_as_the_slower_of_computing_and_copies() -> None:
    rates = replace(CARD, device=100.0, link=10.0, row=0.5, cpu=20.0, cpu_row=1.0)
    resident = Device.of(Reads(resident=1000), rates)
    assert pass_seconds([resident]) == 10.0
    assert pass_seconds([resident], rows=3) == 20.0
    streaming = Device.of(Reads(resident=100, streamed=900, ahead=200, last=50), rates)
    assert pass_seconds([streaming]) == 90.0 + 0.5
    assert pass_seconds([streaming], idle=15.0) == 75.0 + 0.5
    assert pass_seconds([streaming], idle=1000.0) == 70.0 + 0.5  # no more than the slots hold was brought in before
    assert pass_seconds([Device.of(Reads(resident=100, host=200), rates)], rows=2) == 1.5 + 20.0
    assert pass_seconds([resident, streaming], handovers=1.0) == 90.5
    assert pass_seconds([resident] * 10, handovers=1.0) == 101.0


def test_speed_is_told_where_half_a_thousand_tokens_are_in_the_cache() -> None:
    row = 2 * 32 * 128 * 2
    assert shape_case("llama2-7b", context=4096).demands.attended == 32 * row * 512
    assert shape_case("llama2-7b", context=100).demands.attended == 32 * row * 100
    assert shape_case("llama2-7b", context=4096).demands.kv == pytest.approx(32 * row * 4096, rel=0.02)
