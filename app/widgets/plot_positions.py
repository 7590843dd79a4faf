"""How often drafts are kept, by their position in the draft, against the line below which drafting does not pay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QWidget

from app.theme import Theme, active
from app.widgets.plot_frame import PlotFrame, color, line, place
from engine.profile import PositionShare

FEWEST = 4  # positions that the axis shows at least
TICKS = ((0.0, "0"), (0.5, "50"), (1.0, "100"))


class PositionPlot(PlotFrame):
    """Points with their 95 % band; those at or below the line are hollow."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setAccessibleName(self.tr("Acceptance by draft position"))
        self._positions: tuple[PositionShare, ...] = ()
        self._line: float | None = None
        self._low, self._high = pg.PlotCurveItem(), pg.PlotCurveItem()
        self._band = pg.FillBetweenItem(self._low, self._high)
        self._level = pg.PlotCurveItem()
        self._curve = pg.PlotCurveItem()
        self.points = pg.ScatterPlotItem(size=5, pxMode=True)
        for item in (self._low, self._high, self._band, self._level, self._curve, self.points):
            self.add(item)
        self._low.setPen(None)
        self._high.setPen(None)
        self.line_label = self.label()
        self._widest = 0
        self._widen(FEWEST)
        self.dress(active())
        self.set_empty(self.tr("no drafts yet"))

    def show_shares(self, positions: Sequence[PositionShare], line_at: float | None) -> None:
        """positions: from 1 on, without gaps. line_at: the share from which a draft pays, or None."""
        self._positions = tuple(positions)
        self._line = line_at if line_at is not None and line_at <= 1 else None
        if not positions:
            self.set_empty(self.tr("no drafts yet"))
        else:
            self._empty.hide()
        self._widen(max(FEWEST, len(positions)))
        places = np.array([share.position for share in positions], float)
        shares = np.array([share.share for share in positions], float)
        bands = np.array([share.band for share in positions], float).reshape(-1, 2)
        self._low.setData(places, bands[:, 0])
        self._high.setData(places, bands[:, 1])
        self._curve.setData(places, shares)
        self._show_points(places, shares)
        self._show_line()
        self.announce()

    @property
    def hollow(self) -> tuple[int, ...]:
        """Positions at which a draft costs more than it brings."""
        line_at = self._line
        return tuple(share.position for share in self._positions if line_at is not None and share.share <= line_at)

    @property
    def level(self) -> float | None:
        """Where the dashed line is."""
        return self._line

    def summary(self) -> str:
        parts = [f"{share.position}: {share.share * 100:.0f} %" for share in self._positions]
        if self._line is not None:
            parts.append(self.tr("break-even {share} %").replace("{share}", f"{self._line * 100:.0f}"))
        return ", ".join(parts)

    def _show_points(self, places: np.ndarray, shares: np.ndarray) -> None:
        theme, hollow = active(), set(self.hollow)
        filled, empty = theme.color("accepted_dot"), theme.color("surface")
        brushes = [pg.mkBrush(empty if int(place) in hollow else filled) for place in places]
        self.points.setData(places, shares, brush=brushes, pen=pg.mkPen(filled, width=1))

    def _show_line(self) -> None:
        if self._line is None:
            self._level.setData([], [])
            place(self.line_label, "", 0, 0)
            return
        self._level.setData([0, self._widest + 1], [self._line, self._line])
        self.line_label.setAnchor((0.0, 1.0 if self._line < 0.25 else 0.0))
        place(self.line_label, self.tr("break-even"), 0.45, self._line)

    def _widen(self, positions: int) -> None:
        if positions == self._widest:
            return
        self._widest = positions
        step = 1 if positions <= 8 else 2 if positions <= 16 else 4
        numbers = [(float(i), str(i)) for i in range(1, positions + 1, step)]
        self.set_axes((0.4, positions + 0.6), (0, 1.04), numbers, TICKS)

    def dress(self, theme: Theme) -> None:
        super().dress(theme)
        if not hasattr(self, "line_label"):
            return
        self._band.setBrush(color(theme, "accepted_dot", 60))
        self._curve.setPen(line(theme, "accepted_dot"))
        self._level.setPen(line(theme, "text2", dashed=True))
        self.line_label.setColor(theme.color("text2"))
        if self._positions:
            self.show_shares(self._positions, self._line)
