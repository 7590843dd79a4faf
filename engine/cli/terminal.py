"""What a terminal shows of a token's state: colour, and always a second mark beside it."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Mapping
from typing import TextIO

from engine.records import TokenState

RESET = "\x1b[0m"
DIM = "\x1b[2m"

# Colours of the 256-colour palette that read on dark and on light backgrounds alike.
STYLES: Mapping[TokenState, str] = {
    TokenState.ACCEPTED: "\x1b[38;5;35m",  # green
    TokenState.CORRECTION: "\x1b[38;5;172;4m",  # amber, underlined
    TokenState.BONUS: "\x1b[38;5;33;3m",  # blue, slanted
    TokenState.REJECTED: "\x1b[38;5;244;9m",  # grey, struck through
}

LEGEND = " · ".join(
    f"{STYLES[state]}{words}{RESET}"
    for state, words in (
        (TokenState.ACCEPTED, "drafted and accepted"),
        (TokenState.CORRECTION, "corrected (underlined)"),
        (TokenState.BONUS, "bonus (slanted)"),
        (TokenState.REJECTED, "rejected"),
    )
)


def colour_wanted(stream: TextIO, refused: bool = False) -> bool:
    """Whether to colour `stream`: a terminal that can, and nobody refused (--no-color, NO_COLOR, TERM=dumb)."""
    if refused or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    wanted = stream.isatty() or bool(os.environ.get("FORCE_COLOR"))
    if wanted and sys.platform == "win32":
        os.system("")  # switches the Windows console to interpreting escape sequences
    return wanted


def visible(text: str) -> str:
    """`text` with control characters made visible, so that a model cannot steer the terminal."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) != "Cc" else "\N{REPLACEMENT CHARACTER}" for c in text)


def cell_width(text: str) -> int:
    """Columns that `text` (one line) takes in a terminal."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.category(c) in ("Mn", "Me", "Cf") for c in text)


def clipped(text: str, columns: int) -> str:
    """The longest start of `text` that fits into `columns`."""
    end = 0
    while end < len(text) and cell_width(text[: end + 1]) <= columns:
        end += 1
    return text[:end]
