"""The part of a growing text that may still change, and what of it is settled. No Qt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.markdown.lines import Formatted, LineKind

WINDOW = 4000  # characters that are parsed at once, and the longest line that is formatted
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")


@dataclass(frozen=True, slots=True)
class Step:
    """Formatting of the tail's first lines, and how many of these are settled by it. None: they stay as they are."""

    formatted: Formatted | None
    settled: int


def format_text(text: str, *, growing: bool = False) -> Formatted:
    """See `app.markdown.blocks`, whose parser is imported with the first text: the first paint does not wait for it."""
    from app.markdown import blocks

    return blocks.format_text(text, growing=growing)


class Tail:
    """Text comes by `add`. What `steps` has settled is not parsed again: a block is settled when the next begins.

    A fence at the outermost level is not parsed either: its lines are code until the line that closes it.
    """

    def __init__(self) -> None:
        self.text = ""
        self.fence = ""  # what opened the code that is open

    def add(self, part: str) -> None:
        """More text."""
        self.text += part

    def last_line(self) -> str:
        """The line that is being written, or was just ended."""
        text = self.text.removesuffix("\n")
        return text[text.rfind("\n") + 1 :]

    def opens_fence(self) -> bool:
        """Whether the last line, now complete, opens a fence at the outermost level."""
        found = _FENCE.match(self.last_line())
        if found is None or self.fence or len(self.text) > 2 * WINDOW:
            return False
        lines = format_text(self.text.removesuffix("\n") + "\n.").lines
        return lines[-2].kind is LineKind.FENCE_OPEN and lines[-2].quotes == 0

    def open_fence(self, opening: str) -> None:
        """Code begins after the line `opening`; all before it is settled."""
        found = _FENCE.match(opening)
        self.fence = found.group(1) if found else "```"
        self.text = ""

    def closes_fence(self) -> bool:
        """Whether the last line closes the fence that is open."""
        line = self.last_line().strip()
        short = len(self.last_line()) - len(self.last_line().lstrip(" ")) <= 3
        return short and len(line) >= len(self.fence) and not line.strip(self.fence[0])

    def forget(self) -> None:
        """What there is is settled."""
        self.text = ""

    def close_fence(self) -> None:
        """After the line that closes it, text is text again."""
        self.fence, self.text = "", ""

    def steps(self, *, final: bool = False) -> Iterator[Step]:
        """Formats the tail, a window at a time; the caller applies each step before it asks for the next. final: the
        last line is complete."""
        while self.text and not self.fence:
            window = self.text
            if len(window) > WINDOW:
                cut = window.rfind("\n", 0, WINDOW)
                if cut < 0:  # a line that is too long
                    end = window.find("\n", WINDOW)
                    if end < 0:
                        return
                    yield Step(None, 1)
                    self.text = self.text[end + 1 :]
                    continue
                window = window[: cut + 1]
            whole = len(window) == len(self.text)
            formatted = format_text(window, growing=whole and not final)
            complete = len(formatted.lines) - 1
            settled = max((unit for unit in formatted.units if unit < complete), default=0)
            if not whole and not settled:
                settled = complete  # one long block is formatted in pieces
            yield Step(formatted, settled)
            if settled:
                self.text = self.text[formatted.lines[settled].start :]
            if whole:
                return
