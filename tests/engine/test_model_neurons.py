"""The choice of MLP neurons, and the statistic it rests on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from builders import read_safetensors, tiny_llama, write_safetensors
from engine.model.neurons import NeuronChoice
from engine.recipe import Recipe
from engine_rig import compiled_runner


def test_the_neurons_of_the_largest_activity_times_reach_are_chosen_in_ascending_order() -> None:
    reach = np.array([[1, 1, 9, 1, 1, 1], [1, 1, 1, 1, 1, 1]], np.float32)
    activity = np.array([[5, 1, 1, 0, 4, 3], [0, 1, 2, 3, 4, 5]], np.float32)
    choice = NeuronChoice(2, 6, 3, reach)
    arrays = choice.chosen
    choice.refresh(activity)
    assert [ids.tolist() for ids in choice.chosen] == [[0, 2, 4], [3, 4, 5]]
    assert all(a is b and a.dtype == np.int32 for a, b in zip(arrays, choice.chosen, strict=True)), "rewritten in place"


def test_keeping_all_neurons_needs_no_choice() -> None:
    choice = NeuronChoice(1, 8, 8, np.ones((1, 1), np.float32))
    choice.refresh(np.full((1, 8), np.nan, np.float32))
    assert choice.chosen[0].tolist() == list(range(8))


def test_a_draft_of_the_neurons_that_matter_equals_the_full_model(tmp_path: Path) -> None:
    """Half the neurons have a down projection of zero: a draft that keeps the other half loses nothing."""
    folder = tiny_llama(tmp_path, std=0.2)
    tensors = read_safetensors(folder)
    idle = np.random.default_rng(0).permutation(128)[:64]
    for layer in range(2):
        tensors[f"model.layers.{layer}.mlp.down_proj.weight"][:, idle] = 0.0
    write_safetensors(folder / "model.safetensors", tensors)
    ids = np.random.default_rng(1).integers(0, 290, 30).tolist()
    with compiled_runner(folder, recipe=Recipe(weight_bits=16, neuron_share=0.5)) as runner:
        runner.full(ids, 0, 0)
        full = runner.full([7], 30, 1).copy()
        runner.refresh_neurons()
        assert all(not np.isin(chosen, idle).any() for chosen in runner._draft.choice.chosen)
        assert np.abs(runner.draft([7], 30) - full).max() < 1e-4
