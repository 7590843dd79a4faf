"""Sets one line of a reply in its formats: what is shown for its characters, fonts, margins. Ghosts stay as they are.

Only what differs is touched, and every character stays in its place.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from PySide6.QtGui import QTextBlock, QTextBlockFormat, QTextCharFormat, QTextCursor

from app.markdown.lines import Line, Run, units16
from app.widgets.reply_formats import ReplyFormats

Stretch = tuple[int, int]  # positions in the document, the end excluded


def as_units(text: str) -> str:
    """A text in which every character is one UTF-16 unit."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    return "".join(map(chr, array("H", text.encode("utf-16-le", "surrogatepass"))))


def as_text(units: str) -> str:
    """The text that `as_units` was given."""
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def stretches(block: QTextBlock, ghosts: Sequence[Stretch]) -> list[Stretch]:
    """Where a block's text is the reply's, between ghosts."""
    found = []
    start, end = block.position(), block.position() + block.length() - 1
    for first, last in ghosts:
        if last <= start or first >= end:
            continue
        if first > start:
            found.append((start, first))
        start = last
    if start < end:
        found.append((start, end))
    return found


def dress_block(block: QTextBlock, line: Line, form: QTextBlockFormat) -> None:
    """Give a block the format and state of its line."""
    block.setUserState(line.kind)
    if block.blockFormat() != form:
        QTextCursor(block).setBlockFormat(form)


def dress_text(blocks: Sequence[QTextBlock], ghosts: Sequence[Stretch], display: str, runs: Sequence[Run],
               line: Line, formats: ReplyFormats) -> None:  # fmt: skip
    """Show `display` in the blocks of a line, each run of it in its format. runs: of places in the line's source."""
    wanted = as_units(display)
    cursor = QTextCursor(blocks[0])
    done = 0
    pieces: list[tuple[int, Stretch]] = []  # place in the line, positions
    for block in blocks:
        text = as_units(block.text())
        for start, stop in stretches(block, ghosts):
            have, want = text[start - block.position() : stop - block.position()], wanted[done : done + stop - start]
            if have != want and len(have) == len(want):
                _replace(cursor, start, have, want)
            pieces.append((done, (start, stop)))
            done += stop - start
    for first, last, form in _places(display, runs, line, formats):
        for place, (start, stop) in pieces:
            begin, end = max(first, place), min(last, place + stop - start)
            if begin < end:
                cursor.setPosition(start + begin - place)
                cursor.setPosition(start + end - place, QTextCursor.MoveMode.KeepAnchor)
                cursor.setCharFormat(form)


def _replace(cursor: QTextCursor, start: int, have: str, want: str) -> None:
    first, last = 0, len(have)
    while have[first] == want[first]:
        first += 1
    while have[last - 1] == want[last - 1]:
        last -= 1
    cursor.setPosition(start + first)
    cursor.setPosition(start + last, QTextCursor.MoveMode.KeepAnchor)
    cursor.insertText(as_text(want[first:last]))


def _places(
    display: str, runs: Sequence[Run], line: Line, formats: ReplyFormats
) -> list[tuple[int, int, QTextCharFormat]]:
    """Runs as UTF-16 places in the line, with their formats."""
    found, place = [], 0
    for run in runs:
        text = display[run.start - line.start : run.stop - line.start]
        length = units16(text)
        found.append((place, place + length, formats.char(run.style, line, text, run.href)))
        place += length
    return found
