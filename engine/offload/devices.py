"""A model over several devices of one machine: layers in order, each device's share with a plan of its own.

Activations are handed from one device to the next. Each brings its own streamed parts in while the others compute, so a
pass takes as long as all computing one after the other, or as the slowest device's copies. The layers are divided so
that the latter is least, and beyond that the first devices are filled first: fewer devices, fewer handovers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from engine.errors import BadSetting
from engine.offload.demands import Demands, DraftOption
from engine.offload.layouts import Layout, Sizes
from engine.offload.parts import Part
from engine.offload.plan import Plan
from engine.offload.planner import PlacedDraft, as_plan, before_parts, gigabytes, reads_of
from engine.offload.prediction import Device, Speed, drafted_speed, plain_speed
from engine.offload.rates import Rates

HALVINGS = 20  # of the time that copies may take, in the search for the least


@dataclass(frozen=True, slots=True)
class DeviceRoom:
    """A device: bytes of its memory that may be used, what other programs hold of them, and how fast it is."""

    budget: int
    rates: Rates
    others: int = 0


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """What one device has. device: its place among those given. layers: first and behind the last.

    plan: of its parts; bytes are of this device, seconds of the whole model.
    """

    device: int
    layers: range
    plan: Plan


@dataclass(frozen=True, slots=True)
class _Share:
    """A candidate for one device. read: what a draft step reads there."""

    device: int
    first: int
    last: int
    sizes: Sizes
    demands: Demands
    draft: DraftOption | None
    layout: Layout
    cost: Device


def plan_devices(parts: Sequence[Part], demands: Demands, devices: Sequence[DeviceRoom]) -> tuple[DeviceShare, ...]:
    """The fastest division found, of the devices that get layers, in order. demands: of the whole model, the workspace
    and margin of each device; `others` is taken from the devices. Parts are not computed on the CPU.

    Raises BadSetting, with how many layers there is room for, where the budgets are too small.
    """
    divider = _Divider(parts, demands, devices)
    best: tuple[Speed, list[_Share]] | None = None
    for draft in demands.choices:
        shares = divider.least(draft)
        if shares is None:
            continue
        speed = divider.speed(shares, draft)
        if best is None or speed.token_seconds < best[0].token_seconds:
            best = speed, shares
    if best is None:
        raise BadSetting(divider.refusal())
    speed, shares = best
    return tuple(
        DeviceShare(
            share.device,
            range(share.first, share.last),
            as_plan(share.layout, _whole(share.draft), speed, share.sizes, share.demands, devices[share.device].budget),
        )
        for share in shares
    )


def _whole(draft: DraftOption | None) -> PlacedDraft | None:
    return None if draft is None else PlacedDraft(draft, draft.nbytes)


class _Divider:
    """Divides one model's layers over the devices."""

    def __init__(self, parts: Sequence[Part], demands: Demands, devices: Sequence[DeviceRoom]) -> None:
        self._parts, self._demands, self._devices = tuple(parts), demands, tuple(devices)
        self._layers = 1 + max(part.layer for part in parts if part.layer is not None)
        self._weights = demands.output_read + sum(part.nbytes for part in parts)

    def least(self, draft: DraftOption | None) -> list[_Share] | None:
        """The division whose slowest copies take least; None where there is no room."""
        best = self._divided(draft, 0.0)
        if best is not None:
            return best
        best = self._divided(draft, math.inf)
        if best is None:
            return None
        low, high = 0.0, max(share.cost.copies for share in best)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            found = self._divided(draft, middle)
            if found is None:
                low = middle
            else:
                best, high = found, middle
        return best

    def speed(self, shares: Sequence[_Share], draft: DraftOption | None) -> Speed:
        """What is to be expected of a division."""
        handovers = sum(self._devices[after.device].rates.handover for _, after in pairwise(shares))
        costs = [share.cost for share in shares]
        if draft is None:
            return plain_speed(costs, handovers)
        step = draft.seconds
        if step is None:
            step = handovers
            for share in shares:
                read = share.demands.attended + (share.draft.read if share.draft else 0)
                step += read / self._devices[share.device].rates.draft
        rows = self._demands.streamed_rows if any(share.layout.slots for share in shares) else self._demands.rows
        return drafted_speed(costs, step, draft.acceptance, rows, handovers)

    def refusal(self) -> str:
        """How far the devices go, as a sentence."""
        at, least = 0, min(self._demands.choices, key=lambda option: option.nbytes if option else 0)
        for device in range(len(self._devices)):
            share = self._most(device, at, least, math.inf)
            at = share.last if share else at
        budgets = " and ".join(gigabytes(device.budget) for device in self._devices)
        return (
            f"The budgets, {budgets}, are too small for this model with this context: "
            f"of its {self._layers} layers they hold {at}."
        )

    def _divided(self, draft: DraftOption | None, limit: float) -> list[_Share] | None:
        """Every device takes as many layers as it can within `limit` seconds of copies; None where some are left."""
        shares: list[_Share] = []
        at = 0
        for device in range(len(self._devices)):
            share = self._most(device, at, draft, limit)
            if share is not None:
                shares.append(share)
                at = share.last
            if at == self._layers:
                return shares
        return None

    def _most(self, device: int, first: int, draft: DraftOption | None, limit: float) -> _Share | None:
        """The longest run of layers from `first` on that a device can have."""
        best, low, high = None, first + 1, self._layers
        whole = self._share(device, first, high, draft, limit)  # more than its neighbours: the output matrix too
        if whole is not None:
            return whole
        high -= 1
        while low <= high:
            middle = (low + high + 1) // 2
            share = self._share(device, first, middle, draft, limit)
            if share is None:
                high = middle - 1
            else:
                best, low = share, middle + 1
        return best

    def _share(self, device: int, first: int, last: int, draft: DraftOption | None, limit: float) -> _Share | None:
        """The layout of a run of layers that copies least; None where it does not fit, or copies take too long."""
        room, ends = self._devices[device], last == self._layers
        mine = [part for part in self._parts if (ends if part.layer is None else first <= part.layer < last)]
        sizes, demands = Sizes(mine), self._demands_of(room, first, last)
        own = None if draft is None else self._draft_of(draft, sizes.total + demands.output_read)
        left = room.budget - before_parts(demands) - (own.nbytes if own else 0)
        found: tuple[float, Layout, Device] | None = None
        for layout in sizes.layouts(left, host=False):
            cost = Device.of(reads_of(layout, demands.attended, demands.output_read), room.rates)
            if found is None or cost.copies < found[0]:
                found = cost.copies, layout, cost
        if found is None or found[0] > limit:
            return None
        return _Share(device, first, last, sizes, demands, own, found[1], found[2])

    def _demands_of(self, room: DeviceRoom, first: int, last: int) -> Demands:
        """What comes before the parts of a run of layers: the embedding where it is read, and again where it makes
        logits on another device."""
        whole, starts, ends = self._demands, first == 0, last == self._layers
        count = last - first
        return replace(
            whole,
            always=whole.always if starts else whole.output_read if ends else 0,
            output_read=whole.output_read if ends else 0,
            kv=-(-whole.kv * count // self._layers),
            attended=whole.attended * count // self._layers,
            others=room.others,
        )

    def _draft_of(self, draft: DraftOption, weights: int) -> DraftOption:
        """The share of a draft that belongs to so many bytes of weights: it lies where its layers' KV rows lie."""
        return replace(
            draft,
            nbytes=-(-draft.nbytes * weights // self._weights),
            read=draft.read * weights // self._weights,
        )
