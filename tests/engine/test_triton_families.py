"""Steps of every family on the card's kernels against the torch runner, and against themselves at other widths.

Models are made by transformers as in test_families, with two heads 32 wide; compiled where there is a card.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from draft_rig import make_draft, rounded_model
from engine.files.folder import open_folder
from engine.model.fused import fuse, unsupported
from engine.recipe import Recipe
from engine_rig import torch_runner
from family_models import CASES, LONG, Case, make
from step_rig import make_step
from triton_rig import INTERPRETED, Tensor

VOCABULARY, WINDOW = 101, 24
SMALL: dict[str, Any] = {"vocab_size": VOCABULARY, "num_attention_heads": 2}
GROUPED = SMALL | {"num_key_value_heads": 1}
IDS = np.random.default_rng(5).integers(3, VOCABULARY, 48).tolist()
NAMES = ("qwen2", "qwen3", "smollm3", "mistral", "opt", "phi3 longrope")
ON_CARD = [case for case in CASES if case.name in NAMES]


def folder_of(case: Case, tmp_path: Path) -> Path:
    settings = SMALL if case.config_class == "OPTConfig" else GROUPED
    if case.name == "phi3 longrope":  # as many factors as such heads have pairs
        settings = settings | {"rope_parameters": LONG | {"short_factor": [1.5] * 16, "long_factor": [4.0] * 16}}
    return make(case, tmp_path, std=0.12, dtype="float16", **settings).folder


def error(actual: Tensor, expected: np.ndarray) -> float:
    wanted = torch.from_numpy(expected.copy())
    return float(((actual.cpu() - wanted).norm(dim=-1) / wanted.norm(dim=-1)).max())


@pytest.mark.parametrize("case", ON_CARD, ids=lambda case: case.name)
def test_steps_match_torch_and_rows_do_not_depend_on_the_width(case: Case, tmp_path: Path) -> None:
    folder = folder_of(case, tmp_path)
    oracle, step = torch_runner(folder), make_step(folder)
    step.prompt(0, [*IDS[:32], *[0] * 32])
    oracle.full(IDS[:32], 0, 0)
    whole = step.full(32, IDS[32:48])
    assert error(whole, oracle.full(IDS[32:48], 32, 16)) < 0.01
    for rows in (1,) if INTERPRETED else (1, 2, 7):
        assert torch.equal(step.full(32, IDS[32 : 32 + rows]), whole[:rows])


@pytest.mark.parametrize("case", ON_CARD, ids=lambda case: case.name)
def test_draft_steps_match_torch_over_the_rounded_weights(case: Case, tmp_path: Path) -> None:
    folder = folder_of(case, tmp_path)
    oracle, step = torch_runner(folder), make_step(folder)
    runner = step.runner
    model = fuse(runner.config, runner._weights, runner._cache, runner._cosine, runner._sine)
    draft_model, values = rounded_model(model)
    step.prompt(0, [*IDS[:32], *[0] * 32])
    oracle.full(IDS[:32], 0, 0)
    for name, weight in runner._weights.items():
        for address, value in values.items():
            first = (weight.data_ptr() - address) // (2 * value.shape[1])
            if weight.ndim == 2 and "embed" not in name and 0 <= first < len(value):
                oracle._weights[name] = value[first : first + len(weight)].half().cpu()
    tied = values.get(runner._weights["model.embed_tokens.weight"].data_ptr())
    if tied is not None:  # tokens come from the embedding as it is, logits from its copy
        oracle._weights["lm_head.weight"] = tied.half().cpu()
        oracle._full = oracle._draft = oracle._full[:-1] + (
            type(oracle._full[-1])("lm_head.weight", oracle._full[-1].source, oracle._full[-1].target, on_tail=True),
        )
    draft = make_draft(step, draft_model)
    step.begin(32, IDS[32:33])
    assert error(draft.run(), oracle.draft(IDS[32:33], 32)) < 0.06
    step.begin(32, IDS[32:33])
    assert error(draft.run(IDS[33:36]), oracle.draft(IDS[32:36], 32)) < 0.06, "several rows at once"


def test_what_the_kernels_do_not_take_is_said_with_its_reason(tmp_path: Path) -> None:
    reasons = {}
    for case in CASES:
        folder = open_folder(folder_of(case, tmp_path / case.name))
        reasons[case.name] = unsupported(folder.config, torch.float16, frozenset(folder.entries))
    assert {name for name, reason in reasons.items() if reason is not None} == {
        "llama biases",
        "opt 350m",
        "opt without prefix",
    }
    assert reasons["opt 350m"] == "its norms follow its blocks"
    assert reasons["llama biases"] == "its MLP gates have biases"


def test_a_whole_draft_is_rounded_by_the_inputs_of_a_sample(tmp_path: Path) -> None:
    """The copy that a card's runner makes takes its inputs in the order of the pass, OPT's too."""
    from engine.model.card_draft import four_bit_copy

    for case in (case for case in ON_CARD if case.name in ("qwen3", "opt")):
        step = make_step(folder_of(case, tmp_path / case.name))
        runner = step.runner
        model = fuse(runner.config, runner._weights, runner._cache, runner._cosine, runner._sine)
        copy = four_bit_copy(model, runner.sample_inputs(IDS), lambda _: None, lambda: False)
        step.full(0, IDS[:16])
        plain = step.full(16, IDS[16:17])
        draft = make_draft(step, copy)
        step.begin(16, IDS[16:17])
        assert error(draft.run(), plain.cpu().numpy()) < 0.35
    assert Recipe(weight_bits=16) == runner.recipe
