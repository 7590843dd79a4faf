"""Which kind of memory a KV cache gets: virtual where the system has it, else one plain block, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.memory.paged_storage import PagedStorage
from engine.memory.pages import PageError, Pages
from engine.memory.plain_storage import PlainStorage
from engine.memory.storage import RowSize, Storage


def open_storage(
    make_pages: Callable[[], Pages], size: RowSize, plain: Callable[[int], Any], *, virtual: bool
) -> Storage:
    """Paged storage, or plain where it is not wanted or the system refuses it; the reason then says why.

    plain: zeroed bytes of the device.
    """
    if not virtual:
        return PlainStorage(size, plain(size.total), "virtual memory is switched off")
    try:
        return PagedStorage(make_pages(), size)
    except PageError as error:
        reason = str(error)
    except ImportError as error:
        reason = f"the package {error.name} is not installed"
    return PlainStorage(size, plain(size.total), reason)
