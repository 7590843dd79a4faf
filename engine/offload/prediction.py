"""How long a pass takes over parts of which some are brought in meanwhile, and what speculation makes of it.

Copies run beside the computing: a pass takes as long as the slower of the two. What the slots hold when it begins was
brought in before, while the draft ran. The last streamed part is computed when its copy is there, beside nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from engine.offload.rates import Rates
from engine.speculation.estimates import expected_tokens


@dataclass(frozen=True, slots=True)
class Reads:
    """Bytes that a pass reads on one device: in its fast memory (KV rows too), through slots, and by the CPU.

    ahead: what the slots hold when the pass begins. last: of the largest streamed part and what comes after all parts.
    """

    resident: int
    streamed: int = 0
    host: int = 0
    ahead: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class Device:
    """One device's share of every pass. row, cpu_row: see Rates; seconds: for one row.

    compute, host: of the device and of the CPU. copies: of all that is brought in. late: of what is brought in after
    the pass has begun, were the slots full then. last: of computing what no copy runs beside.
    """

    compute: float
    host: float
    copies: float
    late: float
    last: float
    row: float
    cpu_row: float

    @classmethod
    def of(cls, reads: Reads, rates: Rates) -> Device:
        """At these rates."""
        return cls(
            compute=(reads.resident + reads.streamed) / rates.device,
            host=reads.host / rates.cpu,
            copies=reads.streamed / rates.link,
            late=max(0, reads.streamed - reads.ahead) / rates.link,
            last=reads.last / rates.device,
            row=rates.row,
            cpu_row=rates.cpu_row,
        )


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds of a plain step, of a verify pass and of a draft step; gamma 0 where there is no draft."""

    plain_seconds: float
    verify_seconds: float
    draft_seconds: float
    gamma: int
    tokens_per_cycle: float

    @property
    def speculative_seconds(self) -> float:
        """Of a token, with speculation."""
        return (self.gamma * self.draft_seconds + self.verify_seconds) / self.tokens_per_cycle

    @property
    def token_seconds(self) -> float:
        """Of a token, the faster way."""
        return min(self.plain_seconds, self.speculative_seconds)


def pass_seconds(devices: Sequence[Device], rows: int = 1, idle: float = 0.0, handovers: float = 0.0) -> float:
    """Of a full pass over `rows` rows. idle: seconds before it in which the links were free.

    Several devices compute one after the other; each brings its own parts in all the while.
    """
    chain, slowest, more = handovers, 0.0, rows - 1
    for device in devices:
        wider = 1.0 + device.row * more
        chain += device.compute * wider + device.host * (1.0 + device.cpu_row * more)
        if device.copies:
            slowest = max(slowest, max(device.late, device.copies - idle) + device.last * wider)
    return max(chain, slowest)


def plain_speed(devices: Sequence[Device], handovers: float = 0.0) -> Speed:
    """Without a draft."""
    seconds = pass_seconds(devices, handovers=handovers)
    return Speed(seconds, seconds, 0.0, 0, 1.0)


def drafted_speed(
    devices: Sequence[Device],
    draft: float,
    acceptance: float,
    rows: int,
    handovers: float = 0.0,
    *,
    idle: bool = True,
) -> Speed:
    """With the best block length. draft: seconds of a step. rows: of the widest verify pass. idle: whether the links
    are free while the draft runs."""
    verify = partial(pass_seconds, devices, handovers=handovers)
    plain, best = verify(), None
    for gamma, tokens in enumerate(expected_tokens([acceptance] * (rows - 1)), start=1):
        speed = Speed(plain, verify(gamma + 1, gamma * draft if idle else 0.0), draft, gamma, tokens)
        if best is None or speed.speculative_seconds < best.speculative_seconds:
            best = speed
    assert best is not None  # a verify pass has at least two rows
    return best
