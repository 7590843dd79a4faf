"""Decides from a budget where each part of a model lies and which draft it gets, by the speed to be expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.errors import BadSetting
from engine.offload.demands import Demands, DraftOption
from engine.offload.layouts import Layout, Sizes
from engine.offload.parts import Part
from engine.offload.plan import DraftPlacement, Plan, Residency
from engine.offload.prediction import Device, Reads, Speed, drafted_speed, plain_speed
from engine.offload.rates import Rates


@dataclass(frozen=True, slots=True)
class PlacedDraft:
    """A draft and what its copy takes of the fast memory. streamed: bytes brought in for every step.

    placement: of the copy's parts; None where all of them stay.
    """

    option: DraftOption
    taken: int
    streamed: int = 0
    placement: DraftPlacement | None = None


@dataclass(frozen=True, slots=True)
class _Choice:
    """One way to do it, and how fast it is."""

    layout: Layout
    draft: PlacedDraft | None
    speed: Speed


def plan(parts: Sequence[Part], demands: Demands, rates: Rates, budget: int) -> Plan:
    """The fastest plan within `budget` bytes of the fast memory. More is never slower, as long as passes are as wide.

    The draft's copy, the KV cache, the workspace, the margin and other programs come before the parts. There is no
    draft where the model is faster without one, unless the device always has one. Where its copy does not fit as a
    whole, parts of it are streamed too. Raises BadSetting, naming the least budget, where it is too small.
    """
    if budget < minimum(parts, demands, rates):
        raise BadSetting(too_small(budget, minimum(parts, demands, rates)))
    sizes, host = Sizes(parts), host_pays(demands, rates)
    best: _Choice | None = None
    room = budget - before_parts(demands)
    placed = [placed for draft in demands.choices for placed in _placed(draft, room - sizes.least(host=False))]
    for draft in placed:
        for layout in sizes.layouts(room - (draft.taken if draft else 0), host=host):
            speed = speed_of(layout, draft, demands, rates)
            if best is None or speed.token_seconds < best.speed.token_seconds:
                best = _Choice(layout, draft, speed)
    assert best is not None  # the minimum was kept to
    return as_plan(best.layout, best.draft, best.speed, sizes, demands, budget)


def minimum(parts: Sequence[Part], demands: Demands, rates: Rates) -> int:
    """Bytes below which there is no plan."""
    draft = min(least_draft(option) if option else 0 for option in demands.choices)
    return before_parts(demands) + draft + Sizes(parts).least(host=host_pays(demands, rates))


def whole(parts: Sequence[Part], demands: Demands, draft: DraftOption | None) -> int:
    """Bytes from which all parts and a draft stay in the fast memory."""
    return before_parts(demands) + sum(part.nbytes for part in parts) + (draft.nbytes if draft else 0)


def before_parts(demands: Demands) -> int:
    """Bytes that come before parts and draft."""
    return demands.always + demands.kv + demands.workspace + demands.margin + demands.others


def host_pays(demands: Demands, rates: Rates) -> bool:
    """Whether the CPU may compute parts, and does so faster than they are brought in."""
    return demands.allow_host and rates.cpu > rates.link


def too_small(budget: int, least: int) -> str:
    """A sentence; the minimum it names is enough when given as it stands there."""
    return (
        f"The budget is {gigabytes(budget)}, but this model with this context needs at least "
        f"{gigabytes(rounded_up(least))}."
    )


def rounded_up(size: int) -> int:
    """To what `gigabytes` shows."""
    step = 10**7 if size >= 10**9 else 10**6
    return -(-size // step) * step


def gigabytes(size: float) -> str:
    """For people, with as many digits as tell small models apart."""
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e9:.3f} GB"


def least_draft(draft: DraftOption) -> int:
    """Bytes that a draft takes at the least, parts of its copy streamed."""
    sizes = Sizes(draft.parts)
    return draft.nbytes - sizes.total + sizes.least(host=False)


def _placed(draft: DraftOption | None, room: int) -> Iterator[PlacedDraft | None]:
    """A draft with its whole copy in the fast memory; where there is no room for that, with parts of it streamed."""
    if draft is None:
        yield None
        return
    yield PlacedDraft(draft, draft.nbytes)
    if draft.nbytes <= room or not draft.parts:
        return
    sizes = Sizes(draft.parts)
    others = draft.nbytes - sizes.total
    for layout in sizes.layouts(room - others, host=False):
        placement = DraftPlacement(sizes.parts, sizes.residency(layout), layout.slots, layout.slot_bytes)
        taken = others + layout.resident_bytes + layout.slots * layout.slot_bytes
        yield PlacedDraft(draft, taken, layout.other_bytes, placement)


def speed_of(layout: Layout, draft: PlacedDraft | None, demands: Demands, rates: Rates) -> Speed:
    """What is to be expected of a layout with a draft, or without."""
    devices = [Device.of(reads_of(layout, demands.attended, demands.output_read), rates)]
    if draft is None:
        return plain_speed(devices)
    option = draft.option
    step = option.seconds if option.seconds is not None else (option.read + demands.attended) / rates.draft
    if draft.streamed:  # steps are as slow as the bus, which is not free for the model's parts meanwhile
        step = max(step, draft.streamed / rates.link)
        return drafted_speed(devices, step, option.acceptance, demands.rows, idle=False)
    rows = demands.streamed_rows if layout.slots else demands.rows
    return drafted_speed(devices, step, option.acceptance, rows)


def reads_of(layout: Layout, attended: int, output: int) -> Reads:
    """What a pass reads. attended: of the KV cache. output: of the embedding, at the pass's end."""
    streams = layout.others is Residency.STREAMED
    return Reads(
        resident=layout.resident_bytes + attended + output,
        streamed=layout.other_bytes if streams else 0,
        host=0 if streams else layout.other_bytes,
        ahead=layout.ahead,
        last=layout.slot_bytes + output,
    )


def as_plan(
    layout: Layout, draft: PlacedDraft | None, speed: Speed, sizes: Sizes, demands: Demands, budget: int
) -> Plan:
    """A layout of the parts of `sizes`, as it is carried out."""
    return Plan(
        budget=budget,
        parts=sizes.parts,
        residency=sizes.residency(layout),
        slots=layout.slots,
        slot_bytes=layout.slot_bytes,
        always=demands.always,
        draft=draft.taken if draft else 0,
        kv=demands.kv,
        workspace=demands.workspace,
        margin=demands.margin,
        others=demands.others,
        plain_seconds=speed.plain_seconds,
        verify_seconds=speed.verify_seconds,
        draft_seconds=speed.draft_seconds,
        gamma=speed.gamma,
        tokens_per_cycle=speed.tokens_per_cycle,
        recipe=draft.option.recipe if draft else None,
        draft_placement=draft.placement if draft else None,
    )
