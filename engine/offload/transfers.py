"""What full passes have brought in from the slow memory so far, and how long they stood waiting for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Transfers:
    """Counted up from the load on; two of them tell what lies between.

    bytes: of parts that passes used and that had been brought in for it. wait_seconds: that passes stood still.
    """

    bytes: int = 0
    wait_seconds: float = 0.0

    def since(self, before: Transfers) -> Transfers:
        """What came on top of an earlier count."""
        return Transfers(self.bytes - before.bytes, self.wait_seconds - before.wait_seconds)

    def plus(self, other: Transfers) -> Transfers:
        """Both together."""
        return Transfers(self.bytes + other.bytes, self.wait_seconds + other.wait_seconds)


NONE = Transfers()
