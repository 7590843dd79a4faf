"""Text of users and models, made safe for a page: nothing in it can become markup, a control or a broken file."""

from __future__ import annotations

import html

# Characters that HTML forbids, and halves of characters that no file can hold.
_BAD = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000))}
_BAD = {code: shown for code, shown in _BAD.items() if code not in (0x09, 0x0A)}


def escaped(text: str) -> str:
    """`text` for the inside of an element or of a quoted attribute."""
    return html.escape(text.replace("\r\n", "\n").translate(_BAD))
