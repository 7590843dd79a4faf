"""The loop of a block over scripted drafters: whatever the draft, its look-ups, siblings and tails, and whatever the
full model says of them, the tokens are those of plain decoding."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from engine.errors import NumericFault
from engine.records import TokenState
from engine.sampling.accept import Branch, accept, cut
from engine.speculation.block import JudgedBlock
from engine.speculation.controller import GammaController
from engine.speculation.stepper import CycleStepper
from speculation_rig import ScriptedDrafter

Model = Callable[[tuple[int, ...]], int]
NEVER = 99


def model(vocabulary: int, seed: int, memory: int = 3) -> Model:
    """A full model that looks at the last few tokens: with few tokens and a short memory it soon repeats itself."""
    return lambda ids: random.Random(f"{seed} {ids[-memory:]}").randrange(vocabulary)


def draft_of(full: Model, right: float, second: float, vocabulary: int, seed: int) -> Callable:
    """A draft that has the full model's token first, second, or not at all."""

    def choose(ids: tuple[int, ...]) -> tuple[int, int]:
        chance = random.Random(f"{seed} {ids[-5:]}")
        true, wrong = full(ids), chance.randrange(vocabulary)
        if chance.random() < right:
            return true, wrong
        return wrong, (true if chance.random() < second else chance.randrange(vocabulary))

    return choose


def reply(
    drafter: ScriptedDrafter, controller: GammaController, tokens: int, **options: bool
) -> tuple[list[int], list[JudgedBlock]]:
    """The tokens that cycle after cycle commits, and the blocks."""
    stepper = CycleStepper(drafter, controller, lambda: False, **options)
    prompt = [1, 2, 0]
    ids, blocks = list(prompt), []
    while len(ids) < len(prompt) + tokens:
        most = min(stepper.rows - 1, len(prompt) + tokens - len(ids) - 1)
        block = stepper.step(ids, min(controller.next_gamma(), most), most)
        assert block is not None
        controller.record(block)
        blocks.append(block)
        ids += cut(block.chain_ids, block.acceptance, end_ids=(), remaining=len(prompt) + tokens - len(ids)).emitted_ids
    return ids[len(prompt) :], blocks


def plain(full: Model, tokens: int) -> list[int]:
    ids = [1, 2, 0]
    for _ in range(tokens):
        ids.append(full(tuple(ids)))
    return ids[3:]


@pytest.mark.parametrize("fixed", [None, 1, 4, 15])
@pytest.mark.parametrize("draft_rows", [1, 3, 8])
@pytest.mark.parametrize("most_siblings", [0, 1, 14])
def test_the_tokens_are_those_of_plain_decoding(fixed: int | None, draft_rows: int, most_siblings: int) -> None:
    seen = {"taken": 0, "agreed": 0, "tail": 0, "wrong": 0}
    for seed, right in itertools.product(range(4), (0.2, 0.7, 0.95)):
        vocabulary = (3, 6, 50)[seed % 3]
        full = model(vocabulary, seed)
        drafter = ScriptedDrafter(
            draft_of(full, right, 0.7, vocabulary, seed), full, most_siblings=most_siblings, draft_rows=draft_rows
        )
        made, blocks = reply(drafter, GammaController(fixed=fixed), 120)
        assert made == plain(full, 120), (seed, right)
        for block in blocks:
            seen["taken"] += block.acceptance.sibling is not None
            seen["agreed"] += sum(len(draft.agreed) for draft in block.passes)
            seen["tail"] += len(block.chain) - block.checked
            seen["wrong"] += block.acceptance.state is TokenState.CORRECTION
            assert block.acceptance.accepted <= block.acceptance.tested
            assert len(block.siblings) <= most_siblings
    assert seen["wrong"]
    assert (seen["taken"] > 0) == (most_siblings > 0)
    assert (seen["agreed"] > 0) == (draft_rows > 1 and fixed != 1)
    assert (seen["tail"] > 0) == (fixed is None)


@pytest.mark.parametrize("rows", [16, 48])
def test_where_rows_and_drafts_cost_nothing_blocks_are_as_wide_as_the_pass(rows: int) -> None:
    full = model(50, 3)
    draft = draft_of(full, 0.99, 0.0, 50, 3)
    cheap = ScriptedDrafter(
        draft, full, most_siblings=0, rows=rows, seconds=lambda kind, _: 1.0 if kind == "full" else 0.006
    )
    made, blocks = reply(cheap, GammaController(rows - 1), 600)
    assert made == plain(full, 600)
    assert max(len(block.chain) for block in blocks) == rows - 1


def test_every_verdict_on_every_short_block() -> None:
    """All chains of up to three tokens of three, all choices of siblings, all truths."""
    count = 0
    for length in range(4):
        for chain in itertools.product(range(3), repeat=length):
            for beside in itertools.product((None, 0, 1, 2), repeat=length):
                for truth in itertools.product(range(3), repeat=length + 1):
                    count += 1
                    check_verdict(chain, beside, (*truth, count % 3))
    assert count > 100_000


def check_verdict(chain: tuple[int, ...], beside: tuple[int | None, ...], truth: tuple[int, ...]) -> None:
    right = 0
    while right < len(chain) and chain[right] == truth[right]:
        right += 1
    chosen = [truth[i] if i <= right else NEVER for i in range(len(chain) + 1)]
    siblings = [
        Branch(place, token, truth[place + 1] if place <= right and token == truth[place] else NEVER)
        for place, token in enumerate(beside)
        if token is not None
    ]
    outcome = accept(chain, chosen, siblings)
    emitted = cut(chain, outcome, end_ids=()).emitted_ids
    assert emitted == truth[: len(emitted)]
    hit = right < len(chain) and beside[right] == truth[right]
    assert len(emitted) == right + 1 + hit == outcome.accepted + 1
    assert outcome.tested <= len(chain) + hit
    assert outcome.agreed == right


def test_siblings_and_the_cascade_can_be_turned_off() -> None:
    full = model(3, 1)
    drafter = ScriptedDrafter(draft_of(full, 0.6, 0.9, 3, 1), full)
    made, blocks = reply(drafter, GammaController(), 100, cascade=False, siblings=False)
    assert made == plain(full, 100)
    assert not any(block.siblings or block.looked_up for block in blocks)
    assert set(drafter.steps) == {()}


def test_a_cascade_needs_fewer_passes_for_the_same_tokens() -> None:
    full = model(4, 2, memory=2)
    passes = []
    for cascade in (False, True):
        drafter = ScriptedDrafter(draft_of(full, 0.97, 0.5, 4, 2), full, most_siblings=0)
        made, _ = reply(drafter, GammaController(), 200, cascade=cascade)
        assert made == plain(full, 200)
        passes.append(len(drafter.steps) + len(drafter.verified))
    assert passes[1] < 0.5 * passes[0]


def test_a_fault_behind_a_wrong_proposal_is_none() -> None:
    full = model(6, 3)
    faulty = lambda ids: ids[-1] != full(ids[:-1]) and len(ids) > 4  # noqa: E731
    drafter = ScriptedDrafter(draft_of(full, 0.5, 0.5, 6, 3), full, fault=faulty)
    assert reply(drafter, GammaController(fixed=5), 60)[0] == plain(full, 60)


def test_a_fault_in_a_row_that_counts_is_tried_again_without_a_draft() -> None:
    full = model(6, 3)
    failing = {"now": False}
    drafter = ScriptedDrafter(lambda ids: (full(ids), 0), full, fault=lambda ids: failing["now"])
    stepper = CycleStepper(drafter, GammaController(fixed=3), lambda: False)
    seen = drafter.verify
    failing["now"] = True

    def verify(tail: object, siblings: object) -> object:
        verdict = seen(tail, siblings)  # type: ignore[arg-type]
        failing["now"] = False
        return verdict

    drafter.verify = verify  # type: ignore[method-assign, assignment]
    block = stepper.step([1, 2, 3], 3, 9)
    assert block is not None and block.chain == () and block.chosen_ids == (full((1, 2, 3)),)
    assert drafter.begun == [(1, 2, 3)] * 2
    failing["now"] = True
    drafter.verify = seen  # type: ignore[method-assign]
    with pytest.raises(NumericFault, match="position 4"):
        stepper.step([1, 2, 3, 4], 3, 9)


def test_a_draft_that_fails_ends_its_block() -> None:
    full = model(6, 4)
    drafter = ScriptedDrafter(lambda ids: (full(ids), 0), full, most_siblings=0)
    whole = drafter.step
    drafter.step = lambda proposals: (
        []
        if len(drafter.steps) % 3 == 2 and drafter.steps.append(()) is None
        else whole(  # type: ignore[method-assign, func-returns-value]
            proposals
        )
    )
    made, blocks = reply(drafter, GammaController(fixed=6), 60, cascade=False)
    assert made == plain(full, 60)
    assert any(0 < len(block.chain) < 6 for block in blocks)


@pytest.mark.parametrize("after", range(4))
def test_a_stop_ends_the_draft_with_nothing(after: int) -> None:
    full = model(6, 4)
    drafter = ScriptedDrafter(lambda ids: (full(ids), 0), full)
    stepper = CycleStepper(drafter, GammaController(fixed=5), lambda: len(drafter.steps) >= after, cascade=False)
    assert stepper.step([1, 2, 3], 5, 9) is None
    assert len(drafter.steps) == after and not drafter.verified
