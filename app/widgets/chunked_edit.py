"""A plain text edit that stays quick with a megabyte in it, even on one line.

Qt lays out a line as a whole, in more than linear time; lines are therefore held in chunks, each a block, and the
blocks that continue a line are marked in their user state. `text` and copies join them again. Very many lines are put
in slice by slice, so that the window stays alive; whoever asks for the text gets all of it.
"""

from __future__ import annotations

from PySide6.QtCore import QMimeData, QTimer
from PySide6.QtGui import QTextCursor, QTextDocument
from PySide6.QtWidgets import QPlainTextEdit, QWidget

CHUNK = 1000
SLICE = 2000  # lines that are put in at once
_CONTINUES = 1
# Characters that a QTextDocument takes for its own structure.
_PLAIN = {0x2029: "\n", 0x00: None, 0xFDD0: "\ufffd", 0xFDD1: "\ufffd", 0xFFFC: "\ufffd"}


def _chunks(text: str) -> tuple[list[str], set[int]]:
    """The blocks of a text, and the numbers of those that continue a line."""
    lines = text.split("\n")
    if max(map(len, lines)) <= CHUNK:
        return lines, set()
    blocks: list[str] = []
    continued: set[int] = set()
    for line in lines:
        blocks.append(line[:CHUNK])
        for start in range(CHUNK, len(line), CHUNK):
            continued.add(len(blocks))
            blocks.append(line[start : start + CHUNK])
    return blocks, continued


def _text_between(document: QTextDocument, start: int, stop: int, chunked: bool) -> str:
    """The text from a position to before another, chunks joined."""
    # One conversion of the whole text: asking each block for its text costs the length of the document each time.
    units = document.toRawText().encode("utf-16-le", "surrogatepass")
    parts: list[bytes] = []
    block = document.findBlock(start)
    while chunked and block.isValid() and block.position() <= stop:
        position = block.position()
        if block.userState() == _CONTINUES and position > start:
            parts.append(units[2 * start : 2 * (position - 1)])
            start = position
        block = block.next()
    parts.append(units[2 * start : 2 * stop])
    return b"".join(parts).decode("utf-16-le", "ignore").replace("\u2029", "\n")


class ChunkedEdit(QPlainTextEdit):
    """See the module."""

    _chunked = False  # whether any line was ever held in chunks

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._waiting: tuple[list[str], set[int], int] = ([], set(), 0)  # blocks, those that continue, how many are in
        self._place: QTextCursor | None = None  # where the next slice belongs
        self._slices = QTimer(self)
        self._slices.setInterval(0)
        self._slices.timeout.connect(self._put_slice)

    @property
    def inserting(self) -> bool:
        """Whether some of a long text is still to be put in."""
        return self._slices.isActive()

    def text(self) -> str:
        """The whole text."""
        self._put_all()
        return _text_between(self.document(), 0, self.document().characterCount() - 1, self._chunked)

    def set_text(self, text: str) -> None:
        """Replace the text; line ends become line feeds. The undo history is kept."""
        self._slices.stop()
        cursor = self.textCursor()
        cursor.select(QTextCursor.SelectionType.Document)
        self.setTextCursor(cursor)
        self.insert_text(text)

    def insert_text(self, text: str) -> None:
        """Put text in place of the selection, or at the cursor."""
        self._put_all()
        text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_PLAIN)
        blocks, continued = _chunks(text)
        cursor = self.textCursor()
        cursor.beginEditBlock()
        cursor.removeSelectedText()
        self._waiting = blocks, continued, 0
        self._put(cursor)
        cursor.endEditBlock()
        self.setTextCursor(cursor)
        if self._waiting[2] < len(blocks):
            self._place = QTextCursor(cursor)
            self._place.setKeepPositionOnInsert(True)
            self._slices.start()

    def _put(self, cursor: QTextCursor) -> None:
        """Put in the next blocks of those that wait."""
        blocks, continued, done = self._waiting
        last = min(done + SLICE, len(blocks))
        before = cursor.blockNumber() + (done > 0)
        cursor.insertText(("\n" if done else "") + "\n".join(blocks[done:last]))
        for number in range(done, last) if continued else ():
            if number in continued:
                self._chunked = True
                self.document().findBlockByNumber(before + number - done).setUserState(_CONTINUES)
        self._waiting = blocks, continued, last

    def _put_slice(self) -> None:
        place = self._place
        if place is None:
            return
        place.setKeepPositionOnInsert(False)
        place.setPosition(place.position())  # its other end went along with what was typed
        place.joinPreviousEditBlock()
        self._put(place)
        place.endEditBlock()
        place.setKeepPositionOnInsert(True)  # what is typed at the end meanwhile comes after it
        if self._waiting[2] == len(self._waiting[0]):
            self._slices.stop()
            self._place = None

    def _put_all(self) -> None:
        while self._slices.isActive():
            self._put_slice()

    def extent(self, most: int | None = None) -> tuple[int, float]:
        """Displayed lines and their height in pixels; counting ends after `most` lines."""
        count, height = 0, 0.0
        block = self.document().firstBlock()
        while block.isValid() and (most is None or count < most):
            self.document().documentLayout().blockBoundingRect(block)  # lays the block out
            layout = block.layout()
            for i in range(layout.lineCount()):
                if most is None or count < most:
                    count += 1
                    height += layout.lineAt(i).height()
            block = block.next()
        return count, height

    def createMimeDataFromSelection(self) -> QMimeData:
        self._put_all()
        cursor = self.textCursor()
        data = QMimeData()
        start, stop = cursor.selectionStart(), cursor.selectionEnd()
        data.setText(_text_between(self.document(), start, stop, self._chunked))
        return data

    def insertFromMimeData(self, source: QMimeData) -> None:
        if source.hasText():
            self.insert_text(source.text())
            self.ensureCursorVisible()
