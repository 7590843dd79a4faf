"""What every plot shares: one pyqtgraph view in the window's colours, built once and then only given new data.

Importing this imports numpy and pyqtgraph; nothing that the first paint needs may do so.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QCoreApplication, QEvent, QPointF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPen, QResizeEvent
from PySide6.QtWidgets import QGraphicsGridLayout, QGraphicsItem, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.theme import PX_TICK, Theme, active, is_theme_change, ui_font
from app.widgets.abstract import AbstractWidget

HEIGHT = 104
LEFT, BOTTOM, TOP = 26, 16, 6
ANNOUNCE_CALLS = 50  # at ten updates a second, a description for screen readers every five

Ticks = Sequence[tuple[float, str]]


def color(theme: Theme, role: str, alpha: int = 255) -> QColor:
    """A colour role, see-through where alpha is below 255."""
    result = theme.color(role)
    result.setAlpha(alpha)
    return result


def line(theme: Theme, role: str, *, dashed: bool = False) -> QPen:
    """A cosmetic pen one pixel wide: wider ones cost a multiple."""
    pen = QPen(theme.color(role), 1, Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine)
    pen.setCosmetic(True)
    if dashed:
        pen.setDashPattern([3, 2])
    return pen


class PlotFrame(QWidget, metaclass=AbstractWidget):
    """A view with fixed axes, hairlines at the ticks, and words in the middle while there is nothing to show.

    Subclasses add their items in `__init__`, colour them in `dress` (called for every theme) and say in `summary` what
    a reader of the screen should hear.
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.view = pg.GraphicsView(self)
        self.view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.view.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.view.viewport().setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.view.setMinimumSize(0, 0)
        self.box = pg.ViewBox(enableMouse=False, enableMenu=False)
        self.axes = {side: pg.AxisItem(side) for side in ("left", "bottom")}
        self._hairlines = pg.PlotCurveItem(connect="pairs")
        self._calls = 0
        self._range = (0.0, 1.0, 0.0, 1.0)
        self._empty = QLabel(self)
        self._empty.setFont(ui_font(PX_TICK))
        self._empty.setTextFormat(Qt.TextFormat.PlainText)
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.view)
        self._lay_out()
        self.box.disableAutoRange()
        self._hairlines.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
        self.add(self._hairlines)

    def _lay_out(self) -> None:
        """Two axes and a box: pyqtgraph's own plot item has menus and forms besides, which take longer to make."""
        holder = pg.GraphicsWidget()
        grid = QGraphicsGridLayout()
        grid.setContentsMargins(0, TOP, 2, 0)
        grid.setSpacing(0)
        holder.setLayout(grid)
        grid.addItem(self.axes["left"], 0, 0)
        grid.addItem(self.box, 0, 1)
        grid.addItem(self.axes["bottom"], 1, 1)
        for axis in self.axes.values():
            axis.linkToView(self.box)
            axis.setPen(None)
            axis.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
            axis.setStyle(
                tickLength=0,
                tickAlpha=0,
                autoExpandTextSpace=False,
                hideOverlappingLabels=False,
                tickTextOffset=4,
                tickFont=ui_font(PX_TICK),
            )
        scale = max(1.0, QFontMetricsF(ui_font(PX_TICK)).height() / 13)
        self.axes["left"].setWidth(round(LEFT * scale))
        # Words below the plot may be of a script that is taller than the figures' font.
        words = QFontMetricsF(ui_font(PX_TICK)).boundingRect(QCoreApplication.translate("TimePlot", "now")).height()
        self.axes["bottom"].setHeight(math.ceil(BOTTOM * max(scale, words / 13)))
        self.setFixedHeight(round(HEIGHT * (1 + scale) / 2))
        self.view.setCentralItem(holder)

    def add(self, item: QGraphicsItem) -> None:
        """Put an item into the plot; the range never depends on it, so its bounds need not be kept."""
        self.box.addItem(item, ignoreBounds=True)

    def set_axes(self, x: tuple[float, float], y: tuple[float, float], x_ticks: Ticks, y_ticks: Ticks) -> None:
        """Ranges, and what is written at the axes; hairlines go through the ticks of the left one."""
        wanted = (*x, *y)
        self.axes["bottom"].setTicks([list(x_ticks)])
        self.axes["left"].setTicks([list(y_ticks)])
        if wanted != self._range:
            self._range = wanted
            self.box.setRange(xRange=x, yRange=y, padding=0)
        levels = np.repeat(np.array([value for value, _ in y_ticks], float), 2)
        self._hairlines.setData(np.tile(np.array(x, float), len(y_ticks)), levels)

    def label(self, anchor: tuple[float, float] = (0.0, 0.0)) -> pg.TextItem:
        """A few words inside the plot."""
        item = pg.TextItem("", anchor=anchor)
        item.setFont(ui_font(PX_TICK))
        item.setVisible(False)
        self.add(item)
        return item

    def set_empty(self, words: str | None) -> None:
        """Words where there is nothing to show, None where there is."""
        self._empty.setVisible(words is not None)
        if words is not None:
            self._empty.setText(words)
            self.announce(now=True)

    @property
    def empty_words(self) -> str:
        """What stands in the middle, "" while there are data."""
        return self._empty.text() if not self._empty.isHidden() else ""

    def announce(self, *, now: bool = False) -> None:
        """To be called after every update: every few seconds the summary becomes the accessible description."""
        self._calls += 1
        if now or self._calls >= ANNOUNCE_CALLS:
            self._calls = 0
            self.setAccessibleDescription(self.empty_words or self.summary())

    @abstractmethod
    def summary(self) -> str:
        """What the plot shows, in a sentence."""

    def dress(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        palette = self._empty.palette()
        palette.setColor(self._empty.foregroundRole(), theme.color("text3"))
        self._empty.setPalette(palette)
        self.view.setBackground(theme.color("surface"))
        self._hairlines.setPen(line(theme, "grid"))
        for axis in self.axes.values():
            axis.setTextPen(theme.color("text3"))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "_empty"):
            self.dress(active())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._empty.setGeometry(self.rect().adjusted(LEFT, 0, 0, -BOTTOM))


def place(item: pg.TextItem, words: str, x: float, y: float) -> None:
    """Show words at a place; costs nothing where both are as they were."""
    if item.toPlainText() != words:
        item.setText(words)
    if item.pos() != QPointF(x, y):
        item.setPos(x, y)
    item.setVisible(bool(words))


def nice_top(value: float) -> float:
    """The least of 1, 2, 3, 4, 5, 6, 8 and their multiples by ten that is not below `value`; its half is short too."""
    scale = 10.0 ** np.floor(np.log10(max(value, 1e-3)))
    for step in (1, 2, 3, 4, 5, 6, 8):
        if value <= step * scale * 1.0001:
            return float(step * scale)
    return float(10 * scale)
