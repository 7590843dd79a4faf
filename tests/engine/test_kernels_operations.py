"""Every compiled operation that is not a matrix product, against its torch reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numba import njit

from engine.kernels.compiled.peak import peak_of
from engine.kernels.compiled.vector_lanes import exp_and_sum
from engine.kernels.reference import operations as op
from engine.model import programme as p
from engine.sampling.distribution import peak
from kernel_rig import Rig, exact, shape, store

UNIT = 2.0**-24


def tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).double()


@njit
def exponentials(address: int, count: int) -> float:
    return exp_and_sum(address, count, np.float32(0.0))  # type: ignore[no-any-return, call-arg]


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_embed_copies_the_tokens_rows_exactly(kind: str) -> None:
    random = np.random.default_rng(0)
    weight = store(random.normal(0, 1, (97, 64)).astype(np.float32), kind)
    rig = Rig(shape(), {p.EMBEDDING: weight})
    tokens = [96, 0, 5, 5, 41]
    rig.run(p.Embed(p.EMBEDDING), tokens=tokens)
    wanted = op.embed(tensor(exact(weight)), torch.tensor(tokens)).numpy()
    assert np.array_equal(rig[p.Buffer.STREAM][:5], wanted)
    assert np.isnan(rig[p.Buffer.STREAM][5:]).all()


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_add_norm_equals_the_reference(adds: bool, size: float) -> None:
    random = np.random.default_rng(1)
    weight = random.normal(1, 0.2, 64).astype(np.float32)
    stream, delta = (random.normal(0, size, (6, 64)).astype(np.float32) for _ in range(2))
    rig = Rig(shape(), {"n": weight})
    rig[p.Buffer.STREAM][:6], rig[p.Buffer.DELTA][:6] = stream, delta
    rig.run(p.AddNorm("n", adds), tokens=[0] * 6)
    summed, normed = op.add_norm(tensor(stream), tensor(delta) if adds else None, tensor(weight), 1e-5)
    assert np.array_equal(rig[p.Buffer.STREAM][:6], stream + delta if adds else stream)
    assert np.allclose(rig[p.Buffer.STREAM][:6], summed.numpy(), rtol=1e-6, atol=0)
    # The delta's rounding reaches the sum of squares; 24 units cover it, the chain of eight steps and the scaling.
    assert np.allclose(rig[p.Buffer.NORMED][:6], normed.numpy(), rtol=24 * UNIT, atol=8 * UNIT)


def test_a_zero_row_with_an_epsilon_of_nothing_ends_the_pass_instead_of_hanging_it() -> None:
    rig = Rig(shape(rms_norm_eps=1e-60), {"n": np.ones(64, np.float32)}, threads=2)
    rig[p.Buffer.STREAM][:2] = [[0.0] * 64, [1.0] * 64]
    rig.run(p.AddNorm("n", False), tokens=[0, 0])
    assert np.isnan(rig[p.Buffer.NORMED][0]).all()
    assert np.array_equal(rig[p.Buffer.NORMED][1], np.ones(64, np.float32))


@pytest.mark.parametrize("cache", [np.float32, np.float16])
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(4, 4, 16), (6, 2, 32), (8, 1, 48), (4, 2, 64)])
def test_rotate_store_rotates_and_writes_the_cache(cache: type, heads: int, kv_heads: int, head_dim: int) -> None:
    random = np.random.default_rng(2)
    config = shape(num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim)
    rig = Rig(config, {}, cache=cache)
    rows, position = 5, 117
    qkv = random.normal(0, 3, (rows, heads + 2 * kv_heads, head_dim)).astype(np.float32)
    rig[p.Buffer.QKV][:rows] = qkv.reshape(rows, -1)
    rig.run(p.RotateStore(0), tokens=[0] * rows, position=position)

    at = slice(position, position + rows)
    cosine, sine = tensor(rig.memory.cosine[at]), tensor(rig.memory.sine[at])
    turned = op.rotate(tensor(qkv), cosine, sine).numpy()
    limit = 4 * UNIT * np.abs(qkv).max()
    queries = rig[p.Buffer.QKV][:rows].reshape(rows, -1, head_dim)[:, :heads]
    assert np.abs(queries - turned[:, :heads] * head_dim**-0.5).max() <= limit
    keys, values = rig.memory.cache[0][at, 0], rig.memory.cache[0][at, 1]
    half = 2.0**-11 if cache is np.float16 else 0.0
    assert (np.abs(keys - turned[:, heads : heads + kv_heads]) <= half * np.abs(keys) + limit).all()
    assert np.array_equal(values, qkv[:, heads + kv_heads :].astype(cache))
    untouched = np.delete(rig.memory.cache[0], np.r_[at], axis=0)
    assert np.isnan(untouched).all(), "rows outside the pass were written"


@pytest.mark.parametrize("cache", [np.float32, np.float16])
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(4, 4, 16), (6, 2, 32), (8, 1, 80), (2, 2, 128)])
def test_attend_equals_the_reference_over_every_length(cache: type, heads: int, kv_heads: int, head_dim: int) -> None:
    random = np.random.default_rng(3)
    config = shape(num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim)
    rig = Rig(config, {}, cache=cache)
    rig.memory.cache[0][:] = random.normal(0, 2, rig.memory.cache[0].shape)
    queries = random.normal(0, 2, (7, heads, head_dim)).astype(np.float32)
    for first in (0, 1, 6, 7, 8, 9, 63, 64, 100, 293):
        rig[p.Buffer.QKV][:7, : heads * head_dim] = queries.reshape(7, -1)
        rig.run(p.Attend(0), tokens=[0] * 7, position=first)
        got = rig[p.Buffer.ATTENDED][:7].reshape(7, heads, head_dim)
        held = tensor(rig.memory.cache[0][: first + 7].astype(np.float32))
        wanted = op.attend(tensor(queries), held[:, 0], held[:, 1], first, 1.0)
        # Scores reach 100; their rounding shows as a relative error of the softmax weights.
        assert np.abs(got - wanted.numpy()).max() < 1e-4, first


def test_every_length_from_1_to_300_attends_to_exactly_its_own_positions() -> None:
    config = shape(num_attention_heads=2, num_key_value_heads=1, head_dim=16)
    rig = Rig(config, {})
    cache = rig.memory.cache[0]
    cache[:, 0] = 0.0  # equal scores: the mean over the positions seen, which tells how many there were
    cache[:, 1] = np.arange(320, dtype=np.float32)[:, None, None]
    rig[p.Buffer.QKV][:, :32] = 1.0
    for first in range(0, 300, 50):
        rig.run(p.Attend(0), tokens=[0] * 50, position=first)
        means = (np.arange(first, first + 50) / 2.0)[:, None]
        assert np.allclose(rig[p.Buffer.ATTENDED][:50], means, rtol=1e-5, atol=1e-5)


def test_attend_passes_a_nan_on() -> None:
    rig = Rig(shape(), {})
    rig.memory.cache[0][:] = 1.0
    rig.memory.cache[0][3, 0] = np.nan
    rig[p.Buffer.QKV][:2] = 1.0
    rig.run(p.Attend(0), tokens=[0, 0], position=2)
    assert not np.isnan(rig[p.Buffer.ATTENDED][0]).any()
    assert np.isnan(rig[p.Buffer.ATTENDED][1]).all()


@pytest.mark.parametrize("inner", [8, 128, 256, 264, 600])
def test_gated_silu_equals_the_reference_and_keeps_the_statistic(inner: int) -> None:
    random = np.random.default_rng(4)
    rig = Rig(shape(intermediate_size=inner), {})
    both = random.normal(0, 6, (5, 2 * inner)).astype(np.float32)
    rig[p.Buffer.GATE_UP][:5] = both
    rig.memory.statistics[0] = 2.0
    rig.run(p.GatedSilu(0, inner, observes=True), tokens=[0] * 5)
    wanted = op.gated_silu(tensor(both[:, :inner]), tensor(both[:, inner:])).numpy()
    assert np.allclose(rig[p.Buffer.ACTIVATED][:5], wanted, rtol=1e-6, atol=1e-30)
    assert np.allclose(rig.memory.statistics[0], 0.9 * 2.0 + 0.1 * np.abs(wanted[0]), rtol=1e-5)
    before = rig.memory.statistics.copy()
    rig.run(p.GatedSilu(0, inner, observes=False), tokens=[0] * 5)
    assert np.array_equal(rig.memory.statistics, before)


def test_silu_holds_at_the_ends_of_the_range() -> None:
    rig = Rig(shape(intermediate_size=8), {})
    gates = np.array([-1e30, -200.0, -88.0, 0.0, 88.0, 200.0, 1e30, np.nan], np.float32)
    rig[p.Buffer.GATE_UP][0] = np.concatenate((gates, np.ones(8, np.float32)))
    rig.run(p.GatedSilu(0, 8, observes=False))
    got = rig[p.Buffer.ACTIVATED][0]
    assert np.allclose(got[:7], [0, 0, 0, 0, 88, 200, 1e30], rtol=1e-6, atol=1e-6)
    assert np.isnan(got[7])


def test_the_exponential_is_accurate_to_two_units_in_the_last_place() -> None:
    random = np.random.default_rng(9)
    points = np.concatenate((np.linspace(-87.33, 88.3, 200_000), random.uniform(-1, 1, 100_000), [0.0] * 8))
    points = points.astype(np.float32)
    values = points.copy()
    exponentials(values.ctypes.data, len(values))
    truth = np.exp(points.astype(np.float64))
    assert np.abs(values / truth - 1).max() < 2e-7
    assert (values[-8:] == 1.0).all()


def test_the_exponential_of_the_extremes() -> None:
    values = np.array([-np.inf, -1e30, -104.0, -87.4, -0.0, np.nan, 0.0, 0.0], np.float32)
    exponentials(values.ctypes.data, 8)
    assert (values[:4] == 0.0).all()
    assert values[4] == 1.0
    assert np.isnan(values[5])


@pytest.mark.parametrize("count", [1, 7, 8, 9, 2048, 2049, 5000, 49152])
def test_the_compiled_peak_equals_the_library_one(count: int) -> None:
    random = np.random.default_rng(count)
    for _ in range(5):
        row = random.normal(0, 5, count).astype(np.float32)
        row[random.integers(count)] = row.max()  # two best: the lower id wins
        index, value, total = peak_of(row.ctypes.data, count)
        best, top, wanted = peak(row)
        assert (int(index), np.float32(value)) == (best, top)
        assert total == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("place", [0, 8, 3000, 4999])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_compiled_peak_shows_a_fault_anywhere(place: int, bad: float) -> None:
    row = np.random.default_rng(1).normal(0, 5, 5000).astype(np.float32)
    row[place] = bad
    assert np.isnan(peak_of(row.ctypes.data, 5000)[2])
