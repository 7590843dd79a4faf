"""The compiled matrix products against the torch reference, within the rounding that their order of sums allows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.kernels.reference import operations as op
from engine.model import programme as p
from engine.model.matrix import Matrix
from kernel_rig import DENSE, STORED, Rig, exact, shape, store

UNIT = 2.0**-24  # largest relative rounding error of one float32 operation


def product(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """The reference product of float32 rows with float64 weights."""
    as_tensor = None if bias is None else torch.from_numpy(bias).double()
    return op.linear(torch.from_numpy(rows), torch.from_numpy(weight), as_tensor).numpy()


def allowed(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Error bound of a product: a chain of K/8 fused steps, a tree of three, scale, bias and the last roundings."""
    steps = rows.shape[1] / 8 + 7
    return steps * UNIT * (np.abs(rows).astype(np.float64) @ np.abs(weight).T + 1.0)


@pytest.mark.parametrize("kind", DENSE)
@pytest.mark.parametrize("size", [1, 7, 8, 23, 24, 25, 47, 48, 49, 97, 290, 2100])
def test_linear_equals_the_reference_for_every_stored_type_and_height(kind: str, size: int) -> None:
    random = np.random.default_rng(size)
    weight = store(random.normal(0, 0.3, (size, 64)).astype(np.float32), kind)
    rig = Rig(shape(vocab_size=size), {"w": weight})
    for count in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 64):
        rows = random.normal(0, 2, (count, 64)).astype(np.float32)
        rig[p.Buffer.NORMED][:count] = rows
        rig[p.Buffer.LOGITS][:] = np.nan
        rig.run(p.Linear("w", p.Buffer.NORMED, p.Buffer.LOGITS), tokens=[0] * count)
        got = rig[p.Buffer.LOGITS]
        assert (np.abs(got[:count] - product(rows, exact(weight))) <= allowed(rows, exact(weight))).all(), count
        assert np.isnan(got[count:]).all(), "rows beyond the pass were written"


@pytest.mark.parametrize("kind", DENSE)
def test_linear_writes_its_columns_only_and_adds_its_bias(kind: str) -> None:
    random = np.random.default_rng(5)
    weight = store(random.normal(0, 0.3, (31, 64)).astype(np.float32), kind)
    bias = random.normal(0, 5, 31).astype(np.float32)
    rig = Rig(shape(), {"w": weight, "b": bias})
    rows = random.normal(0, 2, (5, 64)).astype(np.float32)
    rig[p.Buffer.NORMED][:5] = rows
    rig.run(p.Linear("w", p.Buffer.NORMED, p.Buffer.QKV, column=13, bias="b"), tokens=[0] * 5)
    got = rig[p.Buffer.QKV][:5]
    wanted = product(rows, exact(weight), bias)
    limit = allowed(rows, exact(weight)) + 4 * UNIT * np.abs(bias)
    assert (np.abs(got[:, 13:44] - wanted) <= limit).all()
    assert np.isnan(got[:, :13]).all() and np.isnan(got[:, 44:]).all()


@pytest.mark.parametrize("wanted", [0, 1, 3, 6])
def test_on_tail_only_the_wanted_rows_are_computed(wanted: int) -> None:
    random = np.random.default_rng(6)
    weight = store(random.normal(0, 0.3, (97, 64)).astype(np.float32), "float32")
    rig = Rig(shape(), {"w": weight})
    rows = random.normal(0, 2, (6, 64)).astype(np.float32)
    rig[p.Buffer.NORMED][:6] = rows
    step = p.Linear("w", p.Buffer.NORMED, p.Buffer.LOGITS, on_tail=True)
    rig.run(step, tokens=[0] * 6, wanted=wanted)
    got = rig[p.Buffer.LOGITS]
    first = 6 - wanted
    assert np.isnan(got[:first]).all()
    limit = allowed(rows[first:], exact(weight))
    assert (np.abs(got[first:6] - product(rows[first:], exact(weight))) <= limit).all()


@pytest.mark.parametrize("kind", STORED)
def test_gathered_products_equal_the_reference_on_the_chosen_neurons(kind: str) -> None:
    random = np.random.default_rng(7)
    gate = store(random.normal(0, 0.3, (128, 64)).astype(np.float32), kind)
    down = store(random.normal(0, 0.3, (128, 72)).astype(np.float32), kind)  # neuron-major: [neurons, hidden]
    for kept in (8, 72, 120):
        chosen = np.sort(random.choice(128, kept, replace=False)).astype(np.int32)
        wide = shape(hidden_size=72, head_dim=16)
        rig = Rig(wide, {"down": down}, chosen=(chosen,))
        narrow = Rig(shape(), {"gate": gate}, chosen=(chosen,))
        rows = random.normal(0, 2, (3, 64)).astype(np.float32)
        narrow[p.Buffer.NORMED][:3] = rows
        gathers = p.Linear("gate", p.Buffer.NORMED, p.Buffer.GATE_UP, column=kept, neurons_of=0)
        narrow.run(gathers, tokens=[0] * 3)
        got = narrow[p.Buffer.GATE_UP][:3]
        limit = allowed(rows, exact(gate)[chosen])
        assert (np.abs(got[:, kept : 2 * kept] - product(rows, exact(gate)[chosen])) <= limit).all()
        assert np.isnan(got[:, :kept]).all() and np.isnan(got[:, 2 * kept :]).all()

        active = random.normal(0, 2, (3, kept)).astype(np.float32)
        rig[p.Buffer.ACTIVATED][:3, :kept] = active
        rig.run(p.NeuronDown("down", 0), tokens=[0] * 3)
        weight = exact(down)[chosen].T
        bound = (kept + 6) * UNIT * (np.abs(active).astype(np.float64) @ np.abs(weight).T + 1.0)
        assert (np.abs(rig[p.Buffer.DELTA][:3] - product(active, weight)) <= bound).all()


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_int8_copies_are_within_half_a_step_and_zero_rows_stay_zero(kind: str) -> None:
    random = np.random.default_rng(8)
    values = random.normal(0, 0.3, (37, 64)).astype(np.float32)
    values[5] = 0.0
    values[6] = 0.0
    values[6, 9] = -3.0
    stored = store(values, kind)
    copy = _quantised(stored, threads=3)
    scales = copy.owner[1]
    assert (np.abs(exact(copy) - exact(stored)) <= scales[:, None] * (0.5 + 1e-5)).all()
    assert (copy.owner[0][5] == 0).all() and scales[5] == 1.0
    assert copy.owner[0][6, 9] == -127 and np.count_nonzero(copy.owner[0][6]) == 1
    largest = np.abs(exact(stored)).max(axis=1)
    kept = np.arange(37) != 5
    assert np.allclose(scales[kept], largest[kept] / 127, rtol=1e-6)


def test_rows_too_small_to_scale_become_zero_instead_of_an_error() -> None:
    values = np.full((2, 16), 1e-44, np.float32)
    values[1, 0] = 1e-20
    copy = _quantised(store(values, "float32"), threads=1)
    assert (copy.owner[0][0] == 0).all() and np.isfinite(copy.owner[1]).all()
    assert copy.owner[0][1, 0] == 127 and (copy.owner[0][1, 1:] == 0).all()


def _quantised(matrix: Matrix, threads: int) -> Matrix:
    from engine.kernels.compiled.team import Team
    from engine.model.draft_copy import quantised

    team = Team(threads)
    try:
        return quantised(matrix, team)
    finally:
        team.close()
