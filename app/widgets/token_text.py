"""The streaming text of a reply, each token marked by its state.

Text is appended with a cursor and never rendered again; washes and underlines are painted below it from the spans,
for the exposed lines only. A rejected guess is struck through and fades to a tick, unless ghosts are kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from PySide6.QtCore import QEvent, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QStyle, QToolTip, QWidget

from app.theme import active, is_theme_change
from app.widgets import paint_markdown, token_paint
from app.widgets.ghosts import Ghosts
from app.widgets.growing_text import GrowingText
from app.widgets.token_segments import MarkCache
from app.widgets.token_spans import KIND_OF_STATE, Span, SpanKind
from app.widgets.token_words import describe
from engine.records import CycleEvent, Opening

_TICK_MS = 40
AT_ONCE = 400  # cycles that are set anew in one go; of a longer reply the rest follows in slices
SLICE_SECONDS = 0.006


class TokenText(GrowingText):
    """A reply's text; its height follows the text. `clock` gives seconds (replaced in tests)."""

    cycle_clicked = Signal(int)
    link_clicked = Signal(str)

    def __init__(self, parent: QWidget | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(parent)
        self._clock = clock
        self.marks = MarkCache(self._reply.take_reformatted)
        self._events: list[CycleEvent] = []
        self._laid = 0  # of them are in the document; the others wait for their slice
        self._waiting_tail = ""
        self._hurried = False
        self._ghosts = Ghosts(self._reply)
        self._tinted = True
        self._opening = Opening((), ())
        self._selected_cycle: int | None = None
        self._current: int | None = None
        self._tooltips = True
        self._said = ""
        self._ghosts.calm = self.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) == 0
        self._timer = QTimer(self)
        self._timer.setInterval(_TICK_MS)
        self._timer.timeout.connect(self.fade)
        self._slices = QTimer(self)
        self._slices.timeout.connect(self._lay_slice)

    # Content

    def append_cycle(self, event: CycleEvent) -> None:
        """Add one cycle's tokens, and its rejected guess before the correction."""
        self.append_cycles((event,))

    def append_cycles(self, events: Iterable[CycleEvent]) -> None:
        """Add several cycles with one layout."""
        self._events.extend(events)
        if not self.relaying:
            self._lay(len(self._events))

    def _lay(self, most: int, deadline: float = math.inf) -> None:
        """Put up to `most` cycles into the document, with one layout."""
        with self._appending():
            most = min(len(self._events), self._laid + most)
            while self._laid < most and time.perf_counter() < deadline:
                self._append(self._events[self._laid], self._laid)
                self._laid += 1
        self._run_timer()
        self._update_caret()

    def _append(self, event: CycleEvent, number: int) -> None:
        for place, (state, piece) in enumerate(zip(event.record.emitted_states, event.pieces, strict=True)):
            if event.ghosts and place == event.record.agreed:  # in front of what came instead
                self._ghosts.append(event, piece, number, self._clock())
            self._reply.append(KIND_OF_STATE[state], piece, number, place)

    def append_opening(self, opening: Opening) -> None:
        """Show the tokens that were given to the reply as its first."""
        self._opening = opening
        with self._appending():
            for place, piece in enumerate(opening.pieces):
                self._reply.append(SpanKind.GIVEN, piece, -1, place)
        self._update_caret()

    def append_tail(self, text: str) -> None:
        """Add text that belongs to no cycle."""
        if self.relaying:
            self._waiting_tail += text
        elif text:
            with self._appending():
                self._reply.append(SpanKind.TAIL, text)

    def restart(self) -> None:
        """Empty, as before the first cycle; how marks and ghosts are shown stays."""
        self._empty(self._reply.raw)
        self._opening = Opening((), ())
        self._selected_cycle = self._current = None
        self._stale_width = False
        self.viewport().update()

    def _empty(self, raw: bool) -> None:
        self._slices.stop()
        self._reply.restart(raw=raw)
        self.marks = MarkCache(self._reply.take_reformatted)
        self._events.clear()
        self._laid, self._waiting_tail, self._least_height = 0, "", 0
        self._ghosts.clear()
        self.cards.sync()
        self._run_timer()

    def set_hurried(self, hurried: bool) -> None:
        """While hurried, a rejected guess that is not kept is a tick at once: turning many later takes long."""
        self._hurried = hurried
        self._ghosts.hurried = hurried or self.relaying

    def settle_ghosts(self) -> None:
        """Fading guesses become ticks at once."""
        with self._turning():
            self._ghosts.settle()

    # Looks

    def set_keep_ghosts(self, keep: bool) -> None:
        """Keep every rejected guess in the text (struck through), or fade them all to ticks."""
        if keep != self._ghosts.keep:
            with self._turning():
                self._ghosts.set_keep(keep)

    def set_reduced_motion(self, reduced: bool) -> None:
        """No fading: a rejected guess is a tick at once."""
        self._ghosts.calm = reduced
        if reduced and not self._ghosts.keep:
            self.settle_ghosts()

    def set_raw(self, raw: bool) -> None:
        """Show the tokens as they are, with their bounds and line ends, instead of formatted text."""
        if raw == self._reply.raw:
            return
        tail = "".join(t for t, k in zip(self.spans.texts, self.spans.kinds, strict=True) if k is SpanKind.TAIL)
        tail += self._waiting_tail
        events, opening, height, live = list(self._events), self._opening, self.height(), self._live
        self._live = self._stale_width = False
        self._ghosts.hurried = True
        self._empty(raw)
        self._least_height = height  # the conversation does not jump while the text comes back
        if opening.ids:
            self.append_opening(opening)
        self._live, self._waiting_tail = live, tail
        self._events.extend(events)
        self._lay(AT_ONCE)
        if self._laid < len(self._events):
            self._slices.start(0)
        else:
            self._relaid()
        self.viewport().update()

    @property
    def relaying(self) -> bool:
        """Whether a long reply is still being set anew, slice by slice."""
        return self._slices.isActive()

    def _lay_slice(self) -> None:
        self._lay(len(self._events), time.perf_counter() + SLICE_SECONDS)
        if self._laid == len(self._events):
            self._relaid()

    def _relaid(self) -> None:
        """All cycles are there again: what came after them follows, and the height is that of the text."""
        self._slices.stop()
        self._ghosts.hurried = self._hurried
        tail, self._waiting_tail = self._waiting_tail, ""
        self.append_tail(tail)
        if not self._live:
            self._reply.finish()
        height, self._least_height = self.height(), 0
        self._follow_height(self._reply.size())
        self._announce_height(height)
        self.viewport().update()

    def set_live(self, live: bool) -> None:
        """See GrowingText. A reply that is being set anew is finished when all of it is there."""
        if self.relaying:
            self._live = live
        else:
            super().set_live(live)

    def source_text(self) -> str:
        """See GrowingText; what is still to be set anew counts."""
        waiting = self._events[self._laid :]
        return super().source_text() + "".join("".join(event.pieces) for event in waiting) + self._waiting_tail

    def set_tinted(self, tinted: bool) -> None:
        """Show or hide the marks; the text stays where it is."""
        if tinted != self._tinted:
            self._tinted = tinted
            self.viewport().update()

    def select_cycle(self, number: int | None) -> None:
        """Outline the text of a cycle (its number in order of arrival); None clears."""
        if number != self._selected_cycle:
            self._selected_cycle = number
            self.viewport().update()

    def set_tooltips(self, shown: bool) -> None:
        """Whether a token under the pointer is explained in a tooltip; not where a card does it."""
        self._tooltips = shown

    def set_current(self, index: int | None) -> None:
        """Put a ring around a token, by its span's index, and say it in words; None takes it away."""
        if self._current is None:
            self._said = self.accessibleDescription()
        self._current = index
        words = self._said if index is None else self.description(self._reply.spans.span(index))
        link = self.link_of(index) if index is not None else ""
        if link:
            words += " " + self.tr("Part of a link to {address}. Ctrl+Enter opens it.").replace("{address}", link)
        self.setAccessibleDescription(words)
        self.viewport().update()

    def mark_token(self, place: int) -> None:
        """Outline the cycle that brought the reply's token number `place` (from 0); past the end, the last one."""
        for number, event in enumerate(self._events):
            place -= len(event.record.emitted_ids)
            if place < 0 or number == len(self._events) - 1:
                self.select_cycle(number)
                return

    @contextmanager
    def _turning(self) -> Iterator[None]:
        """Ghosts that change inside may change the height; the timer runs while some fade."""
        height = self.height()
        yield
        if self.height() != height:
            self.cards.sync()
        self._announce_height(height)
        self._run_timer()

    def _run_timer(self) -> None:
        if not self._ghosts.fading:
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()

    def fade(self) -> None:
        """One step of the fading ghosts: those past their time become ticks."""
        with self._turning():
            self._ghosts.step(self._clock())
        if self._ghosts.fading and self.isVisible():
            self.viewport().update(self._ghosts.band().toAlignedRect())

    # Reading

    @property
    def current(self) -> int | None:
        """Index of the span that has the ring."""
        return self._current

    @property
    def selected_cycle(self) -> int | None:
        """Number of the cycle that is outlined."""
        return self._selected_cycle

    @property
    def cycles(self) -> Sequence[CycleEvent]:
        """The cycles shown, in order of arrival; read only."""
        return self._events

    @property
    def opening(self) -> Opening:
        """The tokens that were given to the reply; of no length where none were."""
        return self._opening

    def description(self, span: Span) -> str:
        """A token's state in words."""
        return describe(span, self._events[span.cycle] if span.cycle >= 0 else None)

    # Events

    def paintEvent(self, event: QPaintEvent) -> None:
        exposed = QRectF(event.rect())
        theme = active()
        marks = self.marks.between(self._reply, self._reply.spans, exposed.top() - 4, exposed.bottom() + 4)
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_markdown.paint_grounds(painter, self._reply, exposed, self.viewport().width(), theme)
        if self._tinted:
            token_paint.paint_marks(painter, marks, theme)
        paint_markdown.paint_inline_code(painter, self._reply, exposed, theme)
        painter.end()
        super().paintEvent(event)
        self._paint_above(exposed, [m for m in marks if m.kind is SpanKind.GHOST or m.cycle == self._selected_cycle])

    def _paint_above(self, exposed: QRectF, marks: list[token_paint.Segment]) -> None:
        theme = active()
        painter = QPainter(self.viewport())
        if self._reply.raw:
            token_paint.paint_bounds(painter, self._reply, exposed, theme)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        now = self._clock()
        for mark in marks:
            share = self._ghosts.share(mark.first, now)
            if share is not None:
                token_paint.paint_fade(painter, mark.rect, share**2, theme)
            elif mark.first in self._ghosts.ticks and self._tinted:
                token_paint.paint_tick(painter, mark.rect, theme)
        if self._current is not None and self._current < len(self.spans):
            token_paint.paint_token_outline(painter, QRectF(self.token_rect(self._current)), theme)
        token_paint.paint_cycle_outline(painter, [m for m in marks if m.cycle == self._selected_cycle], theme)
        if self._live:
            token_paint.paint_caret(painter, self._reply.end_rect(), theme)
        painter.end()

    def _update_caret(self) -> None:
        if self._live:
            self.viewport().update(self._reply.end_rect().toAlignedRect().adjusted(-2, -2, 10, 2))

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent) and not self._tooltips:
            return True
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            span = self.token_at(event.pos())
            if span is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self.description(span), self.viewport())
            return True
        return super().viewportEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and not self.textCursor().hasSelection():
            link = self.link_at(event.position().toPoint())
            if link:
                self.link_clicked.emit(link)
                return
            span = self.token_at(event.position().toPoint())
            if span is not None and span.cycle >= 0:
                self.cycle_clicked.emit(span.cycle)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        over = not event.buttons() and bool(self.link_at(event.position().toPoint()))
        shape = Qt.CursorShape.PointingHandCursor if over else Qt.CursorShape.IBeamCursor
        if self.viewport().cursor().shape() != shape:
            self.viewport().setCursor(shape)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl+Enter on a token of a link is a click on it."""
        control = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        link = self.link_of(self._current) if control and enter and self._current is not None else ""
        if link:
            self.link_clicked.emit(link)
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "_said"):  # Qt polishes the widget before it is set up
            self._reply.recolour(active(), self._ghosts.shown)
            self.viewport().update()
