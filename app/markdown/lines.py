"""What Markdown makes of a text, line by line and character by character, without moving a character. No Qt.

Every source character keeps its place: markup is shown as characters of no width, a bullet stands where its dash stood.
So the marks of tokens, which lie on places, lie on formatted text as they lay on the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

NOTHING = "\u200c"  # takes no room, and lets a line end where it would have ended
BULLETS = "•◦▪"

BOLD, ITALIC, STRIKE, CODE, MATH, LINK = 1, 2, 4, 8, 16, 32


class LineKind(IntEnum):
    """What a line is. Those from CODE on lie on the code card."""

    TEXT = -1
    GAP = 1
    END = 2
    HIDDEN = 3
    RULE = 4
    HEAD = 5
    ROW = 6
    CODE = 10
    FENCE_OPEN = 11
    FENCE_CLOSE = 12


TABLE_LINES = (LineKind.HEAD, LineKind.ROW)


@dataclass(frozen=True, slots=True)
class Line:
    """One line. start, stop: places in the text, its end excluded.

    quotes: levels of quotation. lists: levels of lists. hang: the marker that its text hangs behind, with its space;
    first: whether it stands on this line. heading: 1 to 6, 0 for none. aligns: of a table's columns, "" for left.
    """

    start: int
    stop: int
    kind: LineKind = LineKind.TEXT
    quotes: int = 0
    lists: int = 0
    hang: str = ""
    first: bool = False
    heading: int = 0
    aligns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of one style; href: where a link leads."""

    start: int
    stop: int
    style: int
    href: str = ""


@dataclass(frozen=True, slots=True)
class Formatted:
    """A text's formatting. shown: what stands in each character's place, of the same length in UTF-16.

    styles: of each character. links: stretches that are links. units: lines on which something of its own begins at
    the outermost level: a paragraph, an item of a list, a table.
    """

    lines: tuple[Line, ...]
    shown: tuple[str, ...]
    styles: tuple[int, ...]
    links: tuple[Run, ...]
    units: tuple[int, ...]

    def display(self, line: Line) -> str:
        """What is shown of a line."""
        return "".join(self.shown[line.start : line.stop])

    def runs(self, line: Line) -> Iterator[Run]:
        """The stretches of a line, in order, all of it covered."""
        hrefs = [
            (run.start, run.stop, run.href) for run in self.links if run.start < line.stop and run.stop > line.start
        ]
        start = line.start
        while start < line.stop:
            stop, style = start + 1, self.styles[start]
            href = _href(hrefs, start) if style & LINK else ""
            while stop < line.stop and self.styles[stop] == style:
                if style & LINK and _href(hrefs, stop) != href:
                    break
                stop += 1
            yield Run(start, stop, style, href)
            start = stop


def _href(hrefs: list[tuple[int, int, str]], place: int) -> str:
    return next((href for start, stop, href in hrefs if start <= place < stop), "")


def units16(text: str) -> int:
    """Length in UTF-16."""
    return len(text) if text.isascii() else len(text) + sum(c > "\uffff" for c in text)
