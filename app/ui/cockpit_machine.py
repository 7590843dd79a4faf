"""The cockpit's folded sections: use of the processors, traffic on the card's bus, memory over time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtWidgets import QWidget

from app.memory_parts import size_text
from app.monitor import Sample
from app.sample_history import SampleHistory
from app.ui.cockpit_section import PairSection, Section
from app.widgets.curve_legend import CurveLegend
from app.widgets.memory_bar import translated
from app.widgets.plot_time import Curve, TimePlot
from engine.probes.reading import CardReading, Measure

SHARES = ((0.0, "0"), (0.5, "50"), (1.0, "100"))
LONGEST = 120


def of_card(pick: Callable[[CardReading], Measure]) -> Callable[[Sample], Measure | None]:
    """A figure of the card of a sample; None where the model is on none."""
    return lambda sample: None if sample.card is None else pick(sample.card)


class UseSection(PairSection):
    """How busy the model's card and the computer's processors are."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("use", parent)
        self.set_names(self.tr("GPU use"), self.tr("CPU use"))
        self.head.setToolTip(self.tr("Share of the time in which something ran on the card, in per cent"))
        self.second_head.setToolTip(self.tr("Share of all processors in use, and by this program, in per cent"))

    def build(self) -> None:
        busy, own = Curve(self.tr("all"), "cpu"), Curve(self.tr("this program"), "accent")
        self.card = TimePlot(
            self.tr("GPU use over time"), [Curve(self.tr("card"), "gpu")], top=1.02, ticks=SHARES, longest=LONGEST
        )
        self.host = TimePlot(
            self.tr("CPU use over time"),
            [busy, own],
            top=1.02,
            ticks=SHARES,
            longest=LONGEST,
        )
        legend = CurveLegend()
        legend.show_entries([(curve.role, curve.name) for curve in (busy, own)])
        self.set_plots(self.card, self.host)
        self.add_below(legend)

    def show_history(self, history: SampleHistory, cores: int) -> None:
        """cores: of the computer, so that what this program keeps busy becomes a share."""
        last = history.last
        if last is None:
            return
        seconds = history.seconds()
        busy = last.host.busy
        self.second_head.show_value(_per_cent(busy), translated(busy.reason))
        shares = [history.values(lambda s: s.host.busy), history.values(lambda s: s.host.own_cores, 1 / cores)]
        self.host.show_data(seconds, shares)
        if last.card is None:
            self.head.show_value(None, self.tr("The model is not on a card."))
            self.card.clear(self.tr("not on a card"))
            return
        self.head.show_value(_per_cent(last.card.busy), last.card.busy.reason, _heat(last.card))
        values = history.values(of_card(lambda card: card.busy))
        if np.isfinite(values).any():
            self.card.show_data(seconds, [values])
        else:
            self.card.clear(last.card.busy.reason)


class BusSection(Section):
    """What goes over the card's bus. Nothing does while every layer is resident."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("bus", parent)
        self.set_name(self.tr("PCIe traffic"))

    def build(self) -> None:
        curves = [Curve(self.tr("to the card"), "wait"), Curve(self.tr("from the card"), "cpu")]
        self.plot = TimePlot(
            self.tr("PCIe traffic over time"),
            curves,
            longest=LONGEST,
            unit=self.tr("MB/s"),
        )
        legend = CurveLegend()
        legend.show_entries([(curve.role, curve.name) for curve in curves])
        self.rows.addWidget(self.plot)
        self.rows.addWidget(legend)

    def show_history(self, history: SampleHistory) -> None:
        """Show the last samples."""
        last = history.last
        if last is None:
            return
        if last.card is None:
            reason = self.tr("The model is not on a card: nothing goes over a bus.")
            self.head.show_value(None, reason)
            self.plot.clear(reason)
            return
        received = last.card.received
        rate = None if received.value is None else f"{received.value / 1e6:.0f}"
        self.head.show_value(rate, received.reason, self.tr("MB/s to the card") if rate is not None else "")
        pairs = (lambda card: card.received), (lambda card: card.sent)
        values = [history.values(of_card(pick), 1e-6) for pick in pairs]
        if any(np.isfinite(data).any() for data in values):
            self.plot.show_data(history.seconds(), values)
        else:
            self.plot.clear(received.reason)


class HistorySection(Section):
    """Memory over the last two minutes: of this program, and of all."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("history", parent)
        self.set_name(self.tr("Memory over time"))

    def build(self) -> None:
        self._curves = [
            Curve(self.tr("in use"), "cpu"),
            Curve(self.tr("this program"), "accent"),
            Curve(self.tr("KV mapped"), "kv_used"),
        ]
        self.plot = TimePlot(
            self.tr("Memory over time"),
            self._curves,
            longest=LONGEST,
            line_label=self.tr("all there is"),
            unit=self.tr("GiB"),
        )
        self.legend = CurveLegend()
        self.rows.addWidget(self.plot)
        self.rows.addWidget(self.legend)

    def show_history(self, history: SampleHistory) -> None:
        """Show the last samples."""
        last = history.last
        if last is None:
            return
        gib = 1 / 2**30
        on_card = last.card is not None
        total = last.card.total if last.card is not None else last.host.total
        values = [
            history.values(_used(on_card), gib),
            history.values(_own(on_card), gib),
            history.values(lambda s: None if s.kv is None else Measure(float(s.kv.mapped)), gib),
        ]
        self.plot.show_data(history.seconds(), values, None if total.value is None else total.value * gib)
        named = zip(self._curves, values, strict=True)
        self.legend.show_entries([(curve.role, self._words(curve.name, data[-1])) for curve, data in named])

    def _words(self, name: str, value: float) -> str:
        figure = size_text(value * 2**30) if np.isfinite(value) else self.tr("n/a")
        return f"{name} {figure}"


def _used(on_card: bool) -> Callable[[Sample], Measure | None]:
    if on_card:
        return of_card(lambda card: card.used)

    def of_host(sample: Sample) -> Measure | None:
        total, available = sample.host.total.value, sample.host.available.value
        return None if total is None or available is None else Measure(total - available)

    return of_host


def _own(on_card: bool) -> Callable[[Sample], Measure | None]:
    return of_card(lambda card: card.own) if on_card else lambda sample: sample.host.own


def _per_cent(share: Measure) -> str | None:
    return None if share.value is None else f"{share.value * 100:.0f} %"


def _heat(card: CardReading) -> str:
    """Temperature and power where the card tells them."""
    parts = []
    if card.celsius.value is not None:
        parts.append(f"{card.celsius.value:.0f} °C")
    if card.watts.value is not None:
        parts.append(f"{card.watts.value:.0f} W")
    return " ".join(parts)
