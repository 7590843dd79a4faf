"""Where the user writes: a field that grows from one line to eight, chips, the context gauge, and Send or Stop."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.theme import PX_TEXT, RADIUS_BUBBLE, active, is_theme_change, ui_font
from app.ui.attachments import Attachments
from app.widgets.chunked_edit import ChunkedEdit
from app.widgets.context_gauge import ContextGauge
from app.widgets.icon_button import IconButton, TextButton

MAX_LINES = 8
NARROW = 520  # below this width chips keep their icon only
STATES = ("idle", "generating", "stopping", "unavailable")
_KEYBOARD_FOCUS = (
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
)


class Composer(QWidget):
    """The text stays until the owner calls `clear_text`, so that nothing is lost when a message cannot be sent."""

    send_requested = Signal(str)
    stop_requested = Signal()
    sampling_clicked = Signal()
    speculation_clicked = Signal()
    attach_clicked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = "unavailable"
        self._focus_ring = False
        self._labels = {"sampling": self.tr("Greedy"), "speculation": self.tr("Speculation auto")}
        self.attachments = Attachments(self)
        self.input = ComposerInput(self)
        self.attach_button = IconButton("attach", self.tr("Take text files along"), self)
        self.sampling_chip = TextButton("", "ghost", "dice", self)
        self.speculation_chip = TextButton("", "ghost", "bolt", self)
        self.gauge = ContextGauge(self)
        self.button = TextButton(self.tr("Send"), "primary", "send", self)
        self._lay_out()
        self.input.submitted.connect(self._on_submit)
        self.input.focus_changed.connect(self._on_focus)
        self.input.textChanged.connect(self._refresh)
        self.attachments.changed.connect(self._refresh)
        self.attach_button.clicked.connect(self.attach_clicked)
        self.button.clicked.connect(self._on_button)
        self.sampling_chip.clicked.connect(self.sampling_clicked)
        self.speculation_chip.clicked.connect(self.speculation_clicked)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self._show_labels()
        self.set_state("idle")

    def _lay_out(self) -> None:
        for widget in (self.sampling_chip, self.speculation_chip):
            widget.setFixedHeight(28)
        self.button.setFixedHeight(32)
        self.button.setMinimumWidth(self._button_width())
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.attach_button)
        row.addWidget(self.sampling_chip)
        row.addWidget(self.speculation_chip)
        row.addStretch(1)
        row.addWidget(self.gauge)
        row.addSpacing(4)
        row.addWidget(self.button)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 8, 8)
        column.setSpacing(8)
        column.addWidget(self.attachments)
        column.addWidget(self.input)
        column.addLayout(row)

    def _button_width(self) -> int:
        """Wide enough for each of its texts, so that it never moves."""
        texts = (self.tr("Send"), self.tr("Stop"), self.tr("Stopping…"))
        return max(self.button.fontMetrics().horizontalAdvance(text) for text in texts) + 16 + 6 + 28

    # State

    def state(self) -> str:
        """One of `STATES`."""
        return self._state

    def set_state(self, state: str) -> None:
        """idle: can send. generating: can stop. stopping: neither. unavailable: can write, not send."""
        if state not in STATES:
            raise ValueError(f"{state} is none of {', '.join(STATES)}")
        self._state = state
        texts = {"generating": self.tr("Stop"), "stopping": self.tr("Stopping…")}
        self.button.setText(texts.get(state, self.tr("Send")))
        self.button.set_icon_name("send" if state in ("idle", "unavailable") else "stop")
        self.button.setAccessibleName(self.button.text())
        placeholders = {
            "idle": self.tr("Write a message"),
            "unavailable": self.tr("Write a message. It can be sent when the model is ready."),
        }
        follow_up = self.tr("Write a follow-up. It can be sent when this reply ends.")
        self.input.setPlaceholderText(placeholders.get(state, follow_up))
        self._refresh()

    def _refresh(self) -> None:
        can_send = self._state == "idle" and self.has_text()
        self.button.setEnabled(can_send or self._state == "generating")

    def set_send_with_ctrl(self, ctrl: bool) -> None:
        """True: Ctrl+Enter sends and Enter makes a new line. False: Enter sends, Shift+Enter makes a new line."""
        self.input.send_with_ctrl = ctrl

    # Text

    def text(self) -> str:
        """What is written, and the files that go along with it."""
        files = [file.quoted() for file in self.attachments.files()]
        if not files:
            return self.input.text()
        written = self.input.text().rstrip()
        return "\n\n".join([written, *files] if written else files)

    def has_text(self) -> bool:
        """True when there is something to send."""
        return self.input.has_text() or bool(self.attachments.files())

    def set_text(self, text: str) -> None:
        """Replace what is written; files go along no more."""
        self.attachments.clear()
        self.input.set_text(text)

    def insert_text(self, text: str) -> None:
        """Put text at the cursor."""
        self.input.insert_text(text)

    def clear_text(self) -> None:
        """Empty the field."""
        self.set_text("")

    def focus_input(self) -> None:
        """Give the field the keyboard."""
        self.input.setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_submit(self) -> None:
        if self._state == "idle" and self.has_text():
            self.send_requested.emit(self.text())

    def _on_button(self) -> None:
        if self._state == "generating":
            self.stop_requested.emit()
        else:
            self._on_submit()

    # Chips and gauge

    def set_sampling_label(self, text: str) -> None:
        """Text of the sampling chip ("Greedy", "Temperature 0.7")."""
        self._labels["sampling"] = text
        self._show_labels()

    def set_speculation_label(self, text: str) -> None:
        """Text of the speculation chip ("Speculation auto")."""
        self._labels["speculation"] = text
        self._show_labels()

    def set_gauge(self, used: int, total: int) -> None:
        """Tokens of the context in use, and how many there are; a total of 0 hides the gauge."""
        self.gauge.set_gauge(used, total)

    def _show_labels(self) -> None:
        narrow = self.width() < NARROW
        for chip, name in ((self.sampling_chip, "sampling"), (self.speculation_chip, "speculation")):
            chip.setText("" if narrow else self._labels[name])
            chip.setToolTip(self._labels[name])
            chip.setAccessibleName(self._labels[name])

    # Looks

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_labels()

    def _on_focus(self, by_keyboard: bool) -> None:
        self._focus_ring = by_keyboard
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = active()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("accent"), 2) if self._focus_ring else QPen(theme.color("line2"), 1))
        painter.setBrush(theme.color("input"))
        inset = 1.0 if self._focus_ring else 0.5
        box = QRectF(self.rect()).adjusted(inset, inset, -inset, -inset)
        painter.drawRoundedRect(box, RADIUS_BUBBLE, RADIUS_BUBBLE)
        painter.end()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event):
            self.update()


class ComposerInput(ChunkedEdit):
    """The field. Enter is ignored while an input method composes: it confirms the candidate."""

    submitted = Signal()
    focus_changed = Signal(bool)  # True: it has the focus and got it from the keyboard

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.send_with_ctrl = False
        self._composing = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFont(ui_font(PX_TEXT))
        self.document().setDocumentMargin(0)
        self.viewport().setAutoFillBackground(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabChangesFocus(True)
        self.setAccessibleName(self.tr("Message"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.textChanged.connect(self._fit)
        self._fit()

    def has_text(self) -> bool:
        """True when there is something to send."""
        return bool(self.document().toRawText().strip())

    def _fit(self) -> None:
        lines, height = self.extent(MAX_LINES + 1)
        if lines > MAX_LINES:
            height = height * MAX_LINES / lines
        off, needed = Qt.ScrollBarPolicy.ScrollBarAlwaysOff, Qt.ScrollBarPolicy.ScrollBarAsNeeded
        self.setVerticalScrollBarPolicy(needed if lines > MAX_LINES else off)
        self.setFixedHeight(math.ceil(max(height, self.fontMetrics().lineSpacing())) + 4)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
            return
        event.accept()
        if self._composing:
            return
        ctrl = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        sends = ctrl if self.send_with_ctrl else not shift
        if sends:
            self.submitted.emit()
        else:
            self.textCursor().insertBlock()
            self.ensureCursorVisible()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit(event.reason() in _KEYBOARD_FOCUS)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._composing = False  # the input method gives up what was not confirmed
        self.focus_changed.emit(False)
