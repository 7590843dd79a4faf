"""Prints a reply while it is made: each token in the style of its state, rejected ones for one cycle only."""

from __future__ import annotations

import shutil
from typing import TextIO

from engine.cli.terminal import RESET, STYLES, cell_width, clipped, visible
from engine.records import CycleEvent, Event, Finished, Opening, TokenState

SAVE, RESTORE_AND_CLEAR = "\x1b7", "\x1b8\x1b[K"


class ReplyPrinter:
    """Writes the events of one reply to `out`. Without `colour` it writes the reply's text and nothing else.

    A rejected draft is shown behind the reply, struck through, until the next event takes it away again. It never
    wraps to a second line, because text that scrolled could not be taken away.
    """

    def __init__(self, out: TextIO, colour: bool) -> None:
        self._out = out
        self._colour = colour
        self._column = 0
        self._ghost_shown = False

    def show(self, event: Event) -> None:
        """Write what this event adds."""
        self.clear_ghost()
        if isinstance(event, Opening):
            self._write("".join(event.pieces), TokenState.PLAIN)
        elif isinstance(event, CycleEvent):
            for piece, state in zip(event.pieces, event.record.emitted_states, strict=True):
                self._write(piece, state)
            self._show_ghost("".join(event.ghosts))
        elif isinstance(event, Finished):
            self._write(event.tail, TokenState.PLAIN)
        self._out.flush()

    def end(self) -> None:
        """Finish the last line."""
        self.clear_ghost()
        if self._column:
            self._out.write("\n")
            self._column = 0
        self._out.flush()

    def clear_ghost(self) -> None:
        """Take the rejected draft away."""
        if self._ghost_shown:
            self._out.write(RESTORE_AND_CLEAR)
            self._ghost_shown = False

    def _write(self, piece: str, state: TokenState) -> None:
        if not piece:
            return
        style = STYLES.get(state, "") if self._colour else ""
        text = visible(piece) if self._out.isatty() else piece
        self._out.write(f"{style}{text}{RESET}" if style else text)
        before, _, last = text.rpartition("\n")
        start = 0 if before or text.startswith("\n") else self._column
        self._column = start + cell_width(last.expandtabs(8))

    def _show_ghost(self, text: str) -> None:
        if not self._colour or not text:
            return
        width = shutil.get_terminal_size().columns
        room = width - 1 - self._column % width
        shown = clipped(visible(text).replace("\n", "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}").expandtabs(1), room)
        if shown:
            self._out.write(f"{SAVE}{STYLES[TokenState.REJECTED]}{shown}{RESET}")
            self._ghost_shown = True
