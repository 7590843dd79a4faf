"""flash-attn for prompts: where it is used, and that it is asked for what SDPA computes. A stand-in plays the library:
no card and no flash-attn are here; what the real one computes is its own tests' business."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from torch.nn import functional

from engine.kernels.reference import operations as op
from engine.kernels.reference.flash import flash_attend, flash_version


def flash_attn_func(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, softmax_scale: float, causal: bool
) -> torch.Tensor:
    """By the library's documentation: [batch, length, heads, dim], grouped queries, causal aligned at the end."""
    rows, length = q.shape[1], k.shape[1]
    mask = torch.ones(rows, length, dtype=torch.bool).tril(length - rows)
    assert causal and q.dtype == k.dtype == v.dtype
    mixed = functional.scaled_dot_product_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), mask, scale=softmax_scale, enable_gqa=True
    )
    return mixed.transpose(1, 2)


@pytest.mark.parametrize(("position", "rows", "spare"), [(0, 5, 0), (0, 40, 24), (17, 9, 30)])
def test_it_sees_exactly_the_keys_that_sdpa_sees(
    monkeypatch: pytest.MonkeyPatch, position: int, rows: int, spare: int
) -> None:
    library = ModuleType("flash_attn")
    library.flash_attn_func = flash_attn_func  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flash_attn", library)
    torch.manual_seed(1)
    query = torch.randn(rows, 6, 16).half().float()
    keys, values = (torch.randn(position + rows + spare, 2, 16).half() for _ in range(2))
    mixed = flash_attend(query, keys, values, position, 0.25)
    wanted = op.attend(query, keys, values, position, 0.25)
    assert mixed.shape == (rows, 6, 16) and mixed.dtype == torch.float32
    assert torch.allclose(mixed, wanted, atol=2e-3)


def test_only_half_precision_on_a_card_of_8_0_with_the_library_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    card, capability = torch.device("cuda"), (8, 6)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if name == "flash_attn" else None)
    monkeypatch.setattr("importlib.metadata.version", lambda name: {"flash-attn": "2.8.3"}[name])
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert flash_version(card, torch.float16) == "2.8.3"
    assert flash_version(card, torch.float32) is None
    assert flash_version(torch.device("cpu"), torch.float16) is None
    capability = (7, 5)
    assert flash_version(card, torch.float16) is None
    capability = (8, 0)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert flash_version(card, torch.bfloat16) is None
