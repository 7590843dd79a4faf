"""Which token of a reply is pointed at: by the mouse after a moment, by the keyboard at once."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent

from app.widgets.token_spans import SpanKind
from app.widgets.token_text import TokenText

HOVER_MS = 250
STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
CYCLE_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class TokenPointer(QObject):
    """Watches the events of a TokenText.

    Signals: hovered(Span) once the mouse has rested on a token; left() when it is on none; reached(Span) as the
    keyboard moves (Alt and arrows: sideways by tokens, up and down by cycles); entered(Span) by Enter.
    """

    hovered = Signal(object)
    left = Signal()
    reached = Signal(object)
    entered = Signal(object)

    def __init__(self, text: TokenText) -> None:
        super().__init__(text)
        self._text = text
        self._resting = -1  # the span under the mouse
        self._point = QPoint()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(HOVER_MS)
        self._timer.timeout.connect(self._on_rested)
        text.viewport().setMouseTracking(True)
        text.viewport().installEventFilter(self)
        text.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.MouseMove and isinstance(event, QMouseEvent):
            self._on_mouse(event)
        elif event.type() in (QEvent.Type.Leave, QEvent.Type.Hide):
            self._leave()
        elif event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent) and watched is self._text:
            return self.press(event)
        elif event.type() == QEvent.Type.FocusOut and watched is self._text:
            self._timer.stop()
        return super().eventFilter(watched, event)

    # Mouse

    def _on_mouse(self, event: QMouseEvent) -> None:
        span = None if event.buttons() else self._text.token_at(event.position().toPoint())
        index = span.index if span is not None and span.kind is not SpanKind.TAIL else -1
        if index == self._resting:
            return
        if index < 0:
            self._leave()
            return
        self._resting = index
        self._timer.start()

    def _leave(self) -> None:
        self._timer.stop()
        if self._resting >= 0:
            self._resting = -1
            self.left.emit()

    @Slot()
    def _on_rested(self) -> None:
        if 0 <= self._resting < len(self._text.spans):
            self.hovered.emit(self._text.spans.span(self._resting))

    # Keyboard

    def press(self, event: QKeyEvent) -> bool:
        """Take a key that moves or opens; False for any other."""
        key = Qt.Key(event.key())
        plain = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if plain == Qt.KeyboardModifier.AltModifier and key in STEPS:
            self._go(self._beside(STEPS[key]))
        elif plain == Qt.KeyboardModifier.AltModifier and key in CYCLE_STEPS:
            self._go(self._in_cycle(CYCLE_STEPS[key]))
        elif plain == Qt.KeyboardModifier.NoModifier and key in ENTER and self._text.current is not None:
            self.entered.emit(self._text.spans.span(self._text.current))
        else:
            return False
        return True

    def _go(self, index: int | None) -> None:
        if index is not None:
            self._text.set_current(index)
            self.reached.emit(self._text.spans.span(index))

    def _beside(self, step: int) -> int | None:
        """The token before or after the current one; the last of the selected cycle, or of all, where none is."""
        spans, current = self._text.spans, self._text.current
        if current is None:
            cycle = self._text.selected_cycle
            return self._last() if cycle is None else self._first_of(cycle)
        index = current + step
        while 0 <= index < len(spans):
            if spans.kinds[index] is not SpanKind.TAIL:
                return index
            index += step
        return current

    def _in_cycle(self, step: int) -> int | None:
        """The first token of the cycle before or after the current one's."""
        current, last = self._text.current, len(self._text.cycles) - 1
        cycle = self._text.selected_cycle if current is None else self._text.spans.cycles[current]
        return self._first_of(last if cycle is None else min(max(cycle + step, 0), last))

    def _first_of(self, cycle: int) -> int | None:
        cycles = self._text.spans.cycles
        return next((index for index, number in enumerate(cycles) if number == cycle), None)

    def _last(self) -> int | None:
        kinds = self._text.spans.kinds
        return next((index for index in reversed(range(len(kinds))) if kinds[index] is not SpanKind.TAIL), None)
