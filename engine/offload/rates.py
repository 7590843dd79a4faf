"""How fast a machine moves and computes weights: measured figures, or defaults by the kind of device that say so."""

from __future__ import annotations

from dataclasses import dataclass, replace

GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes a second, and what rows beyond the first cost.

    device: at which a full pass gets through weights in the fast memory, kernels' own pauses included. link: from the
    slow memory into the fast one. cpu: at which the CPU gets through weights of a card's model. draft: at which a draft
    step gets through its copy. row, cpu_row: share of a pass over one row that each further row adds, on the device and
    on the CPU. handover: seconds that activations take from device to device.
    slow: what the link leads from, for people. assumed: those of device, link and cpu that were not measured here.
    """

    device: float
    link: float
    cpu: float
    draft: float
    row: float
    cpu_row: float
    handover: float
    slow: str
    assumed: tuple[str, ...] = ()

    def measured(self, *, device: float | None = None, link: float | None = None, cpu: float | None = None) -> Rates:
        """The same with what was found out here; a draft gains as its device does."""
        return replace(
            self,
            device=self.device if device is None else device,
            link=self.link if link is None else link,
            cpu=self.cpu if cpu is None else cpu,
            draft=self.draft if device is None else self.draft * device / self.device,
            assumed=tuple(
                name
                for name, found in (("device", device), ("link", link), ("cpu", cpu))
                if found is None and name in self.assumed
            ),
        )

    def notes(self, *, host: bool = False) -> tuple[str, ...]:
        """Sentences for people about figures that are defaults. host: whether the CPU's counts."""
        words = {
            "device": f"A pass is taken to read {self.device / GIGA:g} GB/s of the fast memory",
            "link": f"{self.slow} is taken to bring {self.link / GIGA:g} GB/s",
            "cpu": f"The CPU is taken to compute with {self.cpu / GIGA:g} GB/s of weights",
        }
        return tuple(f"{words[name]}: a default, not measured here." for name in self.assumed if host or name != "cpu")


def default_rates(device: str) -> Rates:
    """Figures of ordinary hardware for "cuda" or "cpu". Shares and rows are as measured for docs/performance.md."""
    if device == "cuda":  # a card of the middle class on PCIe 4.0 x16
        speeds = {"device": 400 * GIGA, "link": 22 * GIGA, "cpu": 20 * GIGA, "draft": 340 * GIGA}
        return Rates(
            **speeds, row=0.0015, cpu_row=0.1, handover=5e-5, slow="The bus", assumed=("device", "link", "cpu")
        )
    # Two channels of DDR4, and a solid-state disk. A four-bit step reads fewer bytes a second: it has more to compute.
    speeds = {"device": 18 * GIGA, "link": 1.5 * GIGA, "cpu": 18 * GIGA, "draft": 16 * GIGA}
    return Rates(**speeds, row=0.06, cpu_row=0.06, handover=0.0, slow="The disk", assumed=("device", "link"))
