"""Where in the model a numeric fault arose: looked for after the fault, so that no pass pays for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.errors import NumericFault, is_out_of_memory
from engine.model.runner import Runner


def located(fault: NumericFault, runner: Runner, ids: Sequence[int], stopped: Callable[[], bool]) -> NumericFault:
    """The fault with the part of the model that made it, or as it was where none is found or `stopped` says so first.

    All of `ids` are read anew, because what is wrong in the last row may come from the keys and values of an earlier
    one. The KV cache is not to be trusted afterwards.
    """
    first = 0
    while first < len(ids) and not stopped():
        tokens = ids[first : first + runner.chunk]
        try:
            place = runner.find_fault(tokens, first)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            return fault  # the fault itself is the news
        if place is not None:
            return NumericFault(fault.cause, fault.position, place)
        first += len(tokens)
    return fault
