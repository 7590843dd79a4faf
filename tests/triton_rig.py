"""Launches single Triton kernels on tensors made by a test: compiled where there is a card, else interpreted.

Everything a kernel must not read is NaN, and so is everything it must write.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

triton = pytest.importorskip("triton")

from engine.kernels.triton import judge  # noqa: E402 (needs triton)
from engine.kernels.triton.attention import attention_kernel  # noqa: E402
from engine.kernels.triton.hardware import INTERPRETED, supports_dependent_launch  # noqa: E402
from engine.kernels.triton.matmul import matmul_kernel  # noqa: E402

if not INTERPRETED and not torch.cuda.is_available():
    pytest.skip("Triton was imported before TRITON_INTERPRET was set", allow_module_level=True)

DEVICE = torch.device("cpu" if INTERPRETED else "cuda")
DEPENDENT = supports_dependent_launch(DEVICE)
LAUNCH = {"launch_pdl": True} if DEPENDENT else {}
DTYPES = (torch.float16, torch.bfloat16)
ROWS, EPSILON = 16, 1e-5
NAN = float("nan")

Tensor = torch.Tensor


@contextmanager
def quiet() -> Iterator[None]:
    """NumPy interprets the kernels and would warn of the NaN and infinities that are meant to be there."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def random(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape, generator=generator) * scale).to(dtype).to(DEVICE)


def nan(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.full(shape, NAN, dtype=dtype, device=DEVICE)


def assert_close(actual: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    """Row by row, within the rounding of inputs and result to `dtype`: a single wrong column fails."""
    assert actual.shape == expected.shape
    error = (actual.float() - expected.float()).flatten(1).norm(dim=1)
    limit = 2 * torch.finfo(dtype).eps * expected.float().flatten(1).norm(dim=1)
    assert bool((error <= limit).all()), (error / limit).max()


@dataclass(frozen=True)
class Product:
    """Operands of a matrix kernel. x [rows in sixteens, K], w [N or 2 N, K]; squares None: x is not a normed stream."""

    epilogue: int
    x: Tensor
    w: Tensor
    bias: Tensor | None = None
    stream: Tensor | None = None
    gain: Tensor | None = None
    squares: Tensor | None = None
    allowed: int | None = None
    shrink: float = 1.0
    block_n: int = 32
    block_k: int = 32

    @property
    def columns(self) -> int:
        return self.w.shape[0] // (2 if self.epilogue == 2 else 1)

    def with_tile(self, block_n: int, block_k: int) -> Product:
        return replace(self, block_n=block_n, block_k=block_k)


@dataclass(frozen=True)
class ProductResult:
    """What a matrix kernel wrote; untouched places are NaN."""

    y: Tensor
    stream: Tensor
    squares: Tensor
    peaks: Tensor
    peak_ids: Tensor


def multiply(product: Product, rows: int = ROWS) -> ProductResult:
    """One launch for `rows` rows; rows of x beyond them become NaN first."""
    n, (height, k) = product.columns, product.x.shape
    programs = -(-n // product.block_n)
    x = product.x.clone()
    x[rows:] = NAN
    dtype = torch.float32 if product.epilogue == 3 else product.w.dtype
    unused = nan(1)
    result = ProductResult(
        y=nan(height, n, dtype=dtype),
        stream=nan(height, n) if product.stream is None else product.stream.clone(),
        squares=nan(programs, height),
        peaks=nan(programs, 2, ROWS),
        peak_ids=torch.full((programs, ROWS), -1, dtype=torch.int32, device=DEVICE),
    )
    parts = 1 if product.squares is None else product.squares.shape[0]
    with quiet():
        matmul_kernel[(-(-rows // ROWS), programs)](
            x,
            product.w,
            unused if product.bias is None else product.bias,
            result.y,
            result.stream,
            unused if product.gain is None else product.gain,
            unused if product.squares is None else product.squares,
            result.squares,
            result.peaks,
            result.peak_ids,
            rows,
            n,
            n if product.allowed is None else product.allowed,
            EPSILON,
            K=k,
            BLOCK_N=product.block_n,
            BLOCK_K=product.block_k,
            EPILOGUE=product.epilogue,
            NORMED=product.squares is not None,
            HAS_BIAS=product.bias is not None,
            WHOLE_N=n % product.block_n == 0,
            PARTS=parts,
            PARTS_PADDED=triton.next_power_of_2(parts),
            SHRINK=product.shrink,
            AHEAD=0,
            DEPENDENT=DEPENDENT,
            HEIGHT=height,
            num_warps=4,
            num_stages=2,
            **LAUNCH,
        )
    return result


@dataclass(frozen=True)
class Heads:
    """Operands of attention. qkv [rows, (heads + 2 kv) dim] before rotation; cache [positions, 2, kv, dim]."""

    heads: int
    kv_heads: int
    dim: int
    qkv: Tensor
    cache: Tensor
    cosine: Tensor
    sine: Tensor


def make_heads(
    heads: int, kv_heads: int, dim: int, dtype: torch.dtype, positions: int, *, rows: int = ROWS, seed: int = 0
) -> Heads:
    generator = random(seed)
    angle = torch.arange(positions)[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
    return Heads(
        heads,
        kv_heads,
        dim,
        normal(generator, rows, (heads + 2 * kv_heads) * dim, dtype=dtype),
        normal(generator, positions, 2, kv_heads, dim, dtype=dtype),
        angle.cos().to(DEVICE),
        angle.sin().to(DEVICE),
    )


def attend(
    heads: Heads, position: int, rows: int = ROWS, *, programs: int = 2, cursor: int | None = None, rotates: bool = True
) -> tuple[Tensor, Tensor]:
    """One launch at `position` (with a cursor: of a draft step that far ahead): what came out, and the cache after it.

    Rows of qkv beyond `rows` and cache rows that no earlier step wrote are NaN first.
    """
    start = position + (cursor or 0)
    qkv, cache = heads.qkv.clone(), heads.cache.clone()
    qkv[rows:] = NAN
    cache[start:] = NAN
    tile = triton.next_power_of_2(ROWS * heads.heads // heads.kv_heads)
    splits = -(-cache.shape[0] // 128) + 8
    state = torch.zeros(judge.STATE_SIZE, dtype=torch.int32, device=DEVICE)
    state[judge.POSITION], state[judge.CURSOR] = position, 99 if cursor is None else cursor
    blocks = -(-rows // ROWS)
    places = (blocks, heads.kv_heads, splits, tile)
    partial_out, partial_max, partial_sum = nan(*places, heads.dim), nan(*places), nan(*places)
    arrivals = torch.zeros(blocks, heads.kv_heads, dtype=torch.int32, device=DEVICE)
    out = nan(len(qkv), heads.heads * heads.dim, dtype=qkv.dtype)
    with quiet():
        attention_kernel[(heads.kv_heads, programs, blocks)](
            qkv,
            cache,
            heads.cosine,
            heads.sine,
            state,
            partial_out,
            partial_max,
            partial_sum,
            arrivals,
            out,
            rows,
            splits,
            heads.dim**-0.5,
            HEADS=heads.heads,
            KV_HEADS=heads.kv_heads,
            DIM=heads.dim,
            TILE=tile,
            BLOCK_KEYS=128,
            PROGRAMS=programs,
            ROTATES=rotates,
            AT_CURSOR=cursor is not None,
            DEPENDENT=DEPENDENT,
            num_warps=8,
            num_stages=2,
            **LAUNCH,
        )
    assert not arrivals.any(), "the next launch must find no arrivals"
    return out, cache
