"""The document of one reply: text appended token by token, formatted in place, with its spans beside it.

Lines keep their breaks. Very long paragraphs are laid out in pieces, split where a line ends, so that a token costs
the same at any length.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QPointF, QRectF
from PySide6.QtGui import QFontInfo, QFontMetricsF, QTextBlock, QTextCharFormat, QTextCursor, QTextDocument, QTextOption

from app.markdown.lines import Line, LineKind
from app.markdown.shown import displayed
from app.theme import PX_CONTROL, PX_TEXT, Theme, mono_font, ui_font
from app.widgets.code_colours import CodeColours
from app.widgets.line_dressing import dress_block
from app.widgets.reply_formats import ROLE, ReplyFormats
from app.widgets.reply_markdown import ReplyMarkdown
from app.widgets.token_segments import column_x
from app.widgets.token_spans import SpanKind, TokenSpans, utf16_length

THIN_SPACE = "\u2009"
LONG_LINE = 800  # characters of a paragraph above which its finished lines are split off
_LINE = Line(0, 0)
_END = Line(0, 0, LineKind.END)


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
        self._raw = False
        self._formats = ReplyFormats(self.defaultFont(), self._size)
        self.markdown = ReplyMarkdown(self, self._formats, self._on_code)
        self.colours = CodeColours(self, self.markdown.ghosts_of, self._formats.coloured)
        self._plain = QTextCharFormat()
        self._code = QTextCharFormat()
        self._code.setFont(mono_font(PX_CONTROL))
        self._ghost = QTextCharFormat()
        self._ghost.setFontStrikeOut(True)
        self.restart()

    # Appending

    def begin_batch(self) -> None:
        """Start a batch of appends."""
        self._split_long_line()
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        self._cursor.beginEditBlock()

    def end_batch(self) -> None:
        """Format and lay out what was appended since `begin_batch`."""
        if not self._raw:
            self.markdown.dress()
        self._cursor.endEditBlock()

    def append(self, kind: SpanKind, text: str, cycle: int = -1, place: int = 0) -> int:
        """Append a token's text; returns the index of its span."""
        for i, part in enumerate(text.split("\n")):
            if i:
                self._end_line()
            if part:
                in_code = self.markdown.in_code
                self._cursor.insertText(displayed(part), self._code if in_code else self._plain)
                if not self._raw:
                    self.markdown.add(part)
        return self.spans.append(kind, text, utf16_length(text), cycle, place)

    def append_ghost(self, text: str, next_text: str, cycle: int, shown: bool) -> int:
        """Append a rejected guess, in full or as a tick, before the text that replaces it; returns its span's index."""
        index = self.spans.append(SpanKind.GHOST, text, 0, cycle)
        length = self._insert_ghost(self._cursor, text, next_text) if shown else self._insert_tick(self._cursor)
        self.spans.resize({index: length})
        return index

    def restart(self, *, raw: bool = False) -> None:
        """Empty, as it was made. raw: what is appended from now on is set in the code font and takes no other form."""
        self.colours.clear()
        self.clear()
        self._raw = raw
        self._plain.setFont(mono_font(PX_CONTROL) if raw else self.defaultFont())
        self.spans = TokenSpans()
        self._cursor = QTextCursor(self)
        self.markdown.restart(self.spans)
        dress_block(self._cursor.block(), _LINE, self._formats.block(_LINE))

    def finish(self) -> None:
        """The last line is complete; empty lines after it take no room."""
        if self._raw:
            return
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        self._cursor.beginEditBlock()
        self.markdown.finish(self._cursor.block())
        block = self.lastBlock()
        while block.length() == 1 and block.previous().isValid() and block.userState() < LineKind.CODE:
            dress_block(block, _END, self._formats.block(_END))
            block = block.previous()
        self._cursor.endEditBlock()

    def set_still(self) -> None:
        """It is for a picture: code is coloured at once and wrapped, because nothing can be scrolled."""
        self._formats.wrapping = self.colours.at_once = True

    @property
    def raw(self) -> bool:
        """Whether tokens are shown as they are."""
        return self._raw

    def take_reformatted(self) -> int:
        """Number of the first block set in other formats since this was last asked; -1 where none was."""
        number, self.markdown.reformatted = self.markdown.reformatted, -1
        return number

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
        self.markdown.ghosts_changed([self.spans.starts[index] for index in indices])
        cursor.endEditBlock()

    def _insert_tick(self, cursor: QTextCursor) -> int:
        cursor.insertText(THIN_SPACE, self._plain)
        return 1

    def _insert_ghost(self, cursor: QTextCursor, text: str, following: str) -> int:
        """Insert a ghost with a thin space wherever it would touch a word; returns its length."""
        shown = displayed(text.replace("\n", "↵"))
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
        if not self._raw:
            self.markdown.end_line(self._cursor.block())
            self._cursor.movePosition(QTextCursor.MoveOperation.End)
        self._cursor.insertBlock()
        if self._raw:
            dress_block(self._cursor.block(), _LINE, self._formats.block(_LINE))
        else:
            self.markdown.next_line(self._cursor.block())

    def _on_code(self, block: QTextBlock) -> None:
        """A piece of code that ends with this block is complete."""
        self.colours.add(block)

    # Long paragraphs

    def _split_long_line(self) -> None:
        """Split the finished lines off a paragraph that has grown long."""
        block = self.lastBlock()
        if block.length() <= LONG_LINE:
            return
        self.documentLayout().blockBoundingRect(block)  # makes sure that the block is laid out
        lines = block.layout().lineCount()
        if lines < 2:
            if block.blockFormat().nonBreakableLines() and block.userState() == LineKind.CODE:
                form = block.blockFormat()
                form.setNonBreakableLines(False)
                QTextCursor(block).setBlockFormat(form)
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
            form = cursor.blockFormat()
            cursor.deleteChar()
            cursor.setBlockFormat(form)
        self.spans.join_lines()
        cursor.endEditBlock()

    # Looks

    def recolour(self, theme: Theme, ghosts: list[int]) -> None:
        """Take the colours of a theme; ghosts: the spans of those shown in full."""
        self._ghost.setForeground(theme.color("rejected"))
        self._formats.set_theme(theme)
        self._recolour_roles(theme)
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

    def _recolour_roles(self, theme: Theme) -> None:
        """Stretches that have a colour of their own take the theme's."""
        found = []
        block = self.begin()
        while block.isValid():
            for piece in block.textFormats():
                role = piece.format.property(ROLE)
                if role:
                    found.append((block.position() + piece.start, piece.length, role))
            block = block.next()
        if not found:
            return
        cursor = QTextCursor(self)
        cursor.beginEditBlock()
        for start, length, role in found:
            colour = QTextCharFormat()
            colour.setForeground(theme.color(role))
            cursor.setPosition(start)
            cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
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
    option.setTabStopDistance(4 * QFontMetricsF(mono_font(PX_CONTROL)).horizontalAdvance(" "))
    return option
