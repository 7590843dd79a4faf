"""The operations of a programme in torch, for rows of one conversation. All activations are float32 [rows, width].

Each function computes what the compiled kernel of the same name computes; tests hold one against the other.
"""

from __future__ import annotations

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

Tensor = torch.Tensor


def embed(weight: Tensor, tokens: Tensor) -> Tensor:
    """Rows of the embedding matrix [vocabulary, hidden] as float32."""
    return functional.embedding(tokens, weight).float()


def add_positions(stream: Tensor, weight: Tensor, position: int) -> Tensor:
    """The stream plus rows of a learned table [places, hidden], the first row standing at place `position`.

    Rows beyond the table, which only pad a pass, stand at its last place.
    """
    places = torch.arange(position, position + len(stream), device=stream.device).clamp(max=len(weight) - 1)
    return stream + weight[places].float()


def add_norm(stream: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """The stream plus delta, and its RMS norm (Zhang and Sennrich 2019) times weight."""
    if delta is not None:
        stream = stream + delta
    inverse = torch.rsqrt(stream.square().mean(-1, keepdim=True) + epsilon)
    return stream, stream * inverse * weight


def layer_norm(stream: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Layer norm (Ba, Kiros and Hinton 2016) of each row, times weight, plus bias."""
    centred = stream - stream.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + epsilon) * weight + bias


def head_norm(heads: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """RMS norm of each head [rows, heads, dim], times weight [dim] (Henry et al. 2020, as Qwen3 has it)."""
    return heads * torch.rsqrt(heads.square().mean(-1, keepdim=True) + epsilon) * weight


def linear(source: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """source times weight transposed, multiplied in the weight's own type, accumulated and returned in float32."""
    result = functional.linear(source.to(weight.dtype), weight).float()
    return result if bias is None else result + bias


def rotate(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary embedding, halves paired: heads [rows, heads, dim], cosine and sine [rows, dim / 2]."""
    half = heads.shape[-1] // 2
    first, second = heads[..., :half], heads[..., half:]
    cos, sin = cosine[:, None, :], sine[:, None, :]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def attend(
    query: Tensor, keys: Tensor, values: Tensor, position: int, scale: float, window: int | None = None
) -> Tensor:
    """Causal attention of rows standing at position, position + 1, …, each over the keys up to its own.

    window: only the last so many of them (sliding window, Child et al. 2019); None for all.

    query [rows, heads, dim] float32; keys, values [length, kv heads, dim] of the cache's type, with
    length >= position + rows. Keys behind a row's own position get weight exactly zero, so neither the number of
    rows nor the length changes a row's bits where the kernel walks the keys in fixed blocks (CUDA: memory-efficient
    attention). On the CPU it is called one row at a time.
    """
    rows, heads, dim = query.shape
    length, kv_heads, _ = keys.shape
    group = heads // kv_heads
    k = keys[:, :, None, :].expand(length, kv_heads, group, dim).reshape(length, heads, dim).transpose(0, 1)[None]
    v = values[:, :, None, :].expand(length, kv_heads, group, dim).reshape(length, heads, dim).transpose(0, 1)[None]
    q = query.to(keys.dtype).transpose(0, 1)[None]
    own = torch.arange(position, position + rows, device=query.device)[:, None]
    places = torch.arange(length, device=query.device)[None, :]
    seen = places <= own if window is None else (places <= own) & (places > own - window)
    mask = torch.zeros(rows, length, dtype=q.dtype, device=query.device).masked_fill(~seen, float("-inf"))
    backend = SDPBackend.EFFICIENT_ATTENTION if query.is_cuda else SDPBackend.MATH
    with sdpa_kernel(backend):
        mask = mask.expand(1, heads, rows, length)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    return mixed[0].transpose(0, 1).float()


def gated_silu(gate: Tensor, up: Tensor) -> Tensor:
    """SiLU(gate) times up (Shazeer 2020)."""
    return functional.silu(gate) * up


def relu(values: Tensor) -> Tensor:
    """The larger of a value and zero; a NaN stays one."""
    return functional.relu(values)
