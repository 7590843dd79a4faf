"""What a prompt tells: repetition that look-ups can use, or none."""

from __future__ import annotations

import random

from engine.speculation.controller import GammaController
from engine.speculation.estimates import CostProfile
from engine.speculation.measured import Measured
from engine.speculation.prompt_kind import analyse
from speculation_rig import block

RANDOM = random.Random(1).sample(range(5000), 300)
REPEATING = RANDOM[:40] * 6


def test_kinds_of_prompts() -> None:
    assert analyse(REPEATING).phrase == "the prompt repeats itself"
    assert analyse(REPEATING).predicted > 0.75
    assert analyse(RANDOM).phrase == "nothing in the prompt repeats"
    assert analyse(RANDOM).predicted == 0
    assert analyse(REPEATING[:50]).phrase == "", "too short to tell"
    assert analyse(RANDOM + RANDOM[:20]).phrase == "", "nothing that stands out"
    assert analyse([]).tokens == 0


def test_only_the_end_of_a_long_prompt_is_read() -> None:
    assert analyse(REPEATING * 50).tokens <= 1024
    assert analyse(REPEATING * 10 + [*range(6000, 7024)]).predicted == 0


def test_lookups_start_from_what_the_prompt_shows() -> None:
    measured = Measured(CostProfile())
    measured.start_reply(analyse(REPEATING))
    repeating = measured.lookup(12, 0)
    misleading = [token for i in range(60) for token in (7, 8, 100 + i)]
    measured.start_reply(analyse(misleading))
    assert measured.lookup(2, 0) < 0.15 < repeating
    measured.start_reply()
    assert 0.2 < measured.lookup(2, 0) < 0.3, "nothing is left of the last prompt"


def test_a_new_prompt_lets_acceptance_change_quickly() -> None:
    def after_turning_bad(new_prompt: bool) -> float:
        measured = Measured(CostProfile())
        measured.add_plain(1.0)
        for _ in range(60):
            measured.add_block(block([0.9], 1, 0.3, 1.0))
        before = measured.overall.value()
        if new_prompt:
            measured.start_reply()
        assert measured.overall.value() > before - 0.06, "the acceptance itself is kept"
        for _ in range(12):
            measured.add_block(block([0.9], 0, 0.3, 1.0))
        return measured.overall.value()

    assert after_turning_bad(new_prompt=True) < 0.6 < 0.7 < after_turning_bad(new_prompt=False)


def test_the_strategy_says_what_was_done_and_why() -> None:
    controller = GammaController()
    controller.start_reply(analyse(REPEATING))
    assert controller.next_gamma() == 0
    assert controller.strategy(block([], 0, 0.0, 1.0)) == "plain: measuring"
    controller.record_plain(1.0)
    assert controller.next_gamma() > 0
    assert controller.strategy(block([0.9], 1, 0.3, 1.0)) == "chain: the prompt repeats itself"
    controller.start_reply(analyse([1, 2, 3]))
    assert controller.strategy(block([0.9], 1, 0.3, 1.0)) == "chain"
    for _ in range(12):
        controller.record(block([0.9] * 3, 0, 0.9, 1.0))
    while controller.next_gamma():
        controller.record(block([0.9] * 3, 0, 0.9, 1.0))
    while controller.strategy(block([], 0, 0.0, 1.0)) == "plain: measuring":
        controller.record_plain(1.0)
        controller.next_gamma()
    assert controller.strategy(block([], 0, 0.0, 1.0)) == "plain: drafting does not pay"
