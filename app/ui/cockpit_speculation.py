"""The cockpit's plots of how drafting goes: acceptance over time and by position, tokens a cycle, speed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PySide6.QtWidgets import QWidget

from app.reply_figures import ReplyFigures
from app.ui.cockpit_section import PairSection
from app.widgets.plot_positions import PositionPlot
from app.widgets.plot_time import Curve, TimePlot
from app.widgets.plot_tokens import TokensPlot
from engine.profile import break_even_acceptance, break_even_share
from engine.trend import TrendPoint

QUARTERS = ((0.0, "0"), (0.25, "25"), (0.5, "50"), (0.75, "75"), (1.0, "100"))


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The points of a trend as arrays; acceptance is NaN where there is none."""

    seconds: np.ndarray
    acceptance: np.ndarray
    speed: np.ndarray


def columns(points: tuple[TrendPoint, ...]) -> Columns:
    """One array a column."""
    rows = [(p.seconds, math.nan if p.acceptance is None else p.acceptance, p.speed) for p in points]
    return Columns(*np.array(rows, float).reshape(-1, 3).T.copy())


class AcceptanceSection(PairSection):
    """Acceptance over the last seconds, with the line below which drafting does not pay, and by position."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("acceptance", parent)
        self.set_names(self.tr("Acceptance"), self.tr("By draft position"))
        self.head.setToolTip(self.tr("Drafts that the full model accepted, of those it tested"))
        self.second_head.setToolTip(
            self.tr(
                "Share of the cycles whose first drafts, up to this one, were all accepted, with its 95 % band.\n"
                "A draft pays while its chance is above its cost at the present speed (the dashed line)."
            )
        )

    def build(self) -> None:
        self.over_time = TimePlot(
            self.tr("Acceptance over time"),
            [Curve(self.tr("acceptance"), "accepted_dot")],
            top=1.04,
            ticks=QUARTERS,
            line_label=self.tr("break-even"),
        )
        self.by_position = PositionPlot()
        self.set_plots(self.over_time, self.by_position)

    def show_figures(self, figures: ReplyFigures, trend: Columns, *, sums: bool) -> None:
        """Show a reply as it stands. sums: what is counted over all of it too, which moves slowly."""
        statistics = figures.statistics
        share = statistics.acceptance
        if not statistics.cycles:
            self.head.show_value("")
            self.over_time.clear(self.tr("no cycles yet"))
        elif share is None:
            self.head.show_value(None, self.tr("Nothing was drafted in this reply."))
            self.over_time.clear(self.tr("nothing drafted yet"))
        else:
            self.head.show_value(self.tr("{share} %").replace("{share}", f"{share * 100:.0f}"))
            self.over_time.show_data(trend.seconds, [trend.acceptance], break_even_acceptance(statistics))
        if sums:
            self.by_position.show_shares(figures.profile.positions, break_even_share(statistics))


class SpeedSection(PairSection):
    """Tokens a cycle as a histogram, and tokens a second against plain decoding as measured."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("speed", parent)
        self.set_names(self.tr("Tokens per cycle"), self.tr("tok/s"))
        self.head.setToolTip(self.tr("Share of the cycles that added 1, 2, … tokens to the reply, in per cent"))
        self.second_head.setToolTip(self.tr("Tokens a second without the reading of the prompt"))

    def build(self) -> None:
        self.tokens = TokensPlot()
        self.speed = TimePlot(
            self.tr("Speed over time"),
            [Curve(self.tr("speed"), "accent")],
            line_label=self.tr("plain, measured {value}"),
            unit=self.tr("tok/s"),
        )
        self.set_plots(self.tokens, self.speed)

    def show_figures(self, figures: ReplyFigures, trend: Columns, *, sums: bool) -> None:
        """Show a reply as it stands. sums: as of the section above."""
        statistics = figures.statistics
        mean, rate, plain = statistics.tokens_per_cycle, statistics.tokens_per_second, statistics.plain_seconds
        if sums:
            self.tokens.show_shares(figures.profile.token_shares, mean)
        if mean is None or rate is None:
            self.head.show_value("")
            self.second_head.show_value("")
            self.speed.clear(self.tr("no cycles yet"))
            return
        self.head.show_value(f"{mean:.1f}")
        self.second_head.show_value(f"{rate:.1f}")
        self.speed.show_data(trend.seconds, [trend.speed], 1 / plain if plain else None)
