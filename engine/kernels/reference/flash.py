"""flash-attn for reading prompts, where it is installed (Dao 2023). Decode steps never use it: their rows must not
depend on how many there are."""

from __future__ import annotations

import importlib.metadata
import importlib.util

import torch

Tensor = torch.Tensor


def flash_version(device: torch.device, dtype: torch.dtype) -> str | None:
    """The version of flash-attn that can be used here, or None: it wants a card of 8.0 or newer and half precision."""
    if device.type != "cuda" or dtype not in (torch.float16, torch.bfloat16):
        return None
    if importlib.util.find_spec("flash_attn") is None or torch.cuda.get_device_capability(device) < (8, 0):
        return None
    return importlib.metadata.version("flash-attn")


def flash_attend(
    query: Tensor, keys: Tensor, values: Tensor, position: int, scale: float, window: int | None = None
) -> Tensor:
    """As operations.attend: float32 query [rows, heads, dim], keys and values [length, kv heads, dim], length at least
    position + rows; float32 [rows, heads, dim]."""
    from flash_attn import flash_attn_func  # type: ignore[import-not-found]

    length = position + query.shape[0]  # causal means aligned at the end: the last row sees exactly the last key
    q, k, v = query.to(keys.dtype)[None], keys[None, :length], values[None, :length]
    sees = {} if window is None else {"window_size": (window - 1, 0)}  # keys beside its own, on either side
    mixed: Tensor = flash_attn_func(q, k, v, softmax_scale=scale, causal=True, **sees)
    return mixed[0].float()
