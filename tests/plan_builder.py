"""A plan of a small model of which some parts are streamed."""

from __future__ import annotations

from engine.offload.parts import ATTENTION, MLP, OUTPUT, Part
from engine.offload.plan import Plan, Residency
from engine.offload.report import Offload
from engine.offload.transfers import Transfers

MIB = 2**20


def offload(
    layers: int, streamed: tuple[int, ...], half: tuple[int, ...] = (), host: tuple[int, ...] = (), budget: int = 900
) -> Offload:
    """Of `layers` layers, each of 10 MiB attention and 20 MiB MLP: those streamed, those of which only the MLP is, and
    those computed on the CPU. budget: in MiB."""
    parts, residency = [], []
    for layer in range(layers):
        for kind, size in ((ATTENTION, 10), (MLP, 20)):
            parts.append(Part(len(parts), layer, kind, (), size * MIB))
            is_streamed = layer in streamed or (layer in half and kind == MLP)
            lies = Residency.STREAMED if is_streamed else Residency.HOST if layer in host else Residency.RESIDENT
            residency.append(lies)
    parts.append(Part(len(parts), None, OUTPUT, (), 5 * MIB))
    residency.append(Residency.RESIDENT)
    plan = Plan(
        budget=budget * MIB,
        parts=tuple(parts),
        residency=tuple(residency),
        slots=2,
        slot_bytes=20 * MIB,
        always=7 * MIB,
        draft=0,
        kv=0,
        workspace=0,
        margin=0,
        others=0,
        plain_seconds=0.1,
        verify_seconds=0.1,
        draft_seconds=0.01,
        gamma=4,
        tokens_per_cycle=3.0,
    )
    return Offload(plan, Transfers(), None)
