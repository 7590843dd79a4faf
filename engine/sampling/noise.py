"""Reproducible noise: one exponential variate for each (seed, position, token id), from a counter-based hash.

The token at a position is argmax_i p_i / E_i with independent E_i ~ Exp(1): the exponential race, the same thing as
adding Gumbel noise to log p (Gumbel 1954; Maddison, Tarlow, Minka 2014). It picks i with probability exactly p_i.
Because E depends on nothing but (seed, position, id), any distribution can be sampled with the *same* noise, in any
order, on any device; see `sampler.py` for what that buys.

The function, all in wrapping unsigned arithmetic, so that a GPU kernel can repeat it bit for bit:

    G = 0x9E3779B97F4A7C15
    mix64(z): z ^= z >> 30; z *= 0xBF58476D1CE4E5B9; z ^= z >> 27; z *= 0x94D049BB133111EB; z ^= z >> 31
    mix32(x, a, b): x ^= a; x ^= x >> 17; x *= 0xED5AD4BB; x ^= x >> 11; x += b;
                    x *= 0xAC4C1B51; x ^= x >> 15; x *= 0x31848BAB; x ^= x >> 14
    K = mix64(mix64(seed + G) + G * (position + 1));  L = mix64(K + G)
    high_i = mix32(mix32(i, 0, 0), K low half, K high half)
    low_i  = mix32(mix32(i, 0, 0), L low half, L high half)
    u_i = (high_i * 2**32 + low_i + 1/2) / 2**64;  E_i = -log(1 - u_i)

mix64 is the finaliser of SplitMix64 (Steele, Lea, Flood 2014), mix32 that of `triple32` (Wellons, "Prospecting for
hash functions", 2018) with a key word before and between its rounds.

A small E is what makes an unlikely token win, so E keeps full relative precision near zero: `low` is used where
`high` has fewer than 25 bits (1 id in 256), elsewhere it is below the rounding of float32.
"""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

UInts = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float32]

_MASK64 = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_REFINE_BELOW = np.uint32(2**24)


def fresh_seed() -> int:
    """An unpredictable seed of 32 bits: short enough to be read out and typed in again."""
    return secrets.randbits(32)


def _mix64(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK64
    return z ^ (z >> 31)


def _halves(word: int) -> tuple[np.uint32, np.uint32]:
    return np.uint32(word & 0xFFFFFFFF), np.uint32(word >> 32)


def _mix32(x: UInts, first: np.uint32, second: np.uint32) -> UInts:
    x = x ^ first
    scratch = np.right_shift(x, np.uint32(17))
    x ^= scratch
    x *= np.uint32(0xED5AD4BB)
    x ^= np.right_shift(x, np.uint32(11), out=scratch)
    x += second
    x *= np.uint32(0xAC4C1B51)
    x ^= np.right_shift(x, np.uint32(15), out=scratch)
    x *= np.uint32(0x31848BAB)
    x ^= np.right_shift(x, np.uint32(14), out=scratch)
    return x


class Noise:
    """The exponential variates of one seed over one vocabulary. Holds no state that a call changes."""

    def __init__(self, seed: int, vocabulary: int) -> None:
        self._seed_key = _mix64((seed + _GOLDEN) & _MASK64)
        # The position-free half of the hash, computed once.
        self._spread = _mix32(np.arange(vocabulary, dtype=np.uint32), np.uint32(0), np.uint32(0))

    def words(self, position: int, ids: npt.NDArray[np.intp] | None = None) -> tuple[UInts, UInts]:
        """The two hash words (high, low), each uint32 [len(ids)], of `ids` (None: the whole vocabulary)."""
        spread = self._spread if ids is None else self._spread[ids]
        key = self._key(position)
        return _mix32(spread, *_halves(key)), _mix32(spread, *_halves(_mix64((key + _GOLDEN) & _MASK64)))

    def exponentials(self, position: int, ids: npt.NDArray[np.intp] | None = None) -> Floats:
        """E of `ids` (None: the whole vocabulary) at an absolute position: float32 [len(ids)], all above zero."""
        spread = self._spread if ids is None else self._spread[ids]
        key = self._key(position)
        high = _mix32(spread, *_halves(key))
        small = np.flatnonzero(high < _REFINE_BELOW)
        small_high = high[small].astype(np.float64)
        # 1 - u from the complement's top 31 bits: converts through int32, several times faster than from uint32.
        values: Floats = (np.invert(high, out=high) >> np.uint32(1)).view(np.int32).astype(np.float32)
        values += np.float32(0.5)
        values *= np.float32(2.0**-31)
        np.log(values, out=values)
        np.negative(values, out=values)
        if small.size:
            low = _mix32(spread[small], *_halves(_mix64((key + _GOLDEN) & _MASK64)))
            values[small] = -np.log1p(-(small_high * 2.0**32 + low + 0.5) * 2.0**-64)
        return values

    def _key(self, position: int) -> int:
        return _mix64((self._seed_key + _GOLDEN * (position + 1)) & _MASK64)
