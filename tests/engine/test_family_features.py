"""What makes replies fast and models fit, for every family: drafts of every kind, streamed parts, rows that are kept.

Each in the engine, on the CPU: the ids must be those of plain decoding with all of the model in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from engine.engine import Engine
from engine.files.folder import open_folder
from engine.model.cpu_default import default_recipe
from engine.offload import host_plan
from engine.offload.host_needs import host_needs
from engine.offload.plan import Residency
from engine.recipe import Recipe
from engine_rig import Reply, loaded_engine, no_end_tokens, reply, request, torch_runner
from family_models import CASES, Case, Made, make

IDS = np.random.default_rng(12).integers(3, 290, 60).tolist()
PROMPT, LENGTH, CONTEXT = IDS[:30], 40, 128
DRAFTS = (
    Recipe(weight_bits=4),
    Recipe(weight_bits=4, skipped_attention=(1,), skipped_mlp=(2,)),
    Recipe(weight_bits=8, neuron_share=0.2),
    Recipe(weight_bits=4, kv_window=8),
)


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    case: Case = request.param
    found = make(case, tmp_path_factory.mktemp("family"), num_hidden_layers=4)
    no_end_tokens(found.folder)
    return found


@pytest.fixture(scope="module")
def engine(made: Made) -> Iterator[Engine]:
    with loaded_engine(made.folder, context=CONTEXT) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def plain(engine: Engine) -> Reply:
    return reply(engine, request(PROMPT, LENGTH, plain=True))


# How rotations are scaled and names are written is data that test_families checks; the rest differs here.
ALIKE = ("llama linear", "llama dynamic", "llama yarn", "mistral without window", "phi3 longrope", "opt without prefix")
TRIED = [case for case in CASES if case.name not in ALIKE]
pytestmark = pytest.mark.parametrize("made", TRIED, indirect=True, ids=lambda case: case.name)


def test_drafts_of_every_kind_change_no_token(engine: Engine, plain: Reply) -> None:
    for recipe in DRAFTS:
        found = reply(engine, request(PROMPT, LENGTH, gamma=4, recipe=recipe))
        assert found.ids == plain.ids and found.drafted > 0, recipe
    adaptive = reply(engine, request(PROMPT, LENGTH))
    assert adaptive.ids == plain.ids


def test_rows_are_kept_in_virtual_memory_and_used_again(engine: Engine, plain: Reply) -> None:
    engine.forget()
    longer = [*PROMPT, *plain.ids, *IDS[30:40]]
    fresh = reply(engine, request(longer, 20, plain=True))
    memory = engine.memory()
    assert memory is not None and memory.reason is None and memory.used > 0
    engine.forget()
    reply(engine, request(PROMPT, LENGTH, gamma=3))
    again = reply(engine, request(longer, 20, gamma=5))
    assert again.ids == fresh.ids
    assert again.finished.reused_tokens >= len(PROMPT) + LENGTH - 1


def test_with_parts_streamed_from_files_the_tokens_are_the_same(made: Made, plain: Reply) -> None:
    opened = open_folder(made.folder)
    needs = host_needs(opened.config, opened.entries, default_recipe(opened.config), CONTEXT)
    opened.close()
    with loaded_engine(made.folder, context=CONTEXT, budget=host_plan.least(needs)) as engine:
        for wanted in (request(PROMPT, LENGTH, plain=True), request(PROMPT, LENGTH, gamma=4)):
            engine.forget()
            assert reply(engine, wanted).ids == plain.ids
        found = engine.offload()
        assert found is not None and found.plan.bytes_of(Residency.STREAMED) > 0 and found.transfers.bytes > 0


def test_the_torch_path_drafts_too(made: Made, plain: Reply) -> None:
    """It is what runs on cards where the kernels cannot."""
    recipe = Recipe(weight_bits=16, skipped_attention=(1,), skipped_mlp=(2,))
    runner = torch_runner(made.folder, capacity=CONTEXT, recipe=recipe)
    try:
        full = runner.full(PROMPT, 0, 1)[0]
        assert int(full.argmax()) == plain.ids[0]
        assert runner.draft(plain.ids[:2], len(PROMPT)).shape == (2, made.model.config.vocab_size)
        assert replace(recipe) == runner.recipe
    finally:
        runner.close()
