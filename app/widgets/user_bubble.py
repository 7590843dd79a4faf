"""What the user said: a bubble at the right edge, as wide as its text and at most 560."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QEnterEvent, QPainter, QResizeEvent, QTextCursor, QTextOption
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.theme import PX_TEXT, RADIUS_BUBBLE, active, is_theme_change, ui_font
from app.widgets.chunked_edit import ChunkedEdit
from app.widgets.icon_button import QuietButton, TextButton
from app.widgets.sibling_pager import SiblingPager

MAX_WIDTH = 560
SHORT_CHARACTERS = 1500
SHORT_LINES = 12
OPEN_HEIGHT = 420
_PAD_X, _PAD_Y = 14, 8


class UserBubble(QWidget):
    """One message of the user. Long ones show their beginning, and on request all of it in a box that scrolls.

    Signals: edit_requested(); page_requested(step) for another version of it.
    """

    edit_requested = Signal()
    page_requested = Signal(int)

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = text
        self._short = _beginning(text)
        self._open = False
        self._body = _Body(self)
        self._more = TextButton("", "ghost", "chevron-down", self)
        self._more.clicked.connect(self._toggle)
        self._more.setVisible(self._short != text)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        self.pager = SiblingPager(self)
        self.pager.chosen.connect(self.page_requested)
        self.edit_button = QuietButton("edit", self.tr("Edit message"), self)
        self.edit_button.clicked.connect(self.edit_requested)
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addStretch(1)
        row.addWidget(self.pager, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.edit_button, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self._body)
        column.addLayout(row)
        column.addWidget(self._more, 0, Qt.AlignmentFlag.AlignRight)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._show()

    def text(self) -> str:
        """The whole message."""
        return self._text

    def is_open(self) -> bool:
        """True while a long message shows all its text."""
        return self._open

    def edit_with(self, editor: QWidget) -> None:
        """Show an editor in place of the message."""
        for part in (self._body, self._more, self.edit_button):
            part.hide()
        layout = self.layout()
        if layout is not None:
            layout.addWidget(editor)

    def end_edit(self) -> None:
        """Show the message again; the editor goes."""
        for editor in self.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
            if editor not in (self._body, self._more, self.edit_button, self.pager):
                editor.hide()
                editor.deleteLater()
        self._body.show()
        self.edit_button.show()
        self._more.setVisible(self._short != self._text)

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.edit_button.set_revealed(True)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.edit_button.set_revealed(False)

    def _toggle(self) -> None:
        self._open = not self._open
        self._show()

    def _show(self) -> None:
        whole = self._open or self._short == self._text
        self._body.set_text(self._text if whole else self._short + "…")
        size = self.tr("{count} characters").replace("{count}", f"{len(self._text):,}")
        all_of_it = self.tr("Show all")
        self._more.setText(self.tr("Show less") if self._open else f"{all_of_it} · {size}")
        self._more.set_icon_name("chevron-up" if self._open else "chevron-down")
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def _fit(self) -> None:
        beside = self.edit_button.width() + 4 + (self.pager.sizeHint().width() + 4 if self.pager.place() else 0)
        self._body.fit(min(MAX_WIDTH, max(self.width() - beside, 120)), scrolls=self._open)


def _beginning(text: str) -> str:
    """The text itself if it is short, else its first lines."""
    if len(text) <= SHORT_CHARACTERS and text.count("\n") < SHORT_LINES + 4:
        return text
    return "\n".join(text[:SHORT_CHARACTERS].split("\n")[:SHORT_LINES])


class _Body(ChunkedEdit):
    """The text on its rounded ground."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._scrolls = False
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setUndoRedoEnabled(False)
        self.setFont(ui_font(PX_TEXT))
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setTabChangesFocus(True)
        self.setCursorWidth(0)
        self.document().setDocumentMargin(0)
        self.setViewportMargins(_PAD_X, _PAD_Y, _PAD_X, _PAD_Y)
        self.viewport().setAutoFillBackground(False)
        self.setAccessibleName(self.tr("Your message"))

    def fit(self, width: int, scrolls: bool) -> None:
        """Take the size of the text; width: the most there is. scrolls: in a box of bounded height."""
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if scrolls else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.setVerticalScrollBarPolicy(policy)
        self._scrolls = scrolls
        if scrolls:
            self.setFixedSize(width, OPEN_HEIGHT)
            return
        self.moveCursor(QTextCursor.MoveOperation.Start)
        metrics = self.fontMetrics()
        widest = 0
        block = self.document().firstBlock()
        while block.isValid() and widest < width:
            widest = max(widest, metrics.horizontalAdvance(block.text()) + 3)
            block = block.next()
        self.setFixedWidth(min(width, max(widest, 8) + 2 * _PAD_X))
        self._fit_height()

    def _fit_height(self) -> None:
        self.setFixedHeight(math.ceil(self.extent()[1]) + 2 * _PAD_Y + 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width() and not self._scrolls:
            self._fit_height()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(active().color("raised"))
            painter.drawRoundedRect(QRectF(self.rect()), RADIUS_BUBBLE, RADIUS_BUBBLE)
            painter.end()
            return True
        return super().event(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event):
            self.update()
