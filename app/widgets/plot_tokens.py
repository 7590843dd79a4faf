"""How many tokens a cycle adds to the reply, as shares of all cycles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QWidget

from app.theme import Theme, active
from app.widgets.plot_frame import PlotFrame, line, nice_top, place

FEWEST = 4
HEADROOM = 1.22  # of the highest tick: the mean's words stand above the bars


class TokensPlot(PlotFrame):
    """A bar for 1, 2, ... tokens. The last, that of a draft accepted to its end, has the colour of the bonus token."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setAccessibleName(self.tr("Tokens per cycle"))
        self._shares: tuple[float, ...] = ()
        self._mean: float | None = None
        self._bars, self._top = 0, 0.0
        self.bars = pg.BarGraphItem(x=[1], height=[0], width=0.66, pen=None)
        self.add(self.bars)
        self._mark = pg.PlotCurveItem()
        self.add(self._mark)
        self.mean_label = self.label((1.0, 0.0))
        self._set_axes(FEWEST, 1.0)
        self.dress(active())
        self.set_empty(self.tr("no cycles yet"))

    def show_shares(self, shares: Sequence[float], mean: float | None) -> None:
        """shares: of the cycles that added 1, 2, ... tokens. mean: tokens a cycle."""
        self._shares, self._mean = tuple(shares), mean
        if not shares:
            self.bars.setOpts(x=[1], height=[0])
            self._mark.setData([], [])
            place(self.mean_label, "", 0, 0)
            self.set_empty(self.tr("no cycles yet"))
            return
        self._empty.hide()
        top = nice_top(max(shares))
        self._set_axes(max(FEWEST, len(shares)), top if self._top < top or self._top > 1.5 * top else self._top)
        self._draw_bars()
        self._draw_mean()
        self.announce()

    @property
    def shares(self) -> tuple[float, ...]:
        """The heights of the bars."""
        return self._shares

    def summary(self) -> str:
        parts = [f"{count}: {share * 100:.0f} %" for count, share in enumerate(self._shares, 1)]
        if self._mean is not None:
            parts.append(self.tr("mean {mean}").replace("{mean}", f"{self._mean:.1f}"))
        return ", ".join(parts)

    def _draw_bars(self) -> None:
        theme, count = active(), len(self._shares)
        brushes = [pg.mkBrush(theme.color("workspace"))] * (count - 1) + [pg.mkBrush(theme.color(self._last_role()))]
        self.bars.setOpts(x=np.arange(1, count + 1), height=np.array(self._shares), brushes=brushes)

    def _last_role(self) -> str:
        """One bar alone is plain decoding, which has no bonus."""
        return "bonus" if len(self._shares) > 1 else "workspace"

    def _draw_mean(self) -> None:
        if self._mean is None:
            self._mark.setData([], [])
            place(self.mean_label, "", 0, 0)
            return
        height = self._top * HEADROOM
        self._mark.setData([self._mean, self._mean], [0, height])
        right = self._mean < self._bars / 2
        self.mean_label.setAnchor((0.0 if right else 1.0, 0.0))
        place(self.mean_label, self.tr("mean {mean}").replace("{mean}", f"{self._mean:.1f}"), self._mean, height)

    def _set_axes(self, bars: int, top: float) -> None:
        if (bars, top) == (self._bars, self._top):
            return
        self._bars, self._top = bars, top
        step = 1 if bars <= 8 else 2 if bars <= 12 else 3
        ticks = [(value * top, f"{value * top * 100:.3g}") for value in (0, 0.5, 1)]
        numbers = [(float(i), str(i)) for i in range(1, bars + 1, step)]
        self.set_axes((0.4, bars + 0.6), (0, top * HEADROOM), numbers, ticks)

    def dress(self, theme: Theme) -> None:
        super().dress(theme)
        if not hasattr(self, "mean_label"):
            return
        self._mark.setPen(line(theme, "text2"))
        self.mean_label.setColor(theme.color("text"))
        if self._shares:
            self._draw_bars()
