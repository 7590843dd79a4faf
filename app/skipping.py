"""Which sub-layers a draft leaves out when the user only says how many."""

from __future__ import annotations


def spread_over(count: int, layers: int) -> tuple[int, ...]:
    """`count` layers spread evenly over a model, leaving its first and last two alone: they matter most."""
    inner = range(2, layers - 2)
    count = min(count, len(inner))
    return tuple(inner[(2 * i + 1) * len(inner) // (2 * count)] for i in range(count))
