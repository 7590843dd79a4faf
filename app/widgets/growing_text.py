"""The text of a reply as a widget that grows with it: where its tokens are, its height, what is copied."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QMimeData, QPoint, QPointF, QRect, QSizeF, Qt, Signal
from PySide6.QtGui import QResizeEvent, QTextCursor, QTextLine, QTextOption, QWheelEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextEdit, QWidget

from app.theme import active
from app.widgets import token_paint
from app.widgets.code_cards import CodeCards
from app.widgets.reply_document import ReplyDocument
from app.widgets.token_segments import rect_of_range
from app.widgets.token_spans import Span, SpanKind, TokenSpans


class GrowingText(QTextEdit):
    """Its height follows the text; it never scrolls by itself. Appending is for subclasses."""

    height_changed = Signal()  # by its text, not by a change of width

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._reply = ReplyDocument(self)
        self._live = False
        self._stale_width = False
        self._least_height = 0
        self.cards = CodeCards(self._reply, self.viewport())
        self.cards.scrolled.connect(self.viewport().update)
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
        self.horizontalScrollBar().rangeChanged.connect(self._stay)
        self._reply.recolour(active(), [])
        self._reply.documentLayout().documentSizeChanged.connect(self._follow_height)
        self._follow_height(self._reply.size())

    # Growing

    @contextmanager
    def _appending(self) -> Iterator[None]:
        """Appends inside are laid out once; a selection up to the end does not grow with them."""
        cursor = self.textCursor()
        anchor, position = cursor.anchor(), cursor.position()
        moves = cursor.hasSelection() or self._reply.spans.end in (anchor, position)
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
        self.cards.sync(grown=True)
        self._announce_height(height)

    def _announce_height(self, before: int) -> None:
        if self.height() != before:
            self.height_changed.emit()

    def set_still(self) -> None:
        """It is for a picture: nothing is left for later, and there is nothing to press or to scroll."""
        self._reply.set_still()
        self.cards.shown = False

    def set_live(self, live: bool) -> None:
        """While live, a caret stands at the end. Ending it completes the last line."""
        if self._live and not live:
            self._reply.finish()
            if self._stale_width:
                self._stale_width = False
                self._reply.join_lines()
            self.cards.sync(resized=True)
        self._live = live
        self.viewport().update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Sideways over a wide card scrolls that; the conversation scrolls, never one reply."""
        turned = event.angleDelta()
        sideways = turned.y() if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else turned.x()
        card = self.cards.at(event.position()) if sideways else None
        event.setAccepted(card is not None and card.scroll_by(-sideways // 2))

    def _stay(self) -> None:
        """Wide code scrolls in its card, never the whole text."""
        self.horizontalScrollBar().setRange(0, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        if event.size().width() != event.oldSize().width():
            if self._live:
                self._stale_width = True
            else:
                self._reply.join_lines()
        super().resizeEvent(event)
        self._follow_height(self._reply.size())
        if event.size().width() != event.oldSize().width():
            self.cards.sync(resized=True)

    def _follow_height(self, size: QSizeF) -> None:
        height = math.ceil(size.height()) + 2 * token_paint.OVERHANG  # room for the last line's underline
        height = max(height, self._least_height)
        if height != self.height():
            self.setFixedHeight(height)

    # Reading

    def source_text(self) -> str:
        """The reply exactly as generated: no ghosts, no display characters."""
        return self._reply.spans.source()

    @property
    def spans(self) -> TokenSpans:
        """Which part of the text is which token; read only."""
        return self._reply.spans

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

    def link_at(self, position: QPoint) -> str:
        """Where the link under a point of the viewport leads; "" beside links."""
        return self.anchorAt(position)

    def link_of(self, index: int) -> str:
        """Where the link leads that a span's text is of; "" for other text."""
        start = self._reply.spans.starts[index]
        cursor = QTextCursor(self._reply)
        for place in range(start + 1, start + self._reply.spans.length(index) + 1):
            cursor.setPosition(place)
            if cursor.charFormat().isAnchor():
                return cursor.charFormat().anchorHref()
        return ""

    def createMimeDataFromSelection(self) -> QMimeData:
        """The selected part of the source text, without ghosts."""
        cursor = self.textCursor()
        data = QMimeData()
        data.setText(self._reply.spans.source_between(cursor.selectionStart(), cursor.selectionEnd()))
        return data
