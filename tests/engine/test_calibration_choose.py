"""What is tried on a device, and which of it is taken: by measured gain, beside what is taken already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from calibration_rig import EVERYTHING, config
from engine.calibration import plan
from engine.calibration.choose import PATIENCE, Choice, Trial, loss_in_words
from engine.calibration.expected import worth
from engine.calibration.measure import Agreement
from engine.calibration.plan import Block, Ladder, Level
from engine.calibration.report import Verdict
from engine.recipe import Ingredients, Recipe

POSITIONS = 400
BASE = Recipe(weight_bits=4)


def flat(gamma: int) -> float:
    return 1.0 + 0.01 * gamma


def trial(recipe: Recipe, cost: float, misses: Sequence[int], label: str = "") -> Trial:
    matches = np.ones(POSITIONS, bool)
    matches[list(misses)] = False
    return Trial(label, recipe, cost, Agreement(matches, 0.0), worth(matches, cost, flat))


class Bench:
    """Measures by rules: each ingredient multiplies the cost and adds misses; `together` adds more for pairs."""

    def __init__(self, rules: Mapping[str, tuple[float, Sequence[int]]], together: Callable[[set[str]], float]) -> None:
        self.rules, self.together = rules, together
        self.asked: list[Recipe] = []

    def __call__(self, recipe: Recipe, label: str) -> Trial | None:
        self.asked.append(recipe)
        present = {name for name in self.rules if getattr(recipe, name) != getattr(BASE, name)}
        cost, misses = 0.4, set(range(0, POSITIONS, 12))
        for name in present:
            cost *= self.rules[name][0]
            misses |= set(self.rules[name][1])
        return trial(recipe, cost * self.together(present), sorted(misses), label)


def ladder(field: str, *values: object) -> Ladder:
    return Ladder(field, tuple(Level(f"{field} {value}", {field: value}) for value in values))


def chosen(
    rules: Mapping[str, tuple[float, Sequence[int]]], together: Callable[[set[str]], float] = lambda _: 1.0
) -> Choice:
    bench = Bench(rules, together)
    base = bench(BASE, "4-bit weights")
    assert base is not None
    choice = Choice(base, flat)
    strengths: dict[str, object] = {"reduced_vocabulary": 64, "input_sparsity": 0.3, "neuron_share": 0.5}
    for name in rules:
        choice.climb(ladder(name, strengths[name]), bench)
    choice.fill(bench)
    return choice


def test_all_that_pay_are_taken_and_the_rest_is_off_with_its_reason() -> None:
    choice = chosen(
        {
            "reduced_vocabulary": (0.8, ()),
            "input_sparsity": (0.8, range(0, POSITIONS, 3)),
            "neuron_share": (1.1, range(0, POSITIONS, 90)),
        }
    )
    assert choice.best.recipe == replace(BASE, reduced_vocabulary=64)
    found = {finding.ingredient: finding for finding in choice.findings(choice.best)}
    assert [finding.verdict for finding in found.values()] == [Verdict.ON, Verdict.OFF, Verdict.OFF]
    on = found["reduced_vocabulary 64"]
    assert on.reason == f"S from {choice.base.speed_up:.2f} to {choice.best.speed_up:.2f}"
    assert (on.cost, on.acceptance) == pytest.approx((0.32, 1 - 34 / POSITIONS))
    assert found["input_sparsity 0.3"].reason.startswith("c falls by 0.080, but α by 0.2")
    assert found["neuron_share 0.5"].reason.startswith("a draft step gets no cheaper (S ")


def test_two_that_pay_are_measured_together_before_both_are_taken() -> None:
    rules = {"reduced_vocabulary": (0.8, ()), "input_sparsity": (0.85, range(0, POSITIONS, 60))}
    both = replace(BASE, reduced_vocabulary=64, input_sparsity=0.3)
    assert chosen(rules).best.recipe == both
    clash = chosen(rules, lambda present: 1.5 if len(present) == 2 else 1.0)
    assert clash.best.recipe == replace(BASE, reduced_vocabulary=64)
    off = clash.findings(clash.best)[1]
    assert off.recipe == both and off.verdict is Verdict.OFF
    assert off.reason.startswith("a draft step gets no cheaper")


def test_what_promises_nothing_beside_the_others_is_not_even_measured() -> None:
    """Both miss much by themselves, at different places: either pays, both together cannot."""
    rules = {
        "input_sparsity": (0.4, range(0, POSITIONS, 6)),
        "neuron_share": (0.4, range(2, POSITIONS, 6)),
    }
    choice = chosen(rules)
    assert choice.best.recipe == replace(BASE, input_sparsity=0.3)
    assert set(choice.together) == {"input_sparsity"}
    off = choice.findings(choice.best)[1]
    assert off.verdict is Verdict.OFF and off.reason == "promises nothing beside what was chosen"


def test_nothing_is_taken_where_nothing_pays() -> None:
    choice = chosen({"input_sparsity": (0.99, range(0, POSITIONS, 2))})
    assert choice.best is choice.base and not choice.taken and not choice.together


def test_a_gain_within_the_noise_is_not_taken() -> None:
    choice = chosen({"reduced_vocabulary": (0.995, ())})
    assert choice.best is choice.base
    assert choice.findings(choice.best)[0].reason.startswith("it saves too little")


def test_the_last_measure_may_overrule_what_was_taken() -> None:
    choice = chosen({"reduced_vocabulary": (0.8, ())})
    final = trial(BASE, 0.4, [])
    assert choice.findings(final)[0].verdict is Verdict.OFF
    assert choice.findings(final)[0].reason == f"over more text S is better without it, {final.speed_up:.2f}"


def test_a_ladder_is_climbed_while_it_pays_and_a_little_further() -> None:
    costs = {0.3: 0.9, 0.4: 0.7, 0.5: 0.95, 0.6: 0.99, 0.7: 0.1}
    measured: list[float] = []

    def measure(recipe: Recipe, label: str) -> Trial | None:
        measured.append(recipe.input_sparsity)
        return trial(recipe, 0.4 * costs[recipe.input_sparsity], range(0, POSITIONS, 12), label)

    choice = Choice(trial(BASE, 0.4, range(0, POSITIONS, 12)), flat)
    choice.climb(ladder("input_sparsity", *costs), measure)
    assert measured == [0.3, 0.4, 0.5, 0.6] and PATIENCE == 2
    choice.fill(measure)
    assert choice.best.recipe.input_sparsity == 0.4 and len(measured) == 4  # it was measured alone, which is enough


def test_a_ladder_ends_where_there_is_no_time_or_memory() -> None:
    choice = Choice(trial(BASE, 0.4, []), flat)
    choice.climb(ladder("input_sparsity", 0.3, 0.4), lambda recipe, label: None)
    assert choice.singles == {} and choice.findings(choice.best) == []
    choice.fill(lambda recipe, label: None)
    assert choice.best is choice.base


def test_reasons_name_what_is_lost() -> None:
    base = trial(BASE, 0.4, range(0, POSITIONS, 10))
    worse = trial(BASE, 0.38, range(0, POSITIONS, 4))
    speeds = f"(S {worse.speed_up:.2f}, without it {base.speed_up:.2f})"
    assert loss_in_words(base, worse) == f"c falls by 0.020, but α by 0.150 {speeds}"


def test_only_what_the_device_has_is_tried() -> None:
    shape = config()
    assert [level.fields for level in plan.weights(Ingredients((16, 8))).levels] == [
        {"weight_bits": 8},
        {"weight_bits": 16},
    ]
    assert plan.ladders(Ingredients(), shape) == []
    names = [ladder.ingredient for ladder in plan.ladders(EVERYTHING, shape)]
    assert names == ["reduced vocabulary", "dropped input channels", "MLP neurons", "attention heads"]
    assert [finding.ingredient for finding in plan.unable(Ingredients((16, 4)))] == [
        "8-bit weights",
        "3-bit weights",
        "reduced vocabulary",
        "dropped input channels",
        "MLP neurons",
        "attention heads",
        "KV window",
    ]
    assert plan.unable(EVERYTHING) == []
    assert {finding.verdict for finding in plan.unable(Ingredients())} == {Verdict.UNABLE}


def test_relu_models_are_tried_with_few_neurons() -> None:
    def neurons(act: str) -> list[object]:
        ladders = plan.ladders(Ingredients(neurons=True), replace(config(), hidden_act=act))
        return [level.fields["neuron_share"] for level in ladders[0].levels]

    assert neurons("relu") == [0.3, 0.2, 0.1] and neurons("silu") == [0.7, 0.5, 0.3]


def test_small_vocabularies_are_not_reduced() -> None:
    assert plan.vocabulary_levels(64) == []
    assert [level.fields["reduced_vocabulary"] for level in plan.vocabulary_levels(49152)] == [24576, 12288, 6144]
    assert [level.label for level in plan.vocabulary_levels(256)] == ["128 output tokens", "64 output tokens"]


def test_blocks_are_skipped_by_loss_for_the_weights_they_save() -> None:
    shape = config(layers=30)
    assert len(plan.blocks(shape)) == 60
    middle = plan.blocks(shape)[:4]
    assert {block.layer for block in middle} == {14, 15} and plan.blocks(shape)[-1].layer in (0, 29)
    attention, mlp = (plan.block_weights(shape, Block(3, kind)) for kind in (False, True))
    assert mlp == 2 * attention  # 3 * 64 * 128 against 2 * 64 * 16 * 6
    losses = {block: 1.0 for block in plan.blocks(shape)}
    losses |= {Block(5, False): 0.10, Block(9, True): 0.18, Block(7, False): -0.02, Block(2, True): 0.3}
    levels = plan.skipping(shape, losses).levels
    assert levels[0].fields == {"skipped_attention": (7,), "skipped_mlp": (9,)}
    assert levels[0].label == "1 attention and 1 MLP blocks skipped"
    assert levels[1].fields == {"skipped_attention": (5, 7), "skipped_mlp": (2, 9)}
    assert [len(v) for v in levels[-1].fields.values()] and sum(len(v) for v in levels[-1].fields.values()) == 16


def test_no_more_blocks_are_skipped_than_were_ranked_and_never_all() -> None:
    shape = config(layers=30)
    few = {block: 0.1 for block in plan.blocks(shape)[:5]}
    assert [sum(len(v) for v in level.fields.values()) for level in plan.skipping(shape, few).levels] == [2, 4]
    one = config(layers=1)
    assert [level.label for level in plan.skipping(one, {b: 0.1 for b in plan.blocks(one)}).levels] == [
        "1 MLP block skipped"
    ]
    assert plan.skipping(one, {}).levels == ()


def test_skipping_adds_to_what_the_base_leaves_out() -> None:
    base = Recipe(weight_bits=16, skipped_attention=(2,))
    assert Block(1, False).recipe(base).skipped_attention == (1, 2)
    assert Block(2, True).recipe(base) == replace(base, skipped_mlp=(2,))
