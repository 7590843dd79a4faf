"""How a loaded model's parts lie, as it looks from outside. Plain data: the window reads it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.offload.plan import Plan
from engine.offload.transfers import Transfers


@dataclass(frozen=True, slots=True)
class Offload:
    """plan: in force. transfers: since the load. refused: why the last budget asked for is not in force, or None.

    yielded: a sentence, once parts have given way to other programs since a budget was last asked for, or None.
    """

    plan: Plan
    transfers: Transfers
    refused: str | None
    yielded: str | None = None
