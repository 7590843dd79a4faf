"""What a reply's code and tables have on top: a button that copies code, a bar that scrolls what is too wide."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QObject, QPointF, Qt, Signal, SignalInstance, Slot
from PySide6.QtGui import QGuiApplication, QTextBlock, QTextBlockFormat, QTextCursor
from PySide6.QtWidgets import QScrollBar, QWidget

from app.markdown.lines import NOTHING, TABLE_LINES, LineKind
from app.widgets.icon_button import HIT_SMALL, IconButton
from app.widgets.reply_document import ReplyDocument
from app.widgets.reply_formats import CODE_PAD, INDENT
from app.widgets.token_segments import block_band

_BAR = 10


class CodeCards(QObject):
    """The cards of one reply, in order. scrolled(): text of one was moved sideways."""

    scrolled = Signal()

    def __init__(self, document: ReplyDocument, viewport: QWidget) -> None:
        super().__init__(viewport)
        self._document, self._viewport = document, viewport
        self._cards: list[CodeCard] = []
        self.shown = True  # False: there is nothing to press or to scroll

    @property
    def cards(self) -> list[CodeCard]:
        """What there is; read only."""
        return self._cards

    def sync(self, *, grown: bool = False, resized: bool = False) -> None:
        """Bring the cards to where the text is. grown: text was added at the end only, where few of them are.
        resized: their lines may have changed too."""
        if not self.shown:
            return
        markdown = self._document.markdown
        first = min(len(self._cards), max(markdown.settled_cards - 2, 0)) if grown else 0
        blocks = [] if self._document.raw else markdown.cards(first)
        while len(self._cards) > first + len(blocks):
            self._cards.pop().remove()
        for i, block in enumerate(blocks, first):
            if i == len(self._cards):
                self._cards.append(CodeCard(self._document, self._viewport, self.scrolled))
            self._cards[i].place(block, growing=i >= markdown.settled_cards - 1, resized=resized)

    def at(self, point: QPointF) -> CodeCard | None:
        """The card under a point of the viewport."""
        return next((card for card in self._cards if card.top <= point.y() <= card.bottom), None)


class CodeCard(QObject):
    """One card: its button and, where it is too wide, its bar."""

    def __init__(self, document: ReplyDocument, viewport: QWidget, scrolled: SignalInstance) -> None:
        super().__init__(viewport)
        self._document, self._viewport, self._scrolled = document, viewport, scrolled
        self._first = QTextBlock()
        self._known: tuple[int, float, int] | None = None
        self._measured, self._widest = 0, 0.0  # number of the last line measured, right end of the longest
        self.top = self.bottom = 0.0
        self.copy_button: IconButton | None = None
        self.bar: QScrollBar | None = None

    def place(self, first: QTextBlock, *, growing: bool, resized: bool) -> None:
        """Stand at the card that begins with this block. growing: lines may have come. resized: all may be new."""
        known = first.blockNumber(), first.layout().position().y(), self._viewport.width()
        if known == self._known and not growing and not resized:
            return
        if resized or self._known is None or known[0] != self._known[0]:
            self._measured, self._widest = first.blockNumber(), 0.0
        self._first, self._known = first, known
        last = first
        for last in self._blocks(max(self._measured, first.blockNumber())):  # those before are as wide as they were
            self._widest = max(self._widest, _width(last))
        self._measured = last.blockNumber()
        self.top, self.bottom = block_band(first)[0], block_band(last)[1] + last.blockFormat().bottomMargin()
        if first.userState() >= LineKind.CODE:
            self._place_button()
        elif self.copy_button is not None:
            self.copy_button.hide()
        self._place_bar()

    def remove(self) -> None:
        """Take it away."""
        for part in (self.copy_button, self.bar):
            if part is not None:
                part.hide()
                part.deleteLater()
        self.deleteLater()

    def _blocks(self, number: int = -1) -> Iterator[QTextBlock]:
        """The lines of the card, or those from block `number` on."""
        block = self._first if number < 0 else self._document.findBlockByNumber(number)
        table = self._first.userState() in TABLE_LINES
        yield block
        while block.userState() != LineKind.FENCE_CLOSE:
            block = block.next()
            kind = block.userState() if block.isValid() else LineKind.TEXT
            inside = kind in (LineKind.ROW, LineKind.HIDDEN) if table else kind in (LineKind.CODE, LineKind.FENCE_CLOSE)
            if not inside:
                return
            yield block

    # Copying

    def _place_button(self) -> None:
        if self.copy_button is None:
            self.copy_button = IconButton("copy", self.tr("Copy code"), self._viewport, HIT_SMALL)
            self.copy_button.setCursor(Qt.CursorShape.ArrowCursor)
            self.copy_button.clicked.connect(self.copy)
        self.copy_button.move(self._viewport.width() - HIT_SMALL - 4, round(self.top) + 2)
        self.copy_button.show()

    @Slot()
    def copy(self) -> None:
        """Put the code on the clipboard, as it was written, without what its list or quotation indents it by."""
        QGuiApplication.clipboard().setText(self.code())

    def code(self) -> str:
        """The source of the code."""
        lines: list[str] = []
        before = False
        for block in self._blocks():
            if block.userState() != LineKind.CODE:
                continue
            text = self._document.spans.source_between(block.position(), block.position() + block.length() - 1)
            hidden = len(block.text()) - len(block.text().lstrip(NOTHING))
            if before:
                lines[-1] += text
            else:
                lines.append(text[hidden:])
            before = self._document.markdown.continues(block)
        return "\n".join(lines)

    # Scrolling

    def _place_bar(self) -> None:
        width = self._viewport.width()
        over = self._widest - (width - CODE_PAD)
        if over <= 0:
            if self.bar is not None and not self.bar.isHidden():
                self.bar.setValue(0)
                self.bar.hide()
            return
        if self.bar is None:
            self.bar = QScrollBar(Qt.Orientation.Horizontal, self._viewport)
            self.bar.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Alt and the arrows reach every token
            self.bar.setCursor(Qt.CursorShape.ArrowCursor)
            self.bar.setAccessibleName(self.tr("Scroll sideways"))
            self.bar.setSingleStep(24)
            self.bar.valueChanged.connect(self._scroll)
        left = round(_indent(self._first.blockFormat())) + 4
        self.bar.setPageStep(max(width - left, 24))
        self.bar.setRange(0, round(over))
        self.bar.setGeometry(left, round(self.bottom) - _BAR - 1, width - left - 4, _BAR)
        self.bar.show()

    @Slot(int)
    def _scroll(self, value: int) -> None:
        cursor = QTextCursor(self._first)
        cursor.beginEditBlock()
        for block in self._blocks():
            form = block.blockFormat()
            if form.nonBreakableLines():
                form.setTextIndent(-value)
                cursor.setPosition(block.position())
                cursor.setBlockFormat(form)
        cursor.endEditBlock()
        self._document.markdown.note(self._first)
        self._scrolled.emit()

    def scroll_by(self, pixels: int) -> bool:
        """Scroll sideways; False where it has no bar or is at its end."""
        if self.bar is None or self.bar.isHidden():
            return False
        before = self.bar.value()
        self.bar.setValue(before + pixels)
        return self.bar.value() != before


def _indent(form: QTextBlockFormat) -> float:
    return float(form.property(INDENT) or 0)


def _pad(block: QTextBlock) -> float:
    return CODE_PAD if block.userState() >= LineKind.CODE else 0.0


def _width(block: QTextBlock) -> float:
    """Where a line that is not wrapped ends while it is not scrolled; 0 for another."""
    form, layout = block.blockFormat(), block.layout()
    if not form.nonBreakableLines() or not layout.lineCount():
        return 0.0
    return _indent(form) + _pad(block) + float(layout.lineAt(0).naturalTextWidth())
