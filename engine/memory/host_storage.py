"""A KV cache's rows in ordinary memory."""

from __future__ import annotations

import numpy as np

from engine.memory.host_pages import HostPages
from engine.memory.open_storage import open_storage
from engine.memory.storage import RowSize, Storage

HOST = "this computer"  # in messages


def host_storage(size: RowSize, *, virtual: bool) -> Storage:
    """Host virtual memory, or one plain array where it is refused or not wanted; layers are numpy arrays of uint8."""
    return open_storage(HostPages, size, lambda count: np.zeros(count, np.uint8), virtual=virtual)
