"""One memory as a bar, and the parts of it as a list: every fill has a name and a figure beside it."""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QHelpEvent, QPainter, QPainterPath, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.engine_words import in_user_words
from app.memory_parts import FREE, MemoryPart, MemoryPicture, size_text
from app.theme import PX_LABEL, RADIUS_BAR, RADIUS_WASH, Theme, active, ui_font
from app.widgets.painted import PaintedWidget

BAR_HEIGHT = 20
ROW_GAP = 4
COLUMN_GAP = 16
SWATCH = 8
NARROWEST = 1.5  # pixels: a part that is there is seen


def translated(text: str) -> str:
    """A name or a reason of `app.memory_parts`, or a reason of the engine's, in the user's language."""
    own = QCoreApplication.translate("Memory", text) if text else ""
    return in_user_words(own) if own == text else own


def figure_of(part: MemoryPart, figure: Callable[[float], str] = size_text) -> str:
    """The part's size, or n/a."""
    return figure(part.bytes) if part.bytes is not None else QCoreApplication.translate("Memory", "n/a")


def tooltip_of(part: MemoryPart, figure: Callable[[float], str] = size_text) -> str:
    """Name, size, what it is or why it is not known."""
    words = translated(part.help).replace("{reason}", translated(part.reason))
    if part.bytes is None:
        words = translated(part.reason)
    return f"{translated(part.name)}: {figure_of(part, figure)}" + (f"\n{words}" if words else "")


class MemoryBar(PaintedWidget):
    """Ours from the left, what others hold from the right, free between."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._picture_shown: MemoryPicture | None = None
        self.setFixedHeight(BAR_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Memory"))

    def set_picture(self, picture: MemoryPicture | None) -> None:
        """Show a memory; None where nothing is known of it yet."""
        if picture != self._picture_shown:
            self._picture_shown = picture
            parts = picture.parts if picture is not None else ()
            figure = picture.figure if picture is not None else size_text
            texts = (f"{translated(part.name)} {figure_of(part, figure)}" for part in parts)
            self.setAccessibleDescription(", ".join(texts))
            self.redraw()

    def pieces(self) -> list[tuple[MemoryPart, QRectF]]:
        """What is drawn where; parts that are not known, or nothing, are not."""
        picture = self._picture_shown
        if picture is None or not picture.total.value:
            return []
        scale = self.width() / picture.total.value
        ours = [part for part in picture.parts if part.bytes and not part.foreign and part.name != FREE]
        theirs = [part for part in picture.parts if part.bytes and part.foreign]
        result, left, right = [], 0.0, float(self.width())
        for part in theirs:
            width = max((part.bytes or 0.0) * scale, NARROWEST)
            right -= width
            result.append((part, QRectF(right, 0, width, self.height())))
        for part in ours:
            width = min(max((part.bytes or 0.0) * scale, NARROWEST), max(0.0, right - left))
            result.append((part, QRectF(left, 0, width, self.height())))
            left += width
        return result

    def draw(self, painter: QPainter) -> None:
        theme = active()
        shape = QPainterPath()
        shape.addRoundedRect(QRectF(self.rect()), RADIUS_WASH, RADIUS_WASH)
        painter.setClipPath(shape)
        painter.fillRect(self.rect(), theme.color("free"))
        for part, box in self.pieces():
            _fill(painter, box.adjusted(0, 0, -1 if box.width() > 3 else -0.5, 0), part, theme)
        budget = self.budget_at()
        if budget is not None:
            painter.fillRect(QRectF(budget - 1, 0, 2, self.height()), theme.color("text"))

    def budget_at(self) -> float | None:
        """Where the budget's mark stands; None without a budget, or with one beyond the end."""
        picture = self._picture_shown
        if picture is None or picture.budget is None or not picture.total.value:
            return None
        share = picture.budget / picture.total.value
        return share * self.width() if share <= 1 else None

    def sizeHint(self) -> QSize:
        return QSize(200, BAR_HEIGHT)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            found = [part for part, box in self.pieces() if box.contains(event.pos())]
            picture = self._picture_shown
            if not found and picture is not None:
                found = [part for part in picture.parts if part.name == FREE]
            _show_tooltip(event, found, self, picture.figure if picture is not None else size_text)
            return True
        return super().event(event)


class MemoryLegend(PaintedWidget):
    """The parts with name and figure, in two columns where there is room for two."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[MemoryPart, ...] = ()
        self._figure: Callable[[float], str] = size_text
        self.setFont(ui_font(PX_LABEL))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Parts of the memory"))

    def set_picture(self, picture: MemoryPicture | None) -> None:
        """Show the parts of a memory."""
        parts = picture.parts if picture is not None else ()
        self._figure = picture.figure if picture is not None else size_text
        if parts != self._parts:
            grown = len(parts) != len(self._parts)
            self._parts = parts
            self.setAccessibleDescription(", ".join(self.texts()))
            if grown:
                self._fit()
            self.redraw()

    def texts(self) -> list[str]:
        """Each row as it reads."""
        return [f"{translated(part.name)} {figure_of(part, self._figure)}" for part in self._parts]

    def columns(self) -> int:
        """Two, unless a row would not fit."""
        metrics = QFontMetricsF(self.font())
        widest = max((metrics.horizontalAdvance(text) for text in self.texts()), default=0.0)
        return 2 if 2 * (widest + SWATCH + 10) + COLUMN_GAP <= self.width() else 1

    def rows(self) -> list[tuple[MemoryPart, QRectF]]:
        """Each part with its box, column by column."""
        columns = self.columns()
        height = QFontMetricsF(self.font()).height() + ROW_GAP
        count = math.ceil(len(self._parts) / columns) or 1
        width = (self.width() - COLUMN_GAP * (columns - 1)) / columns
        return [
            (part, QRectF((i // count) * (width + COLUMN_GAP), (i % count) * height, width, height))
            for i, part in enumerate(self._parts)
        ]

    def draw(self, painter: QPainter) -> None:
        theme = active()
        painter.setFont(self.font())
        for part, box in self.rows():
            square = QRectF(box.left() + 0.5, box.center().y() - SWATCH / 2, SWATCH, SWATCH)
            _fill(painter, square, part, theme, rounded=True)
            painter.setPen(theme.color("text2"))
            words = box.adjusted(SWATCH + 6, 0, 0, 0)
            painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, translated(part.name))
            painter.setPen(theme.color("text" if part.bytes is not None else "text3"))
            painter.drawText(
                box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, figure_of(part, self._figure)
            )

    def sizeHint(self) -> QSize:
        boxes = [box for _, box in self.rows()]
        return QSize(200, math.ceil(max((box.bottom() for box in boxes), default=0.0)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        self.setFixedHeight(self.sizeHint().height())

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            found = [part for part, box in self.rows() if box.contains(event.pos())]
            _show_tooltip(event, found, self, self._figure)
            return True
        return super().event(event)


def _show_tooltip(event: QHelpEvent, parts: list[MemoryPart], widget: QWidget, figure: Callable[[float], str]) -> None:
    if parts:
        QToolTip.showText(event.globalPos(), tooltip_of(parts[0], figure), widget)
    else:
        QToolTip.hideText()


def _fill(painter: QPainter, box: QRectF, part: MemoryPart, theme: Theme, *, rounded: bool = False) -> None:
    """Solid in the part's colour; what others hold hatched, what is free empty."""
    painter.setPen(QPen(theme.color("line2"), 1) if rounded and part.role in ("free", "other") else Qt.PenStyle.NoPen)
    radius = RADIUS_BAR if rounded else 0
    painter.setBrush(theme.color(part.role))
    painter.drawRoundedRect(box, radius, radius)
    if part.foreign:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QBrush(theme.color("workspace"), Qt.BrushStyle.BDiagPattern))
        painter.drawRoundedRect(box, radius, radius)
