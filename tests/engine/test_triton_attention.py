"""Decode attention against its torch oracle: head groups, head widths, cache lengths around splits, every width."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.kernels.reference import operations as op
from triton_rig import DTYPES, ROWS, Heads, Tensor, assert_close, attend, make_heads

POSITIONS = 384


def oracle(heads: Heads, start: int, *, rotates: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Mixed values of sixteen rows at `start`, and the rotated keys and the values of those rows; all float32."""
    parts = (heads.heads, heads.kv_heads, heads.kv_heads)
    query, key, value = heads.qkv.float().view(ROWS, -1, heads.dim).split(parts, 1)
    rows = slice(start, start + ROWS)
    if rotates:
        query, key = (op.rotate(part, heads.cosine[rows], heads.sine[rows]) for part in (query, key))
    old = heads.cache[:start].float()
    keys, values = torch.cat((old[:, 0], key)), torch.cat((old[:, 1], value))
    return op.attend(query, keys, values, start, heads.dim**-0.5).reshape(ROWS, -1), key, value


def check(heads: Heads, position: int, *, cursor: int | None = None, rotates: bool = True) -> None:
    """All rows against the oracle, and the cache: new rows written, all others as they were."""
    start, dtype = position + (cursor or 0), heads.qkv.dtype
    out, cache = attend(heads, position, cursor=cursor, rotates=rotates)
    mixed, key, value = oracle(heads, start, rotates=rotates)
    assert_close(out, mixed, dtype)
    assert_close(cache[start : start + ROWS, 0], key, dtype)
    assert torch.equal(cache[start : start + ROWS, 1], value.to(dtype))
    assert torch.equal(cache[:start], heads.cache[:start])
    assert cache[start + ROWS :].isnan().all()


@pytest.mark.parametrize("dim", [32, 64, 128])
@pytest.mark.parametrize("group", [1, 2, 3, 4, 8])
def test_groups_and_widths_of_heads(group: int, dim: int) -> None:
    dtype = DTYPES[(group + dim // 32) % 2]
    check(make_heads(group * 2, 2, dim, dtype, 160, seed=group), 120)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("position", [0, 1, 112, 127, 128, 129, 300])
def test_cache_lengths_around_split_boundaries(position: int, dtype: torch.dtype) -> None:
    check(make_heads(3, 1, 32, dtype, POSITIONS, seed=position), position)


def test_more_splits_than_are_combined_at_a_time() -> None:
    """Nine splits: the last stands in a chunk of its own, behind some rows, and holds the best keys of others."""
    heads = make_heads(2, 1, 32, torch.float16, 1100)
    heads.qkv[:, 64:96] *= 4.0
    check(heads, 1024 - 4)


def test_a_draft_step_stands_at_the_cursor() -> None:
    check(make_heads(2, 1, 32, torch.float16, POSITIONS), 125, cursor=4)


def test_models_without_rotary_embedding() -> None:
    check(make_heads(2, 2, 64, torch.float16, POSITIONS), 130, rotates=False)


@pytest.mark.parametrize(("position", "dtype"), [(0, DTYPES[0]), (120, DTYPES[1]), (250, DTYPES[0])])
def test_a_row_has_the_same_bits_at_every_width(position: int, dtype: torch.dtype) -> None:
    heads = make_heads(3, 1, 32, dtype, POSITIONS, seed=5)
    whole, cache = attend(heads, position)
    assert not whole.isnan().any()
    for rows in range(1, ROWS):
        part, part_cache = attend(heads, position, rows, programs=1)
        assert torch.equal(part[:rows], whole[:rows]), rows
        assert part[rows:].isnan().all(), "rows beyond the width are not written"
        assert torch.equal(part_cache[: position + rows], cache[: position + rows])
        assert part_cache[position + rows :].isnan().all()


def test_the_number_of_programs_changes_no_bits() -> None:
    heads = make_heads(3, 1, 32, torch.bfloat16, 700, seed=6)
    reference, cache = attend(heads, 600, programs=1)
    for programs in (2, 3, 7):
        out, after = attend(heads, 600, programs=programs)
        assert torch.equal(out, reference), programs
        assert torch.equal(after.nan_to_num(), cache.nan_to_num())


def test_a_prompt_is_read_in_blocks_of_sixteen_rows() -> None:
    """Forty rows at once: each block of sixteen equals the pass over its rows alone."""
    heads = make_heads(3, 1, 32, torch.float16, 200, rows=40, seed=8)
    together, cache = attend(heads, 120, 40)
    done = replace(heads, cache=cache)
    for first in (0, 16, 32):
        own = replace(done, qkv=heads.qkv[first : first + ROWS])
        rows = min(ROWS, 40 - first)
        alone, alone_cache = attend(own, 120 + first, rows)
        assert torch.equal(together[first : first + rows], alone[:rows]), first
        assert torch.equal(alone_cache[: 120 + first + rows], cache[: 120 + first + rows])


def test_one_key_head_among_huge_scores() -> None:
    """Scores in the thousands: the softmax is a choice of one key, without overflow."""
    heads = make_heads(2, 1, 32, torch.float16, POSITIONS, seed=7)
    heads.qkv[:, :96] *= 60.0
    heads.cache[:, 0] *= 60.0
    check(heads, 140)
