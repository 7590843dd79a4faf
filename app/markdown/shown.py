"""Which character is shown for one that would break the display, or deceive: one of the same length. No Qt."""

from __future__ import annotations

import re

from app.markdown.lines import NOTHING

MOST_MARKS = 4  # that one letter carries; more would be painted over other lines
_PILING = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\u0e47-\u0e4e"
_MARKS = re.compile(f"[{_PILING}]{{{MOST_MARKS + 1},}}")
_CONTROLS = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)} | {0x7F: 0x2421}
# These order what comes after them otherwise than it is written: they are seen, and do nothing.
_ORDERING = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd")
_SHOWN_AS = str.maketrans(
    _CONTROLS
    | dict.fromkeys(range(0x80, 0xA0), "\ufffd")
    | _ORDERING
    # Those that a QTextDocument takes for its own structure, and lone halves of characters.
    | {0x0D: "\u200b", 0x2029: "\u2028", 0xFDD0: "\ufffd", 0xFDD1: "\ufffd", 0xFFFC: "\ufffd"}
    | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
)


def displayed(text: str) -> str:
    """The text as it is shown, each character in its place."""
    if text.isascii() and text.isprintable():
        return text
    text = text.translate(_SHOWN_AS)
    return text if text.isascii() else _MARKS.sub(_fewer, text)


def _fewer(found: re.Match[str]) -> str:
    marks = found.group()
    return marks[:MOST_MARKS] + NOTHING * (len(marks) - MOST_MARKS)
