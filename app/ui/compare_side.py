"""One side of a comparison: its clock, its speed, and its reply as it comes."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.theme import PX_CONTROL, PX_LABEL, SPACING_BLOCK, SPACING_INNER
from app.ui.panel import ToneLabel
from app.widgets.token_text import TokenText
from engine.records import CycleEvent, Event, Finished, Opening
from engine.statistics import ReplyStatistics

PX_CLOCK = 24


class CompareSide(QWidget):
    """What is played or written into it is counted; the clock is set by its owner, in seconds of decoding."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._statistics = ReplyStatistics()
        self.title = ToneLabel(title, "text2", PX_CONTROL, QFont.Weight.DemiBold)
        self.clock = ToneLabel("", "text", PX_CLOCK, QFont.Weight.DemiBold)
        self.clock.setAccessibleDescription(self.tr("Time of decoding: {title}").replace("{title}", title))
        self.speed = ToneLabel("", "text2", PX_LABEL)
        self.text = TokenText()
        self.text.setAccessibleName(title)
        self._area = _FollowingArea(self.text)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACING_INNER)
        for part in (self.title, self.clock, self.speed):
            column.addWidget(part)
        column.addSpacing(SPACING_BLOCK - SPACING_INNER)
        column.addWidget(self._area, 1)
        self.restart()

    @property
    def tokens(self) -> int:
        """Tokens shown."""
        return self._statistics.emitted

    def restart(self) -> None:
        """Empty, the clock at nought."""
        self._statistics = ReplyStatistics()
        self.text.restart()
        self.text.set_live(True)
        self.show_clock(0.0)
        self._show_speed()

    def append_many(self, events: list[Event]) -> None:
        """Show the next events of the reply."""
        cycles = [event for event in events if isinstance(event, CycleEvent)]
        for event in events:
            if isinstance(event, Opening):
                self.text.append_opening(event)
        self.text.append_cycles(cycles)
        for cycle in cycles:
            self._statistics = self._statistics.with_cycle(cycle.record)
        for event in events:
            if isinstance(event, Finished):
                self.text.append_tail(event.tail)
                self.text.set_live(False)
        self._show_speed()

    def hurry(self) -> None:
        """What comes until `settle` happened before."""
        self.text.set_hurried(True)

    def settle(self) -> None:
        """Rejected guesses as they end up."""
        self.text.set_hurried(False)
        self.text.settle_ghosts()

    def show_clock(self, seconds: float) -> None:
        """Seconds of decoding."""
        words = self.tr("{seconds} s").replace("{seconds}", f"{seconds:.1f}")
        if words != self.clock.text():
            self.clock.setText(words)

    def mark_token(self, place: int) -> None:
        """Outline the cycle that brought the token number `place` (from 0)."""
        self.text.mark_token(place)

    def _show_speed(self) -> None:
        speed = self._statistics.tokens_per_second
        parts = [self.tr("{count} tokens").replace("{count}", f"{self.tokens:,}")]
        if speed is not None:
            parts.append(self.tr("{speed} tok/s").replace("{speed}", f"{speed:.1f}"))
        self.speed.setText(" · ".join(parts))


class _FollowingArea(QScrollArea):
    """Scrolls with the end of the text, unless the user scrolled up."""

    def __init__(self, text: TokenText) -> None:
        super().__init__()
        self._follows = True
        holder = QWidget()
        rows = QVBoxLayout(holder)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.addWidget(text)
        rows.addStretch(1)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(holder)
        self.verticalScrollBar().rangeChanged.connect(self._on_range)
        self.verticalScrollBar().valueChanged.connect(self._on_value)

    @Slot(int, int)
    def _on_range(self, _: int, maximum: int) -> None:
        if self._follows:
            self.verticalScrollBar().setValue(maximum)

    @Slot(int)
    def _on_value(self, value: int) -> None:
        self._follows = value >= self.verticalScrollBar().maximum() - 4

    def sizeHint(self) -> QSize:
        return QSize(340, 280)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._on_range(0, self.verticalScrollBar().maximum())
