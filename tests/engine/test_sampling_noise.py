"""The noise is the documented function, exponential, and independent over ids, positions and seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from engine.sampling.noise import Noise, fresh_seed

M32, M64 = 2**32 - 1, 2**64 - 1
CHANCE = 1e-4  # p-value below which a difference counts as real
GOLDEN = 0x9E3779B97F4A7C15


def mix64(z: int) -> int:
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & M64
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & M64
    return z ^ z >> 31


def mix32(x: int, a: int, b: int) -> int:
    x ^= a
    x ^= x >> 17
    x = x * 0xED5AD4BB & M32
    x ^= x >> 11
    x = (x + b) & M32
    x = x * 0xAC4C1B51 & M32
    x ^= x >> 15
    x = x * 0x31848BAB & M32
    return x ^ x >> 14


def documented(seed: int, position: int, token: int) -> tuple[int, int, float]:
    """High word, low word and E as the module's docstring defines them, in exact integers."""
    k = mix64((mix64((seed + GOLDEN) & M64) + GOLDEN * (position + 1)) & M64)
    low_key = mix64((k + GOLDEN) & M64)
    spread = mix32(token, 0, 0)
    high = mix32(spread, k & M32, k >> 32)
    low = mix32(spread, low_key & M32, low_key >> 32)
    return (
        high,
        low,
        -math.log1p(-(high * 2.0**32 + low + 0.5) / 2.0**64)
        if high < 2**31
        else -math.log((2**65 - 2 * (high * 2**32 + low) - 1) / 2**65),
    )


@pytest.mark.parametrize(("seed", "position"), [(0, 0), (1, 0), (42, 7), (2**63 - 1, 131071), (2**32, 2**31)])
def test_the_noise_is_the_documented_function(seed: int, position: int) -> None:
    noise = Noise(seed, 3000)
    high, low = noise.words(position)
    expected = [documented(seed, position, i) for i in range(3000)]
    assert high.tolist() == [h for h, _, _ in expected]
    assert low.tolist() == [w for _, w, _ in expected]
    values = noise.exponentials(position)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, [e for _, _, e in expected], rtol=1e-5)


def test_small_values_keep_full_precision() -> None:
    noise = Noise(5, 150_000)
    high, _ = noise.words(3)
    values = noise.exponentials(3)
    small = np.flatnonzero(high < 2**24)
    assert len(small) > 400
    np.testing.assert_allclose(values[small], [documented(5, 3, int(i))[2] for i in small], rtol=1e-6)
    order = np.argsort(high, kind="stable")
    steps = np.diff(values[order].astype(np.float64))
    assert (steps >= -1e-5 * values[order][1:]).all(), "E must grow with the hash, also where the two formulas meet"
    assert values.min() > 0
    assert np.isfinite(values).all()


def test_a_subset_of_ids_gets_the_same_noise() -> None:
    noise = Noise(9, 5000)
    ids = np.array([0, 3, 17, 4999])
    assert np.array_equal(noise.exponentials(11, ids), noise.exponentials(11)[ids])
    assert np.array_equal(noise.exponentials(11), Noise(9, 8000).exponentials(11)[:5000]), "vocabulary size is no input"


def samples(axis: str) -> np.ndarray:
    if axis == "ids":
        return Noise(1, 40_000).exponentials(0)
    if axis == "positions":
        noise = Noise(1, 8)
        return np.concatenate([noise.exponentials(t) for t in range(5000)])
    return np.concatenate([Noise(seed, 8).exponentials(3) for seed in range(5000)])


@pytest.mark.parametrize("axis", ["ids", "positions", "seeds"])
def test_the_noise_is_exponential_along_every_axis(axis: str) -> None:
    values = samples(axis).astype(np.float64)
    assert stats.kstest(values, "expon").pvalue > CHANCE
    counts = np.bincount((np.exp(-values) * 256).astype(int).clip(0, 255), minlength=256)
    assert stats.chisquare(counts).pvalue > CHANCE
    assert len(np.unique(values)) > 0.99 * len(values)


def flips(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Share of the 32 output bits that differ, bit by bit."""
    different = (a ^ b)[:, None] >> np.arange(32, dtype=np.uint32) & 1
    return different.mean(axis=0)


def test_flipping_any_input_bit_flips_every_output_bit_half_the_time() -> None:
    n = 4096
    tolerance = 6 * 0.5 / math.sqrt(n)
    wide = Noise(77, 2 * n)
    for bit in range(13):
        ids = np.arange(2 * n)
        ids = ids[ids & 1 << bit == 0][:n]
        for position in (0, 12345):
            share = flips(wide.words(position, ids)[0], wide.words(position, ids | 1 << bit)[0])
            assert np.abs(share - 0.5).max() < tolerance, f"id bit {bit}"
    narrow = Noise(77, n)
    for bit in range(31):
        share = flips(narrow.words(5)[0], narrow.words(5 ^ 1 << bit)[0])
        assert np.abs(share - 0.5).max() < tolerance, f"position bit {bit}"
    for bit in range(63):
        share = flips(narrow.words(5)[0], Noise(77 ^ 1 << bit, n).words(5)[0])
        assert np.abs(share - 0.5).max() < tolerance, f"seed bit {bit}"


def test_positions_seeds_words_and_neighbouring_ids_are_uncorrelated() -> None:
    n = 20_000
    rows = [np.log(Noise(seed, n).exponentials(t)) for seed in (0, 1, 2, 3) for t in range(8)]
    high, low = Noise(0, n).words(0)
    rows += [high.astype(np.float64), low.astype(np.float64)]
    rows += [np.roll(rows[0], shift) for shift in (1, 2, 3, 64)]
    correlations = np.corrcoef(rows)
    same_word = np.zeros_like(correlations, bool)
    same_word[0, 32] = same_word[32, 0] = True  # the first row is made from that word
    np.fill_diagonal(same_word, True)
    assert abs(correlations[0, 32]) > 0.5
    assert np.abs(correlations[~same_word]).max() < 5 / math.sqrt(n)


def test_winners_of_neighbouring_positions_are_independent() -> None:
    noise = Noise(3, 6)
    winners = np.array([noise.exponentials(t).argmin() for t in range(12_000)])
    for lag in (1, 2, 5):
        table = np.zeros((6, 6))
        np.add.at(table, (winners[:-lag], winners[lag:]), 1)
        assert stats.chi2_contingency(table).pvalue > CHANCE


def test_fresh_seeds_differ_and_are_short() -> None:
    seeds = {fresh_seed() for _ in range(50)}
    assert len(seeds) > 45
    assert all(0 <= seed < 2**32 for seed in seeds)
