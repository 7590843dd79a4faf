"""Sibling rows of a full pass: the bits of a token in the chain, the verdict, and the moved cache row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.kernels.triton import judge
from engine.sampling.accept import Branch, accept
from step_rig import VOCABULARY, Step, make_step, small_model
from triton_rig import DEVICE, DTYPES, INTERPRETED, Tensor, quiet

IDS = np.random.default_rng(7).integers(0, VOCABULARY, 300).tolist()


def judged(step: Step, position: int, chain: list[int], siblings: list[tuple[int, int]]) -> Tensor:
    """Logits of a full pass over the chain (its first token is the last known one) and siblings (place, id)."""
    tokens = chain + [token for _, token in siblings]
    step.begin(position, tokens)
    state, rows = step.buffers.state, len(tokens)
    places = [*range(len(chain)), *(place + 1 for place, _ in siblings)]
    state[judge.CHAIN] = len(chain)
    state[judge.PLACES : judge.PLACES + rows] = torch.tensor(places, dtype=torch.int32, device=DEVICE)
    with quiet():
        step.kernels.full(rows, siblings=True)
    return step.buffers.logits[:rows].clone()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_sibling_has_the_bits_of_a_token_in_the_chain(dtype: torch.dtype, tmp_path: Path) -> None:
    """Also where the sibling's position is the first of a new split of keys."""
    step = make_step(small_model(tmp_path, dtype, layers=1 if INTERPRETED else 3), capacity=512)
    generator = torch.Generator().manual_seed(1)
    for layer in step.runner._cache:
        layer.copy_(torch.randn(layer.shape, generator=generator))
    position = 125
    before = step.cache(position)
    chain, siblings = IDS[:5], [(0, IDS[50]), (2, IDS[51]), (3, IDS[52])]
    both = judged(step, position, chain, siblings)
    kept = step.cache(position + 8)
    for layer, saved in zip(step.runner._cache, before, strict=True):
        layer[:position] = saved
    plain = step.full(position, chain)
    assert torch.equal(both[:5], plain), "the chain's rows know nothing of siblings"
    for row, (place, token) in enumerate(siblings, start=5):
        alone = step.full(position, [*chain[: place + 1], token])
        assert torch.equal(both[row], alone[place + 1]), place
        for ours, theirs in zip(kept, step.cache(position + 8), strict=True):
            assert torch.equal(ours[position + row], theirs[position + place + 1]), "keys turned to the right place"


def test_the_verdict_takes_the_sibling_that_the_model_chose(tmp_path: Path) -> None:
    step = make_step(small_model(tmp_path, torch.bfloat16, layers=1), capacity=256)
    step.full(0, IDS[:16])
    logits = step.full(16, [IDS[16]])
    first = int(logits[0].argmax())
    second = int(step.full(16, [IDS[16], first])[1].argmax())
    wrong = (second + 1) % VOCABULARY
    state = step.buffers.state
    cases = [
        ([first, wrong, IDS[40]], [(0, wrong), (1, second), (2, IDS[41])]),
        ([first, wrong], [(1, IDS[42] if IDS[42] != second else IDS[43])]),
        ([first, second], [(1, wrong)]),
        ([wrong], [(0, first)]),
    ]
    for chain, siblings in cases:
        both = judged(step, 16, [IDS[16], *chain], siblings)
        chosen = both.argmax(1).tolist()
        rows = len(chain) + 1
        outcome = accept(chain, chosen[:rows], [Branch(*plan, chosen[rows + i]) for i, plan in enumerate(siblings)])
        taken = int(state[judge.TAKEN])
        assert (taken > 0) == (outcome.sibling is not None)
        assert int(state[judge.TOKENS]) == outcome.next_id
        assert int(state[judge.POSITION]) == 16 + outcome.accepted + 1
        moved = step.cache(16 + outcome.accepted + 1)
        again = [IDS[16], *chain[: outcome.agreed]]
        if outcome.sibling is not None:
            again.append(siblings[outcome.sibling][1])
            assert chosen[rows + outcome.sibling] == outcome.next_id
        step.full(16, again)
        assert all(map(torch.equal, step.cache(16 + outcome.accepted + 1), moved)), "the cache of plain decoding"
