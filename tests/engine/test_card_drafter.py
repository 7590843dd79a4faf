"""Cycles whose passes run on a card: what the drafter asks of it, and what a NaN does; the card is a script here."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.errors import NumericFault
from engine.model.card_reports import DraftReport, Judgement
from engine.model.observed import observe
from engine.sampling.sampler import Sampler
from engine.settings import Sampling, Speculation
from engine.speculation.card_drafter import CardDrafter
from engine.speculation.choose_stepper import make_stepper
from engine.speculation.controller import GammaController
from engine.speculation.drafter import Proposal, SiblingPlan
from engine.speculation.host_drafter import HostDrafter
from engine.speculation.stepper import CycleStepper

SAMPLER = Sampler(Sampling(temperature=0.5), 16, seed=9)


class ScriptedCard:
    """Answers passes from lists and writes down what was asked."""

    decode_rows, most_siblings, draft_rows = 16, 14, 4

    def __init__(self, reports: list[DraftReport] | None = None, judgements: list[Judgement] | None = None) -> None:
        self.reports, self.judgements = reports or [], judgements or []
        self.asked: list[object] = []
        self.graphs = SimpleNamespace(logits=lambda rows: torch.arange(rows * 2.0).view(rows, 2))

    def choose_by(self, settings: Sampling, seed: int, history: list[int]) -> None:
        self.asked.append(("choose", seed, list(history)))

    def begin_cycle(self, token: int, position: int) -> None:
        self.asked.append(("begin", token, position))

    def draft_step(self, drafted: int, proposals: list[int]) -> DraftReport:
        self.asked.append(("step", drafted, list(proposals)))
        return self.reports.pop(0)

    def judge(self, chain: list[int], checked: int, siblings: list[tuple[int, int]]) -> Judgement:
        self.asked.append(("judge", list(chain), checked, list(siblings)))
        return self.judgements.pop(0)

    def draft_ahead(self) -> None:
        self.asked.append("ahead")


def report(*ids: int, prob: float = 0.9) -> DraftReport:
    return DraftReport(ids, (prob,) * len(ids), tuple(i + 1 for i in ids), (0.05,) * len(ids))


def test_a_cycle_asks_for_steps_behind_the_block_and_reads_rows_apart() -> None:
    card = ScriptedCard([report(7), report(8, 9)], [Judgement((7, 8, 9, 5, 6), (0.5,) * 5, (0.5,) * 3, 3, 0)])
    drafter = CardDrafter(card, SAMPLER)
    drafter.begin([1, 2, 3])
    assert drafter.step(()) == [Proposal(7, 0.9, 8, 0.05)]
    assert [proposal.id for proposal in drafter.step([8])] == [8, 9]
    verdict = drafter.verify((), [SiblingPlan(1, 11, 0.1)])
    assert card.asked == [
        ("choose", 9, []),
        ("choose", 9, [1, 2, 3]),
        ("begin", 3, 2),
        ("step", 0, []),
        ("step", 1, [8]),
        ("judge", [7, 8, 9], 3, [(1, 11)]),
        "ahead",
    ]
    assert verdict.chosen_ids == (7, 8, 9, 5) and verdict.sibling_ids == (6,)
    assert len(verdict.step_seconds) == 2 and min(*verdict.step_seconds, verdict.verify_seconds) >= 0


def test_later_cycles_choose_by_the_state_on_the_card_and_repeated_ones_anew() -> None:
    card = ScriptedCard()
    drafter = CardDrafter(card, SAMPLER)
    for ids in ([1, 2], [1, 2, 3], [1, 2, 3]):
        drafter.begin(ids)
    choices = [asked for asked in card.asked if asked[0] == "choose"]  # type: ignore[index]
    assert choices == [("choose", 9, []), ("choose", 9, [1, 2]), ("choose", 9, [1, 2, 3])]


def test_a_draft_that_computes_nan_ends_the_block() -> None:
    broken = DraftReport((4, 5), (0.9, math.nan), (-1, -1), (0.0, math.nan))
    drafter = CardDrafter(ScriptedCard([broken]), SAMPLER)
    drafter.begin([1])
    assert drafter.step([4]) == [Proposal(4, 0.9, None, 0.0)]


def fixed(card: ScriptedCard) -> CycleStepper:
    return CycleStepper(CardDrafter(card, SAMPLER), GammaController(fixed=1), lambda: False, cascade=False)


def test_a_nan_in_a_drafted_block_is_tried_again_as_a_plain_step() -> None:
    judgements = [Judgement((5, 6), (math.nan, 0.5), (0.5,), 0, 0), Judgement((5,), (0.6,), (), 0, 0)]
    block = fixed(ScriptedCard([report(7)], judgements)).step([1, 2], 1, 1)
    assert block is not None and block.chain == () and block.chosen_ids == (5,)


def test_a_nan_in_a_plain_step_is_a_numeric_fault_that_names_the_position() -> None:
    card = ScriptedCard([], [Judgement((5,), (math.nan,), (), 0, 0)])
    with pytest.raises(NumericFault, match="position 4"):
        fixed(card).step([1, 2, 3, 4], 0, 9)


def test_an_observer_sees_the_rows_that_count() -> None:
    seen: list[tuple[int, np.ndarray]] = []
    judgement = Judgement((7, 1, 2, 9), (0.5,) * 4, (0.5,) * 2, 1, 3)
    watched = observe(ScriptedCard([], [judgement]), lambda at, rows: seen.append((at, rows)))  # type: ignore[arg-type]
    watched.begin_cycle(4, 20)  # type: ignore[attr-defined]
    assert watched.judge((7, 8), 2, [(1, 8)]) is judgement  # type: ignore[attr-defined]
    assert seen[0][0] == 20 and seen[0][1].tolist() == [[0.0, 1.0], [2.0, 3.0], [6.0, 7.0]]


@pytest.mark.parametrize(("runner", "kind"), [(ScriptedCard(), CardDrafter), (SimpleNamespace(), HostDrafter)])
def test_the_card_chooses_where_the_runner_can(runner: object, kind: type) -> None:
    stepper = make_stepper(runner, SAMPLER, GammaController(), lambda: False, Speculation())  # type: ignore[arg-type]
    assert isinstance(stepper, CycleStepper) and type(stepper._drafter) is kind
