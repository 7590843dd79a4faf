"""Which part of a displayed reply is which token: plain data, no Qt.

Spans tile the document from position 0 to `end` without gaps, in order. Positions count UTF-16 units, as
QTextDocument does. A span is a token of the reply, text without a token (the tail of a reply) or a rejected guess
shown as a ghost. Ghosts are not in the source text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from enum import Enum

from engine.records import TokenState


class SpanKind(str, Enum):
    """What a span is. The first four are tokens of the reply, in the state of that name; GIVEN ones no cycle made."""

    ACCEPTED = "accepted"
    CORRECTION = "correction"
    BONUS = "bonus"
    PLAIN = "plain"
    GIVEN = "given"
    TAIL = "tail"
    GHOST = "ghost"


KIND_OF_STATE = {
    TokenState.ACCEPTED: SpanKind.ACCEPTED,
    TokenState.CORRECTION: SpanKind.CORRECTION,
    TokenState.BONUS: SpanKind.BONUS,
    TokenState.PLAIN: SpanKind.PLAIN,
}


@dataclass(frozen=True, slots=True)
class Span:
    """One span. start: position in the document; text: source text, or the ghost's; cycle: number of the event that
    brought it (-1 for none); place: index in the cycle's emitted ids, or among those given (0 for ghosts)."""

    index: int
    start: int
    length: int
    kind: SpanKind
    text: str
    cycle: int
    place: int


def utf16_length(text: str) -> int:
    """Length of a text in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf16_slice(text: str, start: int, stop: int) -> str:
    """The part of a text between two UTF-16 offsets; a character cut in half is left out."""
    if text.isascii():
        return text[start:stop]
    return text.encode("utf-16-le", "surrogatepass")[2 * start : 2 * stop].decode("utf-16-le", "ignore")


class TokenSpans:
    """The spans of one reply. Appending is O(1), finding O(log n), changing a length O(spans after it).

    starts, kinds, texts, cycles, places: one entry a span. breaks: positions of line breaks that only the display
    has (very long paragraphs are laid out in pieces); each lies in a token and counts in its length.
    """

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.kinds: list[SpanKind] = []
        self.texts: list[str] = []
        self.cycles: list[int] = []
        self.places: list[int] = []
        self.breaks: list[int] = []
        self.end = 0

    def __len__(self) -> int:
        return len(self.starts)

    def append(self, kind: SpanKind, text: str, length: int, cycle: int = -1, place: int = 0) -> int:
        """Add a span of `length` positions at the end; returns its index."""
        self.starts.append(self.end)
        self.kinds.append(kind)
        self.texts.append(text)
        self.cycles.append(cycle)
        self.places.append(place)
        self.end += length
        return len(self.starts) - 1

    def find(self, position: int) -> int:
        """Index of the span that covers a position; the last one for positions past the end, -1 without spans."""
        return bisect_right(self.starts, position) - 1

    def length(self, index: int) -> int:
        """Length of a span in positions."""
        following = self.starts[index + 1] if index + 1 < len(self.starts) else self.end
        return following - self.starts[index]

    def span(self, index: int) -> Span:
        """One span as a record."""
        return Span(
            index,
            self.starts[index],
            self.length(index),
            self.kinds[index],
            self.texts[index],
            self.cycles[index],
            self.places[index],
        )

    def resize(self, lengths: dict[int, int]) -> None:
        """Give spans other lengths; lengths maps index to length. None of them may hold a break."""
        first = min(lengths, default=len(self))
        later = bisect_left(self.breaks, self.starts[first]) if first < len(self) else len(self.breaks)
        owners = [self.find(position) for position in self.breaks[later:]]
        offsets = [position - self.starts[i] for position, i in zip(self.breaks[later:], owners, strict=True)]
        position = self.starts[first] if first < len(self) else self.end
        old = [self.length(i) for i in range(first, len(self))]
        for i, length in enumerate(old, first):
            self.starts[i] = position
            position += lengths.get(i, length)
        self.end = position
        self.breaks[later:] = [self.starts[i] + offset for i, offset in zip(owners, offsets, strict=True)]

    def split_line(self, position: int) -> bool:
        """Note a line break of the display before the character at `position`, after the last break.

        False, and nothing done, where no token could own the break: in a ghost or at the very start.
        """
        index = self.find(position)
        if index >= 0 and self.starts[index] == position:
            index -= 1  # the break becomes the last position of the span before
        if index < 0 or self.kinds[index] is SpanKind.GHOST:
            return False
        for i in range(index + 1, len(self.starts)):
            self.starts[i] += 1
        self.end += 1
        self.breaks.append(position)
        return True

    def join_lines(self) -> None:
        """Forget the display's own line breaks. O(n)."""
        self.starts = [start - bisect_left(self.breaks, start) for start in self.starts]
        self.end -= len(self.breaks)
        self.breaks.clear()

    def ghosts(self, first: int, last: int) -> list[tuple[int, int]]:
        """Where the ghosts among the spans from first to before last stand."""
        found = (i for i in range(first, min(last, len(self))) if self.kinds[i] is SpanKind.GHOST)
        return [(self.starts[i], self.starts[i] + self.length(i)) for i in found]

    def source(self) -> str:
        """The reply, exactly as generated."""
        return "".join(t for t, k in zip(self.texts, self.kinds, strict=True) if k is not SpanKind.GHOST)

    def source_between(self, start: int, stop: int) -> str:
        """The source text of the positions from start to before stop."""
        parts: list[str] = []
        index = max(self.find(start), 0)
        while index < len(self.starts) and self.starts[index] < stop:
            if self.kinds[index] is not SpanKind.GHOST:
                parts.append(utf16_slice(self.texts[index], self._offset(index, start), self._offset(index, stop)))
            index += 1
        return "".join(parts)

    def _offset(self, index: int, position: int) -> int:
        """Where in a span's source text a position lies, in UTF-16 units."""
        begin = self.starts[index]
        if position <= begin:
            return 0
        return position - begin - (bisect_left(self.breaks, position) - bisect_left(self.breaks, begin))
