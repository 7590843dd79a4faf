"""Energy that a card has taken, by NVML's counter."""

from __future__ import annotations

from collections.abc import Callable


def energy_meter(card: str | None) -> Callable[[], float | None]:
    """Tells joules since the driver was loaded. card: its UUID, None for none.

    What is told is None where there is no card, no driver, or no counter (cards before Volta).
    """
    if card is None:
        return lambda: None
    import pynvml

    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(card if card.startswith("GPU-") else f"GPU-{card}")
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    except pynvml.NVMLError:
        return lambda: None

    def joules() -> float | None:
        try:
            return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3
        except pynvml.NVMLError:  # a card may be lost in the middle
            return None

    return joules
