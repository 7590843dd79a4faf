"""The packed products of low-bit drafts against the values that the codes stand for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numba import njit

from engine.kernels.compiled.lowbit_linear import fine_kernel, rows_kernel
from engine.kernels.compiled.quantise_input import quantise_group
from engine.lowbit.codes import LowBitCodes, dequantise, round_to_nearest
from engine.lowbit.packed import PackedMatrix, container_bits, kept_rows, pack, replace_row
from engine.model import programme as p
from engine.model.compiled_memory import input_buffers
from engine.model.runner import MAX_DRAFT_ROWS
from kernel_rig import Rig, shape

COLUMNS = 384
BITS = (8, 4, 3)
GROUPS = (8, 16, 32, 64, 128)


def coded(rows: int, bits: int, group: int, seed: int = 0, columns: int = COLUMNS) -> LowBitCodes:
    random = np.random.default_rng(seed)
    weight = random.normal(0.02, 0.3, (rows, columns)).astype(np.float32)
    return round_to_nearest(weight, bits, group, random.uniform(0.3, 3, columns).astype(np.float32))


def quantised(rows: np.ndarray, codes: LowBitCodes) -> np.ndarray:
    """The inputs that the kernels multiply with, times the factors again, float64 [rows, K]."""
    scaled = (rows * (np.float32(1) / codes.factors)).astype(np.float32)
    grouped = scaled.reshape(len(rows), -1, codes.group)
    top = np.abs(grouped).max(2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        whole = np.rint(grouped * np.where(top > 1e-30, np.float32(127) / top, 0).astype(np.float32))
    return (whole * (top.astype(np.float64) / 127)).reshape(scaled.shape) * codes.factors


def rig_for(weight: PackedMatrix, **changes: int) -> Rig:
    size = shape(hidden_size=weight.columns, vocab_size=max(97, weight.rows), num_attention_heads=6, **changes)
    rig = Rig(size, {"w": weight})  # type: ignore[dict-item]
    rig.memory = replace(rig.memory, quantised=input_buffers(size))
    return rig


def assert_product(got: np.ndarray, rows: np.ndarray, codes: LowBitCodes) -> None:
    """Equal up to float32 sums over groups: a unit of each of a few terms a group."""
    inputs, weight = quantised(rows, codes), dequantise(codes).astype(np.float64)
    limit = 2.0**-20 * (np.abs(inputs) @ np.abs(weight).T + 1e-3) + 2.0**-20 * np.abs(inputs).sum(1, keepdims=True)
    assert (np.abs(got - inputs @ weight.T) <= limit).all()


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("group", GROUPS)
def test_products_equal_those_of_the_dequantised_weights(bits: int, group: int) -> None:
    for rows in (1, 7, 8, 21, 97):
        codes = coded(rows, bits, group, rows)
        rig = rig_for(pack(codes))
        for count in range(1, MAX_DRAFT_ROWS + 1):
            inputs = np.random.default_rng(count).normal(0, 2, (count, COLUMNS)).astype(np.float32)
            rig[p.Buffer.NORMED][:count] = inputs
            rig[p.Buffer.LOGITS][:] = np.nan
            rig.run(p.Linear("w", p.Buffer.NORMED, p.Buffer.LOGITS), tokens=[0] * count)
            got = rig[p.Buffer.LOGITS]
            assert_product(got[:count, :rows], inputs, codes)
            assert np.isnan(got[count:]).all() and np.isnan(got[:, rows:]).all(), "more was written than asked for"


def test_a_row_has_the_same_bits_beside_any_others() -> None:
    codes = coded(50, 4, 64)
    rig = rig_for(pack(codes))
    inputs = np.random.default_rng(5).normal(0, 1, (8, COLUMNS)).astype(np.float32)
    results = []
    for count in (1, 2, 3, 4, 5, 8):
        rig[p.Buffer.NORMED][:count] = inputs[:count]
        rig.run(p.Linear("w", p.Buffer.NORMED, p.Buffer.LOGITS), tokens=[0] * count)
        results.append(rig[p.Buffer.LOGITS][:count, :50].copy())
    for result in results:
        assert np.array_equal(result, results[-1][: len(result)])


@pytest.mark.parametrize("bits", BITS)
def test_inputs_of_zero_of_huge_and_of_tiny_values(bits: int) -> None:
    codes = coded(16, bits, 64)
    rig = rig_for(pack(codes))
    inputs = np.zeros((4, COLUMNS), np.float32)
    inputs[1, 64:] = np.random.default_rng(1).normal(0, 1e30, COLUMNS - 64)
    inputs[2, 5] = 1e-37  # so little that its scale would not be a normal number
    inputs[3, ::3] = -3.0
    rig[p.Buffer.NORMED][:4] = inputs
    rig.run(p.Linear("w", p.Buffer.NORMED, p.Buffer.LOGITS), tokens=[0] * 4)
    got = rig[p.Buffer.LOGITS][:4, :16]
    assert (got[0] == 0).all() and (got[2] == 0).all() and np.isfinite(got).all()
    assert_product(got, inputs, codes)


@pytest.mark.parametrize("nonsense", [np.nan, np.inf, -np.inf])
def test_nonsense_in_one_row_is_nan_in_its_result_only(nonsense: float) -> None:
    rig = rig_for(pack(coded(16, 4, 64)))
    rig[p.Buffer.NORMED][:3] = 1.0
    rig[p.Buffer.NORMED][1, 70] = nonsense
    rig.run(p.Linear("w", p.Buffer.NORMED, p.Buffer.LOGITS), tokens=[0] * 3)
    got = rig[p.Buffer.LOGITS][:3, :16]
    assert np.isnan(got[1]).all() and np.isfinite(got[[0, 2]]).all()


def test_a_bias_is_added_and_only_the_wanted_columns_are_written() -> None:
    codes = coded(19, 4, 32)
    rig = rig_for(pack(codes))
    bias = np.random.default_rng(2).normal(0, 5, 19).astype(np.float32)
    rig.weights["b"] = bias  # type: ignore[index]
    inputs = np.random.default_rng(3).normal(0, 1, (5, COLUMNS)).astype(np.float32)
    rig[p.Buffer.NORMED][:5] = inputs
    rig.run(p.Linear("w", p.Buffer.NORMED, p.Buffer.QKV, column=13, bias="b"), tokens=[0] * 5)
    got = rig[p.Buffer.QKV][:5]
    assert_product(got[:, 13:32] - bias, inputs, codes)
    assert np.isnan(got[:, :13]).all() and np.isnan(got[:, 32:]).all()


@pytest.mark.parametrize("bits", BITS)
def test_the_form_for_processors_without_byte_products_computes_the_same(bits: int) -> None:
    group = unit = 32 if bits == 3 else 8
    codes = coded(11, bits, group, columns=64)
    weight = pack(codes)
    inputs = np.random.default_rng(4).normal(0, 1, (2, 64)).astype(np.float32)
    rows = np.zeros((2, 128), np.uint8)
    ones = np.ones(64, np.float32)
    for row, line in zip(rows, inputs / codes.factors, strict=True):
        for first in range(0, 64, group):
            addresses = line[first:].ctypes.data, ones.ctypes.data, group, row[first:].ctypes.data
            _quantise(*addresses, row[64 + first // group * 8 :].ctypes.data)
    results = []
    for native in (0, 1):
        y = np.full((2, 11), np.nan, np.float32)
        where = rows.ctypes.data, rows.strides[0], 64, y.ctypes.data, y.strides[0]
        tile_bytes = weight.data.shape[1] * weight.data.shape[2]
        kernel = fine_kernel(bits, unit, native)
        kernel(weight.data.ctypes.data, tile_bytes, group // unit, 64 // group, *where, 0, 16, 11, 2)
        results.append(y)
    assert_product(results[0], inputs, codes)
    assert np.array_equal(*results)


def test_four_rows_at_once_without_byte_products_too() -> None:
    codes = coded(9, 4, 64, columns=64)
    weight = pack(codes)
    rows = np.zeros((4, 128), np.uint8)
    inputs = np.random.default_rng(4).normal(0, 1, (4, 64)).astype(np.float32) / codes.factors
    ones = np.ones(64, np.float32)
    for row, line in zip(rows, inputs, strict=True):
        _quantise(line.ctypes.data, ones.ctypes.data, 64, row.ctypes.data, row[64:].ctypes.data)
    y = np.full((4, 9), np.nan, np.float32)
    where = rows.ctypes.data, rows.strides[0], 64, y.ctypes.data, y.strides[0]
    rows_kernel(4, 64, 0)(weight.data.ctypes.data, weight.data.shape[2], 1, 1, *where, 0, 16, 9, 4)
    assert_product(y, inputs * codes.factors, codes)


@njit
def _quantise(x: int, factors: int, count: int, target: int, ends: int) -> None:
    quantise_group(x, factors, count, target, ends)  # type: ignore[call-arg]


@pytest.mark.parametrize(("bits", "group"), [(8, 64), (4, 64), (4, 8), (3, 64), (3, 16)])
def test_kept_rows_are_the_rows_and_can_be_replaced(bits: int, group: int) -> None:
    codes = coded(40, bits, group)
    whole, ids = pack(codes), np.array([39, 0, 7, 8, 21, 3, 3, 30, 12])
    kept = kept_rows(whole, ids)
    assert kept.bits == container_bits(bits, group) and kept.rows == 9
    assert np.array_equal(kept.data, pack(part(codes, ids)).data)
    replace_row(whole, kept, 25, 4)
    ids[4] = 25
    assert np.array_equal(kept.data, pack(part(codes, ids)).data)


def part(codes: LowBitCodes, rows: np.ndarray) -> LowBitCodes:
    return replace(codes, codes=codes.codes[rows], scale=codes.scale[rows], low=codes.low[rows])


def test_three_bits_take_less_memory_only_in_groups_that_planes_fit() -> None:
    assert pack(coded(256, 3, 64)).nbytes < 0.79 * pack(coded(256, 4, 64)).nbytes
    assert pack(coded(256, 3, 16)).nbytes == pack(coded(256, 4, 16)).nbytes


@pytest.mark.parametrize("heads", [1, 3, 6])
def test_producers_write_int8_inputs_wherever_groups_allow(heads: int) -> None:
    """Norm, attention and gate followed by a packed matrix, against the same with the float values between."""
    config = {"hidden_size": 192, "intermediate_size": 384, "num_attention_heads": heads, "num_key_value_heads": 1}
    size = shape(**config, head_dim=192 // heads, vocab_size=192)
    random = np.random.default_rng(heads)
    down, out, up = coded(192, 4, 128), coded(192, 4, 64, 1, 192), coded(30, 8, 64, 2, 192)
    weights = {"down": pack(down), "out": pack(out), "up": pack(up), "n": np.ones(192, np.float32)}
    rig = Rig(size, weights)  # type: ignore[arg-type]
    rig.memory = replace(rig.memory, quantised=input_buffers(size))
    for name, width in ((p.Buffer.STREAM, 192), (p.Buffer.QKV, rig[p.Buffer.QKV].shape[1]), (p.Buffer.GATE_UP, 768)):
        rig[name][:3, :width] = random.normal(0, 1, (3, width))
    chains = (
        (p.AddNorm("n", False), "up", up, p.Buffer.NORMED),
        (p.Attend(0), "out", out, p.Buffer.ATTENDED),
        (p.GatedSilu(0, 384, observes=False), "down", down, p.Buffer.ACTIVATED),
    )
    rig.memory.cache[0][:3] = random.normal(0, 1, rig.memory.cache[0][:3].shape)
    for producer, name, codes, between in chains:
        rig.run(producer, p.Linear(name, between, p.Buffer.LOGITS), tokens=[0] * 3)
        inputs = rig[between][:3, : codes.columns].copy()
        assert np.isfinite(inputs).all() and inputs.std() > 0.1
        assert_product(rig[p.Buffer.LOGITS][:3, : codes.rows], inputs, codes)


def test_matrices_of_one_input_must_share_its_groups() -> None:
    rig = rig_for(pack(coded(8, 4, 64)))
    rig.weights["v"] = pack(coded(8, 4, 32))  # type: ignore[index]
    with pytest.raises(ValueError, match="v must share groups and factors"):
        rig.run(*(p.Linear(name, p.Buffer.NORMED, p.Buffer.LOGITS) for name in ("w", "v")))
