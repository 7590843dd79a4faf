"""The compiled kernels of an MLP whose neurons planes choose, against the predictor's own arithmetic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import read_safetensors, tiny_llama, write_safetensors
from engine.kernels.compiled import table as t
from engine.kernels.compiled.binding import bind
from engine.kernels.compiled.interpreter import run
from engine.kernels.compiled.lowbit_inputs import planes_of
from engine.kernels.compiled.memory import Memory, PlanedMlp, Weights
from engine.kernels.compiled.plane_layout import SPARE, blocks_of
from engine.kernels.compiled.team import Team
from engine.lowbit.codes import LowBitCodes, dequantise, round_to_nearest
from engine.lowbit.neuron_planes import make_planes, unpacked
from engine.lowbit.packed import pack
from engine.model import programme as p
from engine.predict.planes import PlanePredictor, chosen_mlp, high_plane, planes_fit
from engine.recipe import Recipe
from engine_rig import compiled_runner
from kernel_rig import Rig, shape

ROWS = 5


class Mlp:
    """An MLP's 4-bit codes, and its planes with thresholds fitted on random inputs."""

    def __init__(self, hidden: int, neurons: int, group: int) -> None:
        random = np.random.default_rng(hidden + neurons)

        def matrix(rows: int, columns: int, factors: np.ndarray | None = None) -> LowBitCodes:
            spread = random.lognormal(0, 0.6, (rows, 1))
            weight = random.normal(size=(rows, columns)) * spread * columns**-0.5
            return round_to_nearest(weight.astype(np.float32), 4, group, factors)

        factors = random.lognormal(0, 0.3, hidden).astype(np.float32)
        self.gate, self.up = matrix(neurons, hidden, factors), matrix(neurons, hidden, factors)
        self.down = matrix(neurons, hidden)
        self.inputs = random.normal(size=(400, hidden)).astype(np.float32)
        self.planes = make_planes(0, pack(self.gate), pack(self.up), self.down, self.inputs[:300])
        self.hidden, self.neurons, self.group = hidden, neurons, group

    def predictor(self, share: float) -> PlanePredictor:
        curve = self.planes.curve
        gate, up = high_plane(self.gate), high_plane(self.up)
        return PlanePredictor(gate, up, self.planes.reach, curve.threshold(share), curve.gate_error, curve.up_error)

    def as_int8(self, inputs: np.ndarray) -> np.ndarray:
        """The inputs as the integer products see them."""
        grouped = (inputs / self.gate.factors).reshape(len(inputs), -1, self.group)
        scale = abs(grouped).max(2, keepdims=True) / 127
        return np.asarray((np.rint(grouped / scale) * scale).reshape(inputs.shape) * self.gate.factors, np.float32)

    def run(self, inputs: np.ndarray, share: float, threads: int = 1) -> tuple[np.ndarray, list[list[int]]]:
        """What the kernels add to the stream for these rows, and the neurons they chose for each."""
        config = shape(hidden_size=self.hidden, intermediate_size=self.neurons)
        rig = Rig(config, {})
        planed = PlanedMlp(self.planes, self.planes.parameters(share))
        memory = planes_memory(rig.memory, self.hidden, self.neurons)
        memory.buffers[p.Buffer.NORMED][: len(inputs)] = inputs
        weights = Weights(none, none, none, none, (), planes=lambda _: planed)
        table = bind((p.PlaneMlp(0), p.PlaneDown(0)), config, memory, weights)
        assert [int(row[t.OPERATION]) for row in table] == [t.QUANTISE, t.PLANE_MLP, t.PLANE_DOWN]
        control, counters = (
            np.zeros(t.CONTROL, np.int64),
            np.zeros(len(table) * t.counter_bytes(threads) // 8, np.int64),
        )
        control[t.ROWS], control[t.COUNTERS] = len(inputs), counters.ctypes.data
        control[t.THREADS] = threads
        team = Team(threads)
        try:
            team.run(lambda member: run(table.ctypes.data, len(table), control.ctypes.data, 0, member))
        finally:
            team.close()
        lists = memory.chosen[: ROWS * self.neurons].reshape(ROWS, -1)
        chosen = []
        for row in range(len(inputs)):
            parts = enumerate(memory.chosen_counts[row])
            chosen.append([int(n) for b, count in parts for n in lists[row, b * 128 : b * 128 + count]])
        return memory.buffers[p.Buffer.DELTA][: len(inputs)].copy(), chosen


def planes_memory(memory: Memory, hidden: int, neurons: int) -> Memory:
    return replace(
        memory,
        quantised={p.Buffer.NORMED: np.zeros((ROWS, 2 * hidden), np.uint8)},
        chosen=np.zeros(ROWS * neurons + SPARE, np.int32),
        chosen_counts=np.zeros((ROWS, blocks_of(neurons)), np.int64),
    )


def none(_: str) -> Any:
    raise AssertionError("planes need no other weight")


@pytest.fixture(scope="module", params=[(64, 128, 64), (192, 328, 64), (256, 512, 128)])
def mlp(request: pytest.FixtureRequest) -> Mlp:
    return Mlp(*request.param)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_the_kernels_choose_and_compute_what_the_predictor_says(mlp: Mlp, share: float) -> None:
    result, chosen = mlp.run(mlp.inputs[300 : 300 + ROWS], share)
    inputs = mlp.as_int8(mlp.inputs[300 : 300 + ROWS])
    predictor = mlp.predictor(share)
    wanted = predictor.choose(inputs)
    for row, neurons in enumerate(chosen):
        assert neurons == sorted(set(neurons))
        different = set(neurons) ^ set(np.flatnonzero(wanted[row]).tolist())
        assert len(different) <= 2, "float16 ends of the upper planes move only scores at the threshold"
        only = np.isin(np.arange(mlp.neurons), neurons)
        everything = replace(predictor, threshold=float("-inf"))
        down = dequantise(mlp.down) * only[:, None]
        exact = chosen_mlp(everything, mlp.gate, mlp.up, down, inputs[row : row + 1])[0]
        assert np.linalg.norm(result[row] - exact) < 3e-3 * np.linalg.norm(exact)


def test_rows_and_threads_change_nothing(mlp: Mlp) -> None:
    inputs = mlp.inputs[310 : 310 + ROWS]
    together, lists = mlp.run(inputs, 0.5, threads=3)
    for row in range(ROWS):
        alone, chosen = mlp.run(inputs[row : row + 1], 0.5)
        assert chosen[0] == lists[row] and np.array_equal(alone[0], together[row])


def test_zeros_add_zero_and_nan_is_not_hidden(mlp: Mlp) -> None:
    inputs = np.zeros((2, mlp.hidden), np.float32)
    inputs[1, 3] = np.nan
    result, chosen = mlp.run(inputs, 0.5)
    assert np.array_equal(result[0], np.zeros(mlp.hidden, np.float32)) and np.isnan(result[1]).all()
    assert all(chosen)


def test_packed_codes_come_back(mlp: Mlp) -> None:
    back = unpacked(pack(mlp.gate))
    assert np.array_equal(back.codes, mlp.gate.codes)
    assert np.array_equal(back.scale, mlp.gate.scale) and np.array_equal(back.low, mlp.gate.low)
    assert np.allclose(back.factors, mlp.gate.factors, rtol=1e-6)
    with pytest.raises(ValueError, match="8-bit"):
        unpacked(pack(round_to_nearest(np.ones((8, 64), np.float32), 8, 64)))


def test_the_curve_keeps_the_share_and_reports_recall(mlp: Mlp) -> None:
    for share in (0.1, 0.33, 0.5, 0.9):
        kept = float(mlp.predictor(share).choose(mlp.inputs[300:]).mean())
        assert abs(kept - share) < 0.05
    found = [mlp.planes.curve.report(share).recall for share in (0.1, 0.5, 0.9)]
    assert found == sorted(found) and found[1] > 0.8
    assert mlp.planes.curve.threshold(1.0) == float("-inf")


def test_layers_without_planes_are_told() -> None:
    with pytest.raises(ValueError, match="planes"):
        planes_of(0, Weights(none, none, none, none, ()))


def test_which_recipes_choose_by_planes() -> None:
    config, names = shape(), frozenset({"model.layers.0.mlp.gate_proj.weight"})
    half = Recipe(weight_bits=4, neuron_share=0.5)
    assert p.chooses_by_planes(config, names, half)
    assert not p.chooses_by_planes(config, names, replace(half, weight_bits=8))
    assert not p.chooses_by_planes(config, names, replace(half, neuron_share=1.0))
    assert not p.chooses_by_planes(config, names | {"model.layers.0.mlp.up_proj.bias"}, half)
    assert planes_fit(2048, 5632) and not planes_fit(96, 256) and not planes_fit(64, 100)


def test_a_draft_chooses_its_neurons_token_by_token(tmp_path: Path) -> None:
    """Of the neurons, half only answer to the first half of the stream and half to the second."""
    folder = tiny_llama(tmp_path, std=0.2)
    tensors = read_safetensors(folder)
    for layer in range(2):
        for part in ("gate", "up"):
            tensors[f"model.layers.{layer}.mlp.{part}_proj.weight"][::2] *= 0.02
    write_safetensors(folder / "model.safetensors", tensors)
    ids = np.random.default_rng(1).integers(0, 290, 30).tolist()
    with compiled_runner(folder, recipe=Recipe(weight_bits=4)) as runner:
        runner.full(ids, 0, 0)
        dense = runner.draft([7, 9, 11], 30).copy()
        assert runner.neuron_report() is None
        before = runner.draft_bytes
        runner.use_recipe(Recipe(weight_bits=4, neuron_share=0.5))
        chosen = runner.draft([7, 9, 11], 30).copy()
        report = runner.neuron_report()
        assert report is not None and len(report.layers) == 2 and report.recall > 0.95
        assert runner.draft_bytes > before
        for row in range(3):
            assert np.corrcoef(chosen[row], dense[row])[0, 1] > 0.97
        runner.use_recipe(Recipe(weight_bits=8))
        runner.release_copies([8])
        assert runner.draft_bytes < before * 3
