"""What a chain of kernels asks of whatever brings in parts of a model while it runs."""

from __future__ import annotations

from typing import Protocol


class PartsInTurn(Protocol):
    """See engine.offload.weight_stream. A chain calls `begin`, `before` and `after` around every part, and `end`."""

    def begin(self) -> None:
        """A pass begins."""
        ...

    def before(self, index: int) -> bool:
        """A part is needed now; whether the next kernel must wait for all that was queued."""
        ...

    def after(self, index: int) -> None:
        """A part is not read any more in this pass."""
        ...

    def end(self) -> None:
        """The pass has ended."""
        ...
