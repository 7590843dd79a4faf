"""A plain text edit that stays quick with a megabyte in it, even on one line.

Qt lays out a line as a whole, in more than linear time; lines are therefore held in chunks, each a block, and the
blocks that continue a line are marked in their user state. `text` and copies join them again.
"""

from __future__ import annotations

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QTextCursor, QTextDocument
from PySide6.QtWidgets import QPlainTextEdit

CHUNK = 1000
_CONTINUES = 1


def _chunks(text: str) -> tuple[list[str], set[int]]:
    """The blocks of a text, and the numbers of those that continue a line."""
    blocks: list[str] = []
    continued: set[int] = set()
    for line in text.split("\n"):
        blocks.append(line[:CHUNK])
        for start in range(CHUNK, len(line), CHUNK):
            continued.add(len(blocks))
            blocks.append(line[start : start + CHUNK])
    return blocks, continued


def text_between(document: QTextDocument, start: int, stop: int) -> str:
    """The text from a position to before another, chunks joined."""
    parts: list[str] = []
    block = document.findBlock(start)
    while block.isValid() and block.position() <= stop:
        if block.position() > start and block.userState() != _CONTINUES:
            parts.append("\n")
        # Python slices count code points, positions UTF-16 units: cut by units.
        units = block.text().encode("utf-16-le", "surrogatepass")
        first = max(start - block.position(), 0)
        parts.append(units[2 * first : 2 * (stop - block.position())].decode("utf-16-le", "ignore"))
        block = block.next()
    return "".join(parts)


class ChunkedEdit(QPlainTextEdit):
    """See the module."""

    def text(self) -> str:
        """The whole text."""
        return text_between(self.document(), 0, self.document().characterCount() - 1)

    def set_text(self, text: str) -> None:
        """Replace the text; line ends become line feeds. The undo history is kept."""
        cursor = self.textCursor()
        cursor.select(QTextCursor.SelectionType.Document)
        self.setTextCursor(cursor)
        self.insert_text(text)

    def insert_text(self, text: str) -> None:
        """Put text in place of the selection, or at the cursor."""
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2029", "\n").replace("\x00", "")
        blocks, continued = _chunks(text)
        cursor = self.textCursor()
        cursor.beginEditBlock()
        cursor.removeSelectedText()
        first = cursor.blockNumber()
        cursor.insertText("\n".join(blocks))
        for number in continued:
            self.document().findBlockByNumber(first + number).setUserState(_CONTINUES)
        cursor.endEditBlock()
        self.setTextCursor(cursor)

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
        cursor = self.textCursor()
        data = QMimeData()
        data.setText(text_between(self.document(), cursor.selectionStart(), cursor.selectionEnd()))
        return data

    def insertFromMimeData(self, source: QMimeData) -> None:
        if source.hasText():
            self.insert_text(source.text())
            self.ensureCursorVisible()
