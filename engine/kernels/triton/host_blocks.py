"""What a chain of kernels asks of whoever computes some of a model's blocks outside of the card."""

from __future__ import annotations

from typing import Protocol

import torch


class HostBlocks(Protocol):
    """See engine.model.host_mlps. A chain with such blocks waits for the card before each, and cannot be captured."""

    def computes(self, part: int) -> bool:
        """Whether a part, by its number in the order of a pass, is computed here."""
        ...

    def add(self, part: int, stream: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The stream, float32 [rows, hidden] in host memory, with the part's result added, and each row's sum of
        squares. A row's bits are the same whatever rows are beside it."""
        ...
