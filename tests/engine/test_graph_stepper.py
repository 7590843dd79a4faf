"""Blocks judged on the card: which runner gets them, and what a NaN does; the card is stood in for by a script."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from engine.errors import NumericFault
from engine.model.decode_graphs import CycleResult
from engine.sampling.sampler import Sampler
from engine.settings import Sampling
from engine.speculation.controller import GammaController
from engine.speculation.graph_stepper import GraphStepper, make_stepper
from engine.speculation.stepper import CycleStepper

SAMPLER = Sampler(Sampling(temperature=0.5), 16, seed=9)


class ScriptedCard:
    """Answers cycles from a list and writes down what was asked."""

    def __init__(self, *results: CycleResult) -> None:
        self.results, self.asked = list(results), []

    def choose_by(self, settings: Sampling, seed: int, history: list[int]) -> None:
        self.chosen_by = (settings, seed, list(history))

    def cycle(self, token: int, position: int, gamma: int) -> CycleResult:
        self.asked.append((token, position, gamma))
        return self.results.pop(0)


def result(drafted: tuple[int, ...], chosen: tuple[int, ...], accepted: int, probs: tuple[float, ...]) -> CycleResult:
    return CycleResult(drafted, (0.5,) * len(drafted), chosen, probs, (0.5,) * len(drafted), accepted, 0.01, 0.02)


def test_a_block_comes_back_as_the_card_judged_it() -> None:
    card = ScriptedCard(result((7, 8), (7, 9, 4), 1, (0.9, 0.8, 0.7)))
    block = GraphStepper(card, SAMPLER, lambda: False).step([1, 2, 3], 2, 9)
    assert block is not None and card.asked == [(3, 2, 2)]
    assert card.chosen_by == (SAMPLER.settings, 9, [1, 2, 3])
    assert (block.chain_ids, block.chosen_ids, block.chosen_probs) == ((7, 8), (7, 9, 4), (0.9, 0.8, 0.7))
    assert (pytest.approx(block.draft_seconds), block.verify_seconds) == (0.01, 0.02)


def test_a_stop_before_a_cycle_asks_the_card_for_nothing() -> None:
    card = ScriptedCard()
    assert GraphStepper(card, SAMPLER, lambda: True).step([1, 2], 3, 9) is None
    assert card.asked == []


def test_a_nan_in_a_drafted_block_is_tried_again_as_a_plain_step() -> None:
    card = ScriptedCard(result((7,), (5, 6), 0, (math.nan, 0.5)), result((), (5,), 0, (0.6,)))
    block = GraphStepper(card, SAMPLER, lambda: False).step([1, 2], 1, 9)
    assert block is not None and block.chain == () and block.chosen_ids == (5,)
    assert card.asked == [(2, 1, 1), (2, 1, 0)]


def test_a_draft_that_computes_nan_is_sure_of_nothing() -> None:
    nonsense = CycleResult((7,), (math.nan,), (5, 6), (0.9, 0.8), (0.1,), 0, 0.01, 0.02)
    block = GraphStepper(ScriptedCard(nonsense), SAMPLER, lambda: False).step([1, 2], 1, 9)
    assert block is not None and [proposal.prob for proposal in block.chain] == [0.0]


def test_a_nan_behind_the_accepted_run_harms_nothing() -> None:
    card = ScriptedCard(result((7, 8), (9, 1, 2), 0, (0.9, math.nan, math.nan)))
    block = GraphStepper(card, SAMPLER, lambda: False).step([1], 2, 9)
    assert block is not None and block.chosen_ids[0] == 9 and len(card.asked) == 1


def test_a_nan_in_a_plain_step_is_a_numeric_fault_that_names_the_position() -> None:
    card = ScriptedCard(result((), (5,), 0, (math.nan,)))
    with pytest.raises(NumericFault, match="position 4"):
        GraphStepper(card, SAMPLER, lambda: False).step([1, 2, 3, 4], 0, 9)


@pytest.mark.parametrize(
    ("runner", "settings", "kind"),
    [
        (ScriptedCard(), Sampling(), GraphStepper),
        (ScriptedCard(), Sampling(temperature=0.8, repetition_penalty=1.2), GraphStepper),
        (SimpleNamespace(), Sampling(), CycleStepper),
    ],
)
def test_the_card_judges_where_the_runner_can(runner: object, settings: Sampling, kind: type) -> None:
    sampler = Sampler(settings, 16, seed=1)
    assert type(make_stepper(runner, sampler, GammaController(), lambda: False)) is kind  # type: ignore[arg-type]
