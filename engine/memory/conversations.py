"""Which conversation has which range of the KV cache, and the tokens whose rows lie there. Plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Range:
    """One range. conversation: whose rows it holds, None for nobody's. ids: their tokens, from position 0 on.

    used_at: a count that grows with every use of any range.
    """

    index: int
    conversation: int | None = None
    ids: list[int] = field(default_factory=list)
    used_at: int = 0

    def shared(self, prompt: Sequence[int]) -> int:
        """Leading tokens of the prompt whose rows are here."""
        for i, (held, token) in enumerate(zip(self.ids, prompt, strict=False)):
            if held != token:
                return i
        return min(len(self.ids), len(prompt))


class Conversations:
    """All ranges, and which of them is in use."""

    def __init__(self, ranges: int) -> None:
        self.ranges = tuple(Range(index) for index in range(ranges))
        self.current = self.ranges[0]
        self._uses = 0

    @property
    def held(self) -> int:
        """Conversations that have rows."""
        return sum(bool(range_.ids) for range_ in self.ranges)

    @property
    def tokens(self) -> int:
        """Rows of all of them."""
        return sum(len(range_.ids) for range_ in self.ranges)

    @property
    def others(self) -> tuple[Range, ...]:
        """All ranges but the one in use."""
        return tuple(range_ for range_ in self.ranges if range_ is not self.current)

    def of(self, conversation: int) -> Range | None:
        """The range of a conversation."""
        return next((range_ for range_ in self.ranges if range_.conversation == conversation), None)

    def nearest(self, prompt: Sequence[int]) -> Range:
        """The range that shares the longest beginning with a prompt."""
        return max(self.ranges, key=lambda range_: range_.shared(prompt))

    def vacant(self, besides: Range | None = None) -> Range:
        """A range without rows, or the one that was used longest ago; never `besides`, unless there is no other."""
        ranges = [range_ for range_ in self.ranges if range_ is not besides] or self.ranges
        return min(ranges, key=lambda range_: (bool(range_.ids), range_.used_at))

    def oldest(self) -> Range | None:
        """Of the ranges that have rows and are not in use, the one that was used longest ago."""
        idle = [range_ for range_ in self.others if range_.ids]
        return min(idle, key=lambda range_: range_.used_at, default=None)

    def last(self) -> Range:
        """The range to give up next where none is in use: the one in use before comes last."""
        return self.oldest() or self.current

    def use(self, range_: Range, conversation: int | None) -> None:
        """Make a range the one in use, by this conversation; whose it was before has none any more."""
        self._uses += 1
        range_.conversation, range_.used_at = conversation, self._uses
        self.current = range_
