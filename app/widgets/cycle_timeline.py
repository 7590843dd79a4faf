"""The cycles of a reply as a row of bars: above, what became of each draft; below, where the time went."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPen, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.theme import Theme, active
from app.widgets.painted import PaintedWidget
from engine.records import CycleRecord, TokenState

HEIGHT = 22
GAP = 3.0
MIN_BAR = 10.0
WIDE_BAR = 26.0  # mean width of a bar while there is room
FITTING = 60  # up to this many cycles share the width; more scroll
_DOTS_Y, _BAR_TOP, _BAR_HEIGHT = 4.0, 12.0, 8.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A cycle that is in view: its number and where it stands."""

    number: int
    left: float
    width: float


class CycleTimeline(PaintedWidget):
    """One bar a cycle, its width the cycle's wall time. Painting and laying out cost what is in view."""

    cycle_selected = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._records: list[CycleRecord] = []
        self._seconds = 0.0
        self._last: int | None = None  # number of the last cycle in view; None follows the newest
        self._selected: int | None = None
        self._wheel = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(self.tr("Cycle timeline"))

    def append(self, record: CycleRecord) -> None:
        """Add the newest cycle."""
        self._records.append(record)
        self._seconds += record.seconds
        self.redraw()

    def restart(self) -> None:
        """No cycles, as before the first."""
        self._records.clear()
        self._seconds = 0.0
        self._last = self._selected = None
        self.setAccessibleDescription("")
        self.redraw()

    def select(self, number: int | None) -> None:
        """Outline a cycle (its number in order of arrival) and bring it into view; None clears."""
        self._selected = number
        if number is not None:
            self.setAccessibleDescription(self.description(number))
            shown = [bar.number for bar in self.bars()]
            if shown and number > shown[-1]:
                self._show_up_to(number)
            while number < self.bars()[0].number:
                self._show_up_to(self.bars()[-1].number - 1)
        self.redraw()

    def record(self, number: int) -> CycleRecord:
        """The record of a cycle. Raises IndexError where there is none."""
        return self._records[number]

    def bars(self) -> list[Bar]:
        """The bars in view, from left to right."""
        count = len(self._records)
        if count == 0:
            return []
        last = count - 1 if self._last is None else self._last
        scale = self._scale()
        widths: list[tuple[int, float]] = []
        room = float(self.width()) - 2
        for number in range(last, -1, -1):
            width = max(self._records[number].seconds * scale, MIN_BAR if count > FITTING else 3.0)
            if room < width and widths:
                break
            widths.append((number, width))
            room -= width + GAP
        bars, left = [], 1.0
        for number, width in reversed(widths):
            bars.append(Bar(number, left, width))
            left += width + GAP
        return bars

    def _scale(self) -> float:
        """Pixels a second."""
        count = len(self._records)
        mean = WIDE_BAR
        if count > FITTING:
            mean = MIN_BAR * 1.3
        elif count:
            mean = min(WIDE_BAR, (self.width() - 2) / count - GAP)
        return mean * count / self._seconds if self._seconds > 0 else 0.0

    def description(self, number: int) -> str:
        """A cycle in words."""
        record = self._records[number]
        times = {
            "cycle": record.index + 1,
            "accepted": record.accepted,
            "drafted": record.drafted,
            "draft": f"{record.draft_seconds * 1000:.1f}",
            "verify": f"{record.verify_seconds * 1000:.1f}",
            "wait": f"{record.wait_seconds * 1000:.1f}",
            "emitted": len(record.emitted_ids),
        }
        if not record.drafted_ids:
            return self.tr("Cycle {cycle}: one token without a draft, {verify} ms.").format(**times)
        text = self.tr(
            "Cycle {cycle}: {accepted} of {drafted} drafts accepted, {emitted} tokens. "
            "Draft {draft} ms, verify {verify} ms, transfer wait {wait} ms."
        )
        return text.format(**times)

    # Painting

    def sizeHint(self) -> QSize:
        return QSize(200, HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, HEIGHT)

    def draw(self, painter: QPainter) -> None:
        theme = active()
        dots: dict[str, list[QPointF]] = defaultdict(list)
        rects: dict[str, list[QRectF]] = defaultdict(list)
        for bar in self.bars():
            _collect_outcomes(self._records[bar.number], bar, dots)
            _collect_times(self._records[bar.number], bar, rects)
            if bar.number == self._selected:
                painter.setPen(QPen(theme.color("accent"), 1.2))
                painter.drawRoundedRect(QRectF(bar.left - 1, 0.6, bar.width + 2, HEIGHT - 1.2), 4, 4)
        _paint_times(painter, rects, theme)
        _paint_outcomes(painter, dots, theme)
        if self.hasFocus():
            painter.setPen(QPen(theme.color("accent"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 4, 4)

    # Interaction

    def cycle_at(self, point: QPoint) -> int | None:
        """Number of the cycle under a point."""
        for bar in self.bars():
            if bar.left - GAP / 2 <= point.x() <= bar.left + bar.width + GAP / 2:
                return bar.number
        return None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        number = self.cycle_at(event.position().toPoint())
        if number is not None:
            self._choose(number)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None or not self._records:
            super().keyPressEvent(event)
            return
        current = self._selected if self._selected is not None else len(self._records) - 1
        self._choose(min(max(current + step, 0), len(self._records) - 1))

    def _choose(self, number: int) -> None:
        self.select(number)
        self.cycle_selected.emit(number)

    def wheelEvent(self, event: QWheelEvent) -> None:
        sideways = event.angleDelta().x()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            sideways = sideways or event.angleDelta().y()
        bars = self.bars()
        if not sideways or not bars or len(bars) == len(self._records):
            event.ignore()  # the conversation scrolls
            return
        self._wheel += sideways
        steps = int(self._wheel / 40)
        self._wheel -= steps * 40
        self._show_up_to(max(bars[-1].number - steps, len(bars) - 1))

    def _show_up_to(self, number: int) -> None:
        self._last = None if number >= len(self._records) - 1 else number
        self.redraw()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            number = self.cycle_at(event.pos())
            if number is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self.description(number), self)
            return True
        return super().event(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.redraw()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.redraw()


def _collect_outcomes(record: CycleRecord, bar: Bar, dots: dict[str, list[QPointF]]) -> None:
    roles = ["accepted" if i < record.agreed else "untested" for i in range(len(record.drafted_ids))]
    if record.agreed < len(record.full_probs):
        roles[record.agreed] = "rejected"
    if record.taken is not None:
        roles.append("accepted")
    if record.next_state is TokenState.BONUS:
        roles.append("bonus")
    if not roles:
        return
    step = min(4.5, (bar.width - 2) / len(roles))
    for i, role in enumerate(roles):
        dots[role].append(QPointF(bar.left + 2 + i * step, _DOTS_Y))


def _collect_times(record: CycleRecord, bar: Bar, rects: dict[str, list[QRectF]]) -> None:
    total = record.seconds or 1.0
    left = bar.left
    parts = (("draft", record.draft_seconds), ("verify", record.verify_seconds), ("wait", record.wait_seconds))
    for role, seconds in parts:
        width = bar.width * seconds / total
        if width > 0:
            rects[role].append(QRectF(left, _BAR_TOP, width, _BAR_HEIGHT))
        left += width


def _paint_times(painter: QPainter, rects: dict[str, list[QRectF]], theme: Theme) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    for role, boxes in rects.items():
        painter.setBrush(theme.color(role))
        painter.drawRects(boxes)
        if role == "wait":
            painter.setBrush(QBrush(theme.color("canvas"), Qt.BrushStyle.BDiagPattern))
            painter.drawRects(boxes)


def _paint_outcomes(painter: QPainter, dots: dict[str, list[QPointF]], theme: Theme) -> None:
    for kind, role in (("accepted", "accepted_dot"), ("untested", "line2")):
        painter.setPen(QPen(theme.color(role), 2.4, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawPoints(dots[kind])
    painter.setPen(QPen(theme.color("bonus"), 2.8, Qt.PenStyle.SolidLine, Qt.PenCapStyle.SquareCap))
    painter.drawPoints(dots["bonus"])
    painter.setPen(QPen(theme.color("correction"), 1.3))
    for point in dots["rejected"]:
        painter.drawLine(point + QPointF(-1.9, -1.9), point + QPointF(1.9, 1.9))
        painter.drawLine(point + QPointF(-1.9, 1.9), point + QPointF(1.9, -1.9))
