"""The document of one reply: text appended token by token, never rendered again, with its spans beside it.

Lines keep their breaks and indentation. Three things are recognised as their line grows, because they cost nothing:
fenced code is set in the code font, list items hang, and an empty line is a gap of half a line. Very long paragraphs
are laid out in pieces, split where a line ends, so that a token costs the same at any length.
"""

from __future__ import annotations

import re

from PySide6.QtCore import QObject, QPointF, QRectF
from PySide6.QtGui import (
    QColor,
    QFontInfo,
    QFontMetricsF,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
)

from app.theme import PX_CONTROL, PX_LABEL, PX_TEXT, Theme, mono_font, ui_font
from app.widgets.token_segments import LineKind, column_x
from app.widgets.token_spans import SpanKind, TokenSpans, utf16_length

THIN_SPACE = "\u2009"
LONG_LINE = 800  # characters of a paragraph above which its finished lines are split off
_HEAD = 24  # characters of a line that decide what it is
_LIST_ITEM = re.compile(r"\s*(?:\d{1,3}[.)]|[-*+•])\s+(?=\S)")
_LINE = 25 / 15  # line height over font size
_CODE_LINE = 22 / 13
_FIXED = QTextBlockFormat.LineHeightTypes.FixedHeight.value

# Characters that a QTextDocument takes for its own structure, shown by one of the same length.
_SHOWN_AS = str.maketrans(
    {"\r": "\u200b", "\u2029": "\u2028", "\x00": "\u2400", "\ufdd0": "\ufffd", "\ufdd1": "\ufffd", "\ufffc": "\ufffd"}
)


class ReplyDocument(QTextDocument):
    """See the module. All appends between `begin_batch` and `end_batch` are laid out once."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setUndoRedoEnabled(False)
        self.setDocumentMargin(0)
        self.setDefaultFont(ui_font(PX_TEXT))
        self.setDefaultTextOption(_wrapping())
        self.spans = TokenSpans()
        self._size = QFontInfo(self.defaultFont()).pixelSize()
        self._cursor = QTextCursor(self)
        self._head = ""
        self._in_code = False
        self._shaped = False
        self._raw = False
        self._plain = QTextCharFormat()
        self._code = QTextCharFormat()
        self._code.setFont(mono_font(PX_CONTROL))
        self._ghost = QTextCharFormat()
        self._ghost.setFontStrikeOut(True)
        self._cursor.setBlockFormat(self._block_format(LineKind.TEXT))

    # Appending

    def begin_batch(self) -> None:
        """Start a batch of appends."""
        self._split_long_line()
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        self._cursor.beginEditBlock()

    def end_batch(self) -> None:
        """Lay out what was appended since `begin_batch`."""
        self._cursor.endEditBlock()

    def append(self, kind: SpanKind, text: str, cycle: int = -1, place: int = 0) -> int:
        """Append a token's text; returns the index of its span."""
        for i, part in enumerate(text.split("\n")):
            if i:
                self._end_line()
            if part:
                self._cursor.insertText(part.translate(_SHOWN_AS), self._code if self._in_code else self._plain)
                if len(self._head) < _HEAD:
                    self._head += part
                    self._shape_line()
        return self.spans.append(kind, text, utf16_length(text), cycle, place)

    def append_ghost(self, text: str, next_text: str, cycle: int, shown: bool) -> int:
        """Append a rejected guess, in full or as a tick, before the text that replaces it; returns its span's index."""
        index = self.spans.append(SpanKind.GHOST, text, 0, cycle)
        length = self._insert_ghost(self._cursor, text, next_text) if shown else self._insert_tick(self._cursor)
        self.spans.resize({index: length})
        return index

    def restart(self, *, raw: bool = False) -> None:
        """Empty, as it was made. raw: what is appended from now on is set in the code font and takes no other form."""
        self.clear()
        self._raw = raw
        self._plain.setFont(mono_font(PX_CONTROL) if raw else self.defaultFont())
        self.spans = TokenSpans()
        self._cursor = QTextCursor(self)
        self._head, self._in_code, self._shaped = "", False, False
        self._cursor.setBlockFormat(self._block_format(LineKind.TEXT))
        self._cursor.block().setUserState(LineKind.TEXT)

    def finish(self) -> None:
        """The last line is complete; empty lines after it take no room."""
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        if self._in_code and self._is_fence():
            self._set_line(self._cursor.block(), LineKind.FENCE_CLOSE)
            self._in_code = False
        block = self.lastBlock()
        while not self._raw and block.length() == 1 and block.previous().isValid():
            self._set_line(block, LineKind.END)
            block = block.previous()

    @property
    def raw(self) -> bool:
        """Whether tokens are shown as they are."""
        return self._raw

    # Ghosts

    def show_ghosts(self, indices: list[int], shown: bool) -> None:
        """Turn ghosts into ticks, or ticks into ghosts."""
        cursor = QTextCursor(self)
        cursor.beginEditBlock()
        lengths = {}
        for index in sorted(indices, reverse=True):
            start = self.spans.starts[index]
            cursor.setPosition(start)
            cursor.setPosition(start + self.spans.length(index), QTextCursor.MoveMode.KeepAnchor)
            following = self.spans.texts[index + 1] if index + 1 < len(self.spans) else ""
            if shown:
                lengths[index] = self._insert_ghost(cursor, self.spans.texts[index], following)
            else:
                lengths[index] = self._insert_tick(cursor)
        self.spans.resize(lengths)
        cursor.endEditBlock()

    def _insert_tick(self, cursor: QTextCursor) -> int:
        cursor.insertText(THIN_SPACE, self._plain)
        return 1

    def _insert_ghost(self, cursor: QTextCursor, text: str, following: str) -> int:
        """Insert a ghost with a thin space wherever it would touch a word; returns its length."""
        shown = text.replace("\n", "↵").translate(_SHOWN_AS)
        body = shown.lstrip()
        before = shown[: len(shown) - len(body)] or THIN_SPACE
        after = THIN_SPACE if following[:1].strip() else ""
        cursor.insertText(before, self._plain)
        ghost = QTextCharFormat(self._ghost)
        if cursor.block().userState() == LineKind.CODE or self._raw:
            ghost.setFont(mono_font(PX_CONTROL))
            ghost.setFontStrikeOut(True)
        cursor.insertText(body, ghost)
        if after:
            cursor.insertText(after, self._plain)
        return utf16_length(before + body + after)

    # Lines

    def _end_line(self) -> None:
        block = self._cursor.block()
        if self._is_fence():
            self._set_line(block, LineKind.FENCE_CLOSE if self._in_code else LineKind.FENCE_OPEN)
            self._in_code = not self._in_code
        elif not self._head and not self._in_code and not self._raw and block.length() == 1:
            self._set_line(block, LineKind.GAP)
        kind = LineKind.CODE if self._in_code else LineKind.TEXT
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        self._cursor.insertBlock(self._block_format(kind), self._code if self._in_code else self._plain)
        self._cursor.block().setUserState(kind)
        self._head = ""
        self._shaped = False

    def _is_fence(self) -> bool:
        return not self._raw and self._head.lstrip().startswith("```")

    def _shape_line(self) -> None:
        """Let a list item hang as soon as its marker is known."""
        if self._shaped or self._in_code or self._raw:
            return
        marker = _LIST_ITEM.match(self._head)
        if marker:
            width = QFontMetricsF(self.defaultFont()).horizontalAdvance(marker.group())
            form = self._block_format(LineKind.TEXT)
            form.setLeftMargin(width)
            form.setTextIndent(-width)
            self._cursor.setBlockFormat(form)
            self._shaped = True

    def _set_line(self, block: QTextBlock, kind: LineKind) -> None:
        block.setUserState(kind)
        cursor = QTextCursor(block)
        cursor.setBlockFormat(self._block_format(kind))
        if kind in (LineKind.FENCE_OPEN, LineKind.FENCE_CLOSE):
            self._dress_fence(block)

    def _dress_fence(self, block: QTextBlock) -> None:
        """A fence shows only its language; the ticks keep their place in the text, one pixel high and clear."""
        text = block.text()
        ticks = len(text) - len(text.lstrip(" \t`"))
        hidden = QTextCharFormat()
        hidden.setForeground(QColor(0, 0, 0, 0))
        font = mono_font(PX_LABEL)
        font.setPixelSize(1)
        hidden.setFont(font)
        caption = QTextCharFormat()
        caption.setFont(ui_font(PX_LABEL))
        cursor = QTextCursor(block)
        cursor.setPosition(block.position() + ticks, QTextCursor.MoveMode.KeepAnchor)
        cursor.setCharFormat(hidden)
        cursor.setPosition(block.position() + ticks)
        cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
        cursor.setCharFormat(caption)

    def _block_format(self, kind: LineKind) -> QTextBlockFormat:
        form = QTextBlockFormat()
        code_size = self._size * PX_CONTROL / PX_TEXT
        heights = {
            LineKind.TEXT: self._size * _LINE,
            LineKind.GAP: self._size * 0.8,
            LineKind.END: 1,
            LineKind.CODE: code_size * _CODE_LINE,
            LineKind.FENCE_OPEN: code_size * _CODE_LINE,
            LineKind.FENCE_CLOSE: code_size * 0.9,
        }
        form.setLineHeight(round(heights[kind]), _FIXED)
        if kind >= LineKind.CODE:
            form.setLeftMargin(self._size * 0.8)
            form.setRightMargin(self._size * 0.8)
        if kind is LineKind.FENCE_OPEN:
            form.setTopMargin(self._size * 0.2)
        if kind is LineKind.FENCE_CLOSE:
            form.setBottomMargin(self._size * 0.2)
        return form

    # Long paragraphs

    def _split_long_line(self) -> None:
        """Split the finished lines off a paragraph that has grown long."""
        block = self.lastBlock()
        if block.length() <= LONG_LINE:
            return
        self.documentLayout().blockBoundingRect(block)  # makes sure that the block is laid out
        lines = block.layout().lineCount()
        if lines < 2:
            return
        position = block.position() + block.layout().lineAt(lines - 1).textStart()
        if self.spans.split_line(position):
            cursor = QTextCursor(self)
            cursor.setPosition(position)
            form = block.blockFormat()
            form.setTextIndent(0)
            kind = block.userState()
            cursor.insertBlock(form)
            cursor.block().setUserState(kind)

    def join_lines(self) -> None:
        """Undo the splits of long paragraphs, after which they can be laid out for another width."""
        if not self.spans.breaks:
            return
        cursor = QTextCursor(self)
        cursor.beginEditBlock()
        for position in reversed(self.spans.breaks):
            cursor.setPosition(position)
            form = self.findBlock(position).blockFormat()
            cursor.deleteChar()
            cursor.setBlockFormat(form)
        self.spans.join_lines()
        cursor.endEditBlock()

    # Looks

    def recolour(self, theme: Theme, ghosts: list[int]) -> None:
        """Take the colours of a theme; ghosts: the spans of those shown in full."""
        self._ghost.setForeground(theme.color("rejected"))
        if not ghosts:
            return
        colour = QTextCharFormat()
        colour.setForeground(theme.color("rejected"))
        cursor = QTextCursor(self)
        cursor.beginEditBlock()
        for index in ghosts:
            start = self.spans.starts[index]
            cursor.setPosition(start)
            cursor.setPosition(start + self.spans.length(index), QTextCursor.MoveMode.KeepAnchor)
            cursor.mergeCharFormat(colour)
        cursor.endEditBlock()

    def end_rect(self) -> QRectF:
        """A rectangle of no width behind the last character, as high as its text."""
        block = self.lastBlock()
        box = self.documentLayout().blockBoundingRect(block)
        layout = block.layout()
        metrics = QFontMetricsF(self.defaultFont())
        if layout.lineCount() == 0:
            return QRectF(box.topLeft(), box.topLeft() + QPointF(0, metrics.height()))
        line = layout.lineAt(layout.lineCount() - 1)
        x = layout.position().x() + column_x(line, line.textStart() + line.textLength())
        baseline = layout.position().y() + line.y() + line.ascent()
        return QRectF(x, baseline - metrics.ascent(), 0, metrics.ascent() + metrics.descent())


def _wrapping() -> QTextOption:
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    return option
