"""A curve or several over the last seconds, with a dashed line to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QWidget

from app.theme import Theme, active
from app.widgets.plot_frame import PlotFrame, Ticks, line, nice_top, place

SPANS = (10, 30, 60, 120)
LABEL_SHARE = 0.18  # of the height, which the words at the line take


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve: its name for summaries and its colour role."""

    name: str
    role: str


def span_of(seconds: float) -> int:
    """The least of the usual spans that shows everything; the longest where none does."""
    return next((span for span in SPANS if seconds <= span), SPANS[-1])


class TimePlot(PlotFrame):
    """Seconds run from left to right and end "now". The left axis is fixed, or grows to a round number.

    top: the highest value; None lets the axis grow with the data.
    """

    def __init__(
        self,
        name: str,
        curves: Sequence[Curve],
        parent: QWidget | None = None,
        *,
        top: float | None = None,
        bottom: float = 0.0,
        ticks: Ticks = (),
        longest: int = 60,
        line_label: str = "",
        unit: str = "",
    ) -> None:
        super().__init__(name, parent)
        self._curves = list(curves)
        self._fixed_top, self._bottom, self._ticks = top, bottom, ticks
        self._longest = longest
        self._line_words, self._unit = line_label, unit
        self._line_value: float | None = None
        self._level_place: float | None = None  # where the line is drawn; None draws it anew
        self._last: list[float | None] = [None] * len(curves)
        self._top, self._span = 0.0, 0
        self._level = pg.PlotCurveItem()
        self.add(self._level)
        self.curves = [pg.PlotCurveItem(connect="finite", skipFiniteCheck=False) for _ in curves]
        for curve in self.curves:
            self.add(curve)
        self.line_label = self.label()
        self._set_axes(SPANS[0], top or 1.0)
        self.dress(active())
        self.set_empty(self.tr("no cycles yet"))

    def show_data(
        self, seconds: np.ndarray, values: Sequence[np.ndarray], level: float | None = None, *, now: float | None = None
    ) -> None:
        """seconds: ascending; values: one array a curve, NaN where there is none. level: the dashed line.

        now: the right end, the last of `seconds` unless given.
        """
        if not len(seconds):
            return
        end = float(seconds[-1]) if now is None else now
        span = min(span_of(end - float(seconds[0])), self._longest)
        top = self._fixed_top or self._top_for(values, level)
        if (span, top) != (self._span, self._top):
            self._set_axes(span, top)
            self._level_place = None
        ago = seconds - end
        for number, (curve, data) in enumerate(zip(self.curves, values, strict=True)):
            curve.setData(ago, data)
            self._last[number] = float(data[-1]) if np.isfinite(data[-1]) else None
        self._show_level(level)
        self._empty.hide()
        self.announce()

    def clear(self, words: str) -> None:
        """Nothing to show, and why."""
        for number, curve in enumerate(self.curves):
            curve.setData([], [])
            self._last[number] = None
        self._show_level(None)
        self.set_empty(words)

    @property
    def level(self) -> float | None:
        """Where the dashed line is."""
        return self._line_value

    def summary(self) -> str:
        parts = [
            self.tr("{name} {value}").replace("{name}", curve.name).replace("{value}", self._words(value))
            for curve, value in zip(self._curves, self._last, strict=True)
            if value is not None
        ]
        if self._line_value is not None and self._line_words:
            parts.append(self._line_text(self._line_value))
        return ", ".join(parts) or self.tr("nothing measured")

    def _words(self, value: float) -> str:
        return f"{value:.3g} {self._unit}".strip()

    def _top_for(self, values: Sequence[np.ndarray], level: float | None) -> float:
        """A round number above everything; lower again only when the data fill little of it."""
        peaks = [float(np.nanmax(data)) for data in values if np.isfinite(data).any()]
        wanted = nice_top(max([*peaks, level or 0.0, 1e-3]) * 1.05)
        return self._top if wanted <= self._top < 2 * wanted else wanted

    def _set_axes(self, span: int, top: float) -> None:
        self._span, self._top = span, top
        middle = top / 2
        ticks = self._ticks or ((0.0, "0"), (middle, f"{middle:.3g}"), (top, f"{top:.3g}"))
        start = self.tr("−{seconds} s").replace("{seconds}", str(span))
        self.set_axes((-span, 0), (self._bottom, top), ((-span * 0.9, start), (-span * 0.1, self.tr("now"))), ticks)

    def _show_level(self, level: float | None) -> None:
        """The dashed line and its words, which stand below it unless it runs along the bottom."""
        if level is not None and not self._bottom <= level <= self._top:
            level = None
        self._line_value = level
        if level is None:
            self._level_place = None
            self._level.setData([], [])
            place(self.line_label, "", 0, 0)
            return
        if level == self._level_place:
            return
        self._level_place = level
        self._level.setData([-SPANS[-1], 0], [level, level])
        low = level < self._bottom + (self._top - self._bottom) * LABEL_SHARE
        self.line_label.setAnchor((0.0, 1.0 if low else 0.0))
        place(self.line_label, self._line_text(level), -self._span * 0.98, level)

    def _line_text(self, level: float) -> str:
        return self._line_words.replace("{value}", f"{level:.1f}")

    def dress(self, theme: Theme) -> None:
        super().dress(theme)
        if not hasattr(self, "line_label"):
            return
        for curve, item in zip(self._curves, self.curves, strict=True):
            item.setPen(line(theme, curve.role))
        self._level.setPen(line(theme, "text2", dashed=True))
        self.line_label.setColor(theme.color("text2"))
