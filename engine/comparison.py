"""What came of asking the same prompt twice, plainly and with speculation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome, in numbers.

    compared: tokens from the start that both replies have and that are equal. difference: place of the first token
    that is not the same (or that only one reply has), None where there is none. plain_tokens, speculative_tokens:
    lengths of the replies. plain_seconds, speculative_seconds: their decoding without the prompt.
    stopped: someone stopped it, so that only the tokens which both replies have count.
    """

    compared: int
    difference: int | None
    plain_tokens: int
    speculative_tokens: int
    plain_seconds: float
    speculative_seconds: float
    stopped: bool = False

    @property
    def identical(self) -> bool:
        """Whether both replies ran to their end and are the same token for token."""
        return self.difference is None and not self.stopped

    @property
    def speed_up(self) -> float | None:
        """Time of the plain reply over that of the speculative one; None unless both are the same reply."""
        if not self.identical or not self.compared or self.speculative_seconds <= 0:
            return None
        return self.plain_seconds / self.speculative_seconds


def equal_from(plain: Sequence[int], other: Sequence[int], start: int) -> int:
    """How many tokens from place `start` on are the same in both, up to the first that is not or the shorter's end."""
    count = 0
    for place in range(start, min(len(plain), len(other))):
        if plain[place] != other[place]:
            break
        count += 1
    return count
