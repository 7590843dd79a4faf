"""The rejected guesses in a reply's text: struck through, fading, or ticks. Owns no clock and no timer."""

from __future__ import annotations

from PySide6.QtCore import QRectF

from app.widgets.reply_document import ReplyDocument
from app.widgets.token_segments import band_of_range
from app.widgets.token_words import split_ghosts
from engine.records import CycleEvent

FADE_SECONDS = 1.5


class Ghosts:
    """keep: they stay struck through. calm: none fades (reduced motion). hurried: what comes now happened before, so
    that a guess that is not kept is a tick at once: turning many later takes long."""

    def __init__(self, reply: ReplyDocument) -> None:
        self._reply = reply
        self._all: list[int] = []
        self._born: dict[int, float] = {}
        self.ticks: set[int] = set()
        self.keep = self.calm = self.hurried = False

    @property
    def fading(self) -> bool:
        """Whether any fades."""
        return bool(self._born)

    @property
    def shown(self) -> list[int]:
        """Spans of those that are struck through."""
        return [index for index in self._all if index not in self.ticks]

    def append(self, event: CycleEvent, following: str, number: int, now: float) -> None:
        """Add the guess of a cycle, if it has one, in front of `following`."""
        guess, _ = split_ghosts(event)
        if not guess:
            return
        shown = bool(guess.strip()) and (self.keep or not (self.calm or self.hurried))
        index = self._reply.append_ghost(guess, following, number, shown)
        self._all.append(index)
        if not shown:
            self.ticks.add(index)
        elif not self.keep:
            self._born[index] = now

    def clear(self) -> None:
        """The text is empty."""
        self._all.clear()
        self._born.clear()
        self.ticks.clear()

    def set_keep(self, keep: bool) -> None:
        """Strike all of them through, or make all of them ticks."""
        self.keep = keep
        self._born.clear()
        if keep:
            self._turn([index for index in self.ticks if self._reply.spans.texts[index].strip()], shown=True)
        else:
            self._turn(self.shown, shown=False)

    def settle(self) -> None:
        """Those that fade become ticks at once."""
        pending = list(self._born)
        self._born.clear()
        self._turn(pending, shown=False)

    def step(self, now: float) -> None:
        """Those past their time become ticks."""
        done = [index for index, born in self._born.items() if now - born >= FADE_SECONDS]
        for index in done:
            del self._born[index]
        self._turn(done, shown=False)

    def share(self, index: int, now: float) -> float | None:
        """How far a ghost has faded, from 0 to 1; None for one that does not."""
        born = self._born.get(index)
        return None if born is None else min(max((now - born) / FADE_SECONDS, 0.0), 1.0)

    def band(self) -> QRectF:
        """The lines on which some fade."""
        starts, last = self._reply.spans.starts, max(self._born)
        return band_of_range(self._reply, starts[min(self._born)], starts[last] + self._reply.spans.length(last))

    def _turn(self, indices: list[int], shown: bool) -> None:
        if not indices:
            return
        self._reply.show_ghosts(indices, shown)
        if shown:
            self.ticks.difference_update(indices)
        else:
            self.ticks.update(indices)
