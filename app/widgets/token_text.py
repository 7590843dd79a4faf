"""The streaming text of a reply, each token marked by its state.

Text is appended with a cursor and never rendered again; washes and underlines are painted below it from the spans,
for the exposed lines only. A rejected guess is struck through and fades to a tick, unless ghosts are kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, QRect, QRectF, QSizeF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextCursor,
    QTextLine,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QStyle, QTextEdit, QToolTip, QWidget

from app.theme import active, is_theme_change
from app.widgets import token_paint
from app.widgets.reply_document import ReplyDocument
from app.widgets.token_segments import MarkCache, band_of_range, rect_of_range
from app.widgets.token_spans import KIND_OF_STATE, Span, SpanKind, TokenSpans
from app.widgets.token_words import describe, split_ghosts
from engine.records import CycleEvent, Opening

FADE_SECONDS = 1.5
_TICK_MS = 40


class TokenText(QTextEdit):
    """A reply's text; its height follows the text. `clock` gives seconds (replaced in tests)."""

    cycle_clicked = Signal(int)
    height_changed = Signal()  # by its text, not by a change of width

    def __init__(self, parent: QWidget | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(parent)
        self._clock = clock
        self._reply = ReplyDocument(self)
        self.marks = MarkCache()
        self._events: list[CycleEvent] = []
        self._ghosts: list[int] = []
        self._ticks: set[int] = set()
        self._fading: dict[int, float] = {}
        self._keep_ghosts = False
        self._tinted = True
        self._live = False
        self._hurried = False
        self._opening = Opening((), ())
        self._selected_cycle: int | None = None
        self._current: int | None = None
        self._tooltips = True
        self._stale_width = False
        self._reduced_motion = self.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) == 0
        self._timer = QTimer(self)
        self._timer.setInterval(_TICK_MS)
        self._timer.timeout.connect(self.fade)
        self._set_up()

    def _set_up(self) -> None:
        self.setDocument(self._reply)
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setTabChangesFocus(True)
        self.setCursorWidth(0)
        self.viewport().setAutoFillBackground(False)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)  # growing repaints only what is new
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.setViewportMargins(token_paint.OVERHANG, 0, token_paint.OVERHANG, 0)
        self.setAccessibleName(self.tr("Reply"))
        self._reply.recolour(active(), [])
        self._reply.documentLayout().documentSizeChanged.connect(self._follow_height)
        self._follow_height(self._reply.size())

    # Content

    def append_cycle(self, event: CycleEvent) -> None:
        """Add one cycle's tokens, and its rejected guess before the correction."""
        self.append_cycles((event,))

    def append_cycles(self, events: Iterable[CycleEvent]) -> None:
        """Add several cycles with one layout."""
        with self._appending():
            for event in events:
                self._append(event)
        self._update_caret()

    @contextmanager
    def _appending(self) -> Iterator[None]:
        """Appends inside are laid out once; a selection up to the end does not grow with them."""
        cursor = self.textCursor()
        anchor, position = cursor.anchor(), cursor.position()
        moves = self._reply.spans.end in (anchor, position)
        height = self.height()
        self._reply.begin_batch()
        try:
            yield
        finally:
            self._reply.end_batch()
        if moves:
            cursor.setPosition(anchor)
            cursor.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
            self.setTextCursor(cursor)
        self._announce_height(height)

    def _announce_height(self, before: int) -> None:
        if self.height() != before:
            self.height_changed.emit()

    def _append(self, event: CycleEvent) -> None:
        number = len(self._events)
        self._events.append(event)
        for place, (state, piece) in enumerate(zip(event.record.emitted_states, event.pieces, strict=True)):
            if event.ghosts and place == event.record.agreed:  # in front of what came instead
                self._append_ghost(event, piece, number)
            self._reply.append(KIND_OF_STATE[state], piece, number, place)

    def _append_ghost(self, event: CycleEvent, following: str, number: int) -> None:
        guess, _ = split_ghosts(event)
        if not guess:
            return
        fades = not (self._reduced_motion or self._hurried)
        shown = bool(guess.strip()) and (self._keep_ghosts or fades)
        index = self._reply.append_ghost(guess, following, number, shown)
        self._ghosts.append(index)
        if not shown:
            self._ticks.add(index)
        elif not self._keep_ghosts:
            self._fading[index] = self._clock()
            if not self._timer.isActive():
                self._timer.start()

    def append_opening(self, opening: Opening) -> None:
        """Show the tokens that were given to the reply as its first."""
        self._opening = opening
        with self._appending():
            for place, piece in enumerate(opening.pieces):
                self._reply.append(SpanKind.GIVEN, piece, -1, place)
        self._update_caret()

    def append_tail(self, text: str) -> None:
        """Add text that belongs to no cycle."""
        if text:
            with self._appending():
                self._reply.append(SpanKind.TAIL, text)

    def restart(self) -> None:
        """Empty, as before the first cycle; how marks and ghosts are shown stays."""
        self._stop_fading()
        self._reply.restart(raw=self._reply.raw)
        self.marks = MarkCache()
        self._events.clear()
        self._ghosts.clear()
        self._ticks.clear()
        self._opening = Opening((), ())
        self._selected_cycle = self._current = None
        self._stale_width = False
        self.viewport().update()

    def set_hurried(self, hurried: bool) -> None:
        """While hurried, a rejected guess that is not kept is a tick at once: turning many later takes long."""
        self._hurried = hurried

    def settle_ghosts(self) -> None:
        """Fading guesses become ticks at once."""
        pending = list(self._fading)
        self._stop_fading()
        self._turn(pending, shown=False)

    def set_live(self, live: bool) -> None:
        """While live, a caret stands at the end. Ending it completes the last line."""
        if self._live and not live:
            self._reply.finish()
            if self._stale_width:
                self._stale_width = False
                self._reply.join_lines()
        self._live = live
        self.viewport().update()

    def source_text(self) -> str:
        """The reply exactly as generated: no ghosts, no display characters."""
        return self._reply.spans.source()

    # Looks

    def set_keep_ghosts(self, keep: bool) -> None:
        """Keep every rejected guess in the text (struck through), or fade them all to ticks."""
        if keep == self._keep_ghosts:
            return
        self._keep_ghosts = keep
        self._stop_fading()
        if keep:
            change = [i for i in self._ticks if self._reply.spans.texts[i].strip()]
        else:
            change = [i for i in self._ghosts if i not in self._ticks]
        self._turn(change, shown=keep)

    def set_reduced_motion(self, reduced: bool) -> None:
        """No fading: a rejected guess is a tick at once."""
        self._reduced_motion = reduced
        if reduced and not self._keep_ghosts:
            self.settle_ghosts()

    def set_raw(self, raw: bool) -> None:
        """Show the tokens as they are, with their bounds and line ends, instead of formatted text."""
        if raw == self._reply.raw:
            return
        self._stop_fading()
        tail = "".join(t for t, k in zip(self.spans.texts, self.spans.kinds, strict=True) if k is SpanKind.TAIL)
        events, opening, live, height = list(self._events), self._opening, self._live, self.height()
        self._events.clear()
        self._ghosts.clear()
        self._ticks.clear()
        self._live = self._stale_width = False
        hurried, self._hurried = self._hurried, True
        self._reply.restart(raw=raw)
        self.marks = MarkCache()
        if opening.ids:
            self.append_opening(opening)
        self.append_cycles(events)
        self.append_tail(tail)
        self._hurried, self._live = hurried, live
        if not live:
            self._reply.finish()
        self._announce_height(height)
        self.viewport().update()

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
        self._current = index
        words = "" if index is None else self.description(self._reply.spans.span(index))
        self.setAccessibleDescription(words)
        self.viewport().update()

    def mark_token(self, place: int) -> None:
        """Outline the cycle that brought the reply's token number `place` (from 0); past the end, the last one."""
        for number, event in enumerate(self._events):
            place -= len(event.record.emitted_ids)
            if place < 0 or number == len(self._events) - 1:
                self.select_cycle(number)
                return

    def _turn(self, indices: list[int], shown: bool) -> None:
        if not indices:
            return
        height = self.height()
        self._reply.show_ghosts(indices, shown)
        self._announce_height(height)
        if shown:
            self._ticks.difference_update(indices)
        else:
            self._ticks.update(indices)

    def _stop_fading(self) -> None:
        self._fading.clear()
        self._timer.stop()

    def fade(self) -> None:
        """One step of the fading ghosts: those past their time become ticks."""
        now = self._clock()
        done = [i for i, born in self._fading.items() if now - born >= FADE_SECONDS]
        for index in done:
            del self._fading[index]
        self._turn(done, shown=False)
        if not self._fading:
            self._timer.stop()
        elif self.isVisible():
            starts = self._reply.spans.starts
            first, last = min(self._fading), max(self._fading)
            band = band_of_range(self._reply, starts[first], starts[last] + self._reply.spans.length(last))
            self.viewport().update(band.toAlignedRect())

    # Reading

    def token_at(self, position: QPoint) -> Span | None:
        """The token, ghost or tick under a point of the viewport; None beside the text."""
        point = QPointF(position) + QPointF(0, self.verticalScrollBar().value())
        hit = self._reply.documentLayout().hitTest(point, Qt.HitTestAccuracy.FuzzyHit)
        block = self._reply.findBlock(hit)
        layout = block.layout()
        for i in range(layout.lineCount()):
            line = layout.lineAt(i)
            rect = line.naturalTextRect().translated(layout.position())
            if rect.adjusted(0, -3, 0, 3).contains(point):
                x = point.x() - layout.position().x()
                column = int(line.xToCursor(x, QTextLine.CursorPosition.CursorOnCharacter))
                index = self._reply.spans.find(block.position() + column)
                return self._reply.spans.span(index) if index >= 0 else None
        return None

    @property
    def spans(self) -> TokenSpans:
        """Which part of the text is which token; read only."""
        return self._reply.spans

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

    def live_line(self) -> QRect:
        """The line that is being written, over the whole width, in the viewport; empty where none is."""
        if not self._live:
            return QRect()
        end = self._reply.end_rect().toAlignedRect()
        return QRect(0, end.top(), self.viewport().width(), max(end.height(), 1))

    def token_rect(self, index: int) -> QRect:
        """Where a span begins, up to the end of its line, in the viewport."""
        start, stop = self._reply.spans.starts[index], self._reply.spans.starts[index] + self._reply.spans.length(index)
        text = self._reply.spans.texts[index]
        if self._reply.spans.kinds[index] is not SpanKind.GHOST and text.strip():
            start += len(text) - len(text.lstrip())
        rect = rect_of_range(self._reply, start, max(start, stop))
        return rect.translated(0, -self.verticalScrollBar().value()).toAlignedRect()

    def description(self, span: Span) -> str:
        """A token's state in words."""
        return describe(span, self._events[span.cycle] if span.cycle >= 0 else None)

    def createMimeDataFromSelection(self) -> QMimeData:
        """The selected part of the source text, without ghosts."""
        cursor = self.textCursor()
        data = QMimeData()
        data.setText(self._reply.spans.source_between(cursor.selectionStart(), cursor.selectionEnd()))
        return data

    # Events

    def paintEvent(self, event: QPaintEvent) -> None:
        exposed = QRectF(event.rect())
        theme = active()
        marks = self.marks.between(self._reply, self._reply.spans, exposed.top() - 4, exposed.bottom() + 4)
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        token_paint.paint_code_cards(painter, self._reply, exposed, self.viewport().width(), theme)
        if self._tinted:
            token_paint.paint_marks(painter, marks, QFontMetricsF(self._reply.defaultFont()), theme)
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
            if mark.first in self._fading:
                share = (now - self._fading[mark.first]) / FADE_SECONDS
                token_paint.paint_fade(painter, mark.rect, min(max(share, 0.0), 1.0) ** 2, theme)
            elif mark.first in self._ticks and self._tinted:
                token_paint.paint_tick(painter, mark.rect, theme)
        if self._current is not None:
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
            span = self.token_at(event.position().toPoint())
            if span is not None and span.cycle >= 0:
                self.cycle_clicked.emit(span.cycle)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the conversation scrolls, never one reply

    def resizeEvent(self, event: QResizeEvent) -> None:
        if event.size().width() != event.oldSize().width():
            if self._live:
                self._stale_width = True
            else:
                self._reply.join_lines()
        super().resizeEvent(event)
        self._follow_height(self._reply.size())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "_ghosts"):  # Qt polishes the widget before it is set up
            self._reply.recolour(active(), [i for i in self._ghosts if i not in self._ticks])
            self.viewport().update()

    def _follow_height(self, size: QSizeF) -> None:
        height = math.ceil(size.height()) + 2 * token_paint.OVERHANG  # room for the last line's underline
        if height != self.height():
            self.setFixedHeight(height)
