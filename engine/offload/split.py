"""How many of a model's layers each of several devices gets, where all of them are to stay in memory."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import BadSetting
from engine.files.folder import ModelFolder
from engine.offload.demands import demands_of
from engine.offload.devices import DeviceRoom, plan_devices
from engine.offload.parts import parts_of
from engine.offload.planner import gigabytes


def layers_of_devices(
    folder: ModelFolder, capacity: int, rooms: Sequence[DeviceRoom], *, device: str
) -> tuple[int, ...]:
    """Layers of each device in order, fewer devices where fewer do. device: "cuda" or "cpu".

    Raises BadSetting where the budgets are too small for that.
    """
    sizes = {name: entry.nbytes for name, entry in folder.entries.items()}
    parts = parts_of(folder.config, sizes)
    demands = demands_of(folder.config, sizes, parts, device=device, context=capacity, widths=()).plain()
    shares = plan_devices(parts, demands, rooms)
    if any(share.plan.streamed for share in shares):
        budgets = " and ".join(gigabytes(room.budget) for room in rooms)
        raise BadSetting(f"The budgets, {budgets}, are too small to hold all of this model's layers at once.")
    return tuple(len(share.layers) for share in shares)
