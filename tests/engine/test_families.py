"""Every family against transformers: the same logits, cache rows and replies, by plain steps and by speculation.

Models are tiny and random, made by transformers when a test first asks for them; float32 on the CPU, by the compiled
kernels and by torch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine.engine import Engine
from engine.recipe import Recipe
from engine_rig import compiled_runner, loaded_engine, no_end_tokens, reply, request, step_logits, torch_runner
from family_models import CASES, Case, Made, make

IDS = np.random.default_rng(11).integers(3, 290, 90).tolist()
PROMPT, LENGTH = IDS[:30], 64


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    case: Case = request.param
    return make(case, tmp_path_factory.mktemp("family"))


@pytest.fixture(scope="module")
def engine(made: Made) -> Iterator[Engine]:
    with loaded_engine(no_end_tokens(made.folder), context=128) as loaded:
        yield loaded


pytestmark = pytest.mark.parametrize("made", CASES, indirect=True, ids=lambda case: case.name)


def test_logits_of_prompts_and_of_cached_steps(made: Made) -> None:
    wanted = made.logits(IDS)
    slow = torch_runner(made.folder, capacity=128)
    with compiled_runner(made.folder, capacity=128) as fast:
        for runner in (fast, slow):
            assert np.abs(step_logits(runner, IDS) - wanted).max() < 1e-4, "one token at a time"
            for first in range(0, 90, 45):
                tail = runner.full(IDS[first : first + 45], first, 16)
                assert np.abs(tail - wanted[first + 29 : first + 45]).max() < 1e-4, "in one pass"
    slow.close()


def test_replies_are_those_of_transformers_with_and_without_speculation(made: Made, engine: Engine) -> None:
    wanted = made.greedy(PROMPT, LENGTH)
    assert reply(engine, request(PROMPT, LENGTH, plain=True)).ids == wanted
    for recipe in (Recipe(weight_bits=8), Recipe(weight_bits=4), Recipe(weight_bits=8, neuron_share=0.5)):
        found = reply(engine, request(PROMPT, LENGTH, gamma=3, recipe=recipe))
        assert found.ids == wanted
        assert found.drafted > 0
