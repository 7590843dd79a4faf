"""The layers of the model from left to right: where each is, and how much of it the last cycles' drafts computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QHelpEvent, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.layer_parts import DraftShare, LayerPlace, Place, draft_shares, layer_places, skipped
from app.theme import PX_CAPTION, PX_TICK, Theme, active, ui_font
from app.widgets.painted import PaintedWidget
from engine.offload.plan import Plan
from engine.records import CycleRecord, ModelInfo

ROW, SLICE, SLICES = 10, 8, 4
GAP, ROW_GAP = 1, 4
LEGEND_GAP = 14


class LayerMap(PaintedWidget):
    """Three rows: residency, the draft's attention, the draft's MLP in the last four cycles (newest last).

    The fuller a cell, the more of the layer the draft computes; a sub-layer that it leaves out is crossed through.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._info: ModelInfo | None = None
        self._places: tuple[LayerPlace, ...] = ()
        self._cycles: deque[CycleRecord] = deque(maxlen=SLICES)
        self._chosen: CycleRecord | None = None
        self._drawn: object = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Layer map"))
        self._fit()

    def set_model(self, info: ModelInfo | None, plan: Plan | None = None) -> None:
        """The model whose layers are shown, None for none; plan: where its parts lie, None where all are together."""
        places = layer_places(info, plan) if info is not None else ()
        if info != self._info:
            self._info, self._places = info, places
            self.clear()
            self._fit()
        elif places != self._places:
            self._places = places
            self._refresh()

    def show_cycles(self, records: Iterable[CycleRecord]) -> None:
        """The newest cycles, oldest first. Paints anew only where they look different from those before."""
        self._cycles = deque(records, maxlen=SLICES)
        self._refresh()

    def clear(self) -> None:
        """No cycles, as before the first."""
        self._cycles.clear()
        self._chosen = None
        self._refresh()

    def choose(self, record: CycleRecord | None) -> None:
        """Show the draft of one cycle (that of a token pointed at) in place of the last ones; None for those again."""
        if record is not self._chosen:
            self._chosen = record
            self._refresh()

    def _refresh(self) -> None:
        look = self._info, self._places, tuple((record.recipe, bool(record.drafted_ids)) for record in self.shown())
        if look != self._drawn:
            self._drawn = look
            self.setAccessibleDescription(self.summary())
            self.redraw()

    def shown(self) -> list[CycleRecord]:
        """The cycles of the MLP row, oldest first."""
        return list(self._cycles) if self._chosen is None else [self._chosen]

    @property
    def newest(self) -> CycleRecord | None:
        """The cycle of the attention row: the chosen one, or the last that drafted."""
        return next((record for record in reversed(self.shown()) if record.drafted_ids), None)

    def summary(self) -> str:
        """The map in words."""
        if self._info is None:
            return self.tr("no model")
        return ", ".join(f"{words} {count}" for words, _, count in self._legend())

    # Geometry

    def _label_width(self) -> float:
        metrics = QFontMetricsF(ui_font(PX_CAPTION))
        return max(metrics.horizontalAdvance(words) for words in self._row_names()) + 8

    def _row_names(self) -> tuple[str, str, str]:
        return self.tr("where"), self.tr("attn"), self.tr("MLP")

    def _tops(self) -> tuple[float, float, float, float]:
        """Tops of the three rows and of what stands below them."""
        attention = ROW + ROW_GAP
        mlp = attention + ROW + ROW_GAP
        return 0.0, float(attention), float(mlp), float(mlp + SLICES * SLICE + 2)

    def _cell_left(self, layer: int) -> float:
        left = self._label_width()
        return left + (self.width() - left) * layer / max(1, len(self._places))

    def layer_at(self, point: QPoint) -> int | None:
        """The layer under a point, from 0."""
        if not self._places or point.x() < self._label_width() or point.y() >= self._tops()[3]:
            return None
        width = self.width() - self._label_width()
        return min(int((point.x() - self._label_width()) / width * len(self._places)), len(self._places) - 1)

    def sizeHint(self) -> QSize:
        ticks = QFontMetricsF(ui_font(PX_TICK)).height()
        legend = QFontMetricsF(ui_font(PX_CAPTION)).height()
        return QSize(200, round(self._tops()[3] + ticks + 4 + legend))

    def _fit(self) -> None:
        self.setFixedHeight(self.sizeHint().height())

    # Painting

    def draw(self, painter: QPainter) -> None:
        theme = active()
        self._paint_names(painter, theme)
        if self._info is None:
            return
        where, attention, mlp, below = self._tops()
        for layer, place in enumerate(self._places):
            _paint_place(painter, self._cell(layer, where, ROW / 2), place.attention, theme)
            _paint_place(painter, self._cell(layer, where + ROW / 2, ROW / 2), place.mlp, theme)
        newest = self.newest
        shares = draft_shares(newest, self._info.layers) if newest is not None else None
        self._paint_row(painter, theme, attention, ROW, [share.attention * share.inputs for share in shares or ()])
        cycles = self.shown()
        for number in range(SLICES):
            record = cycles[number - SLICES + len(cycles)] if number >= SLICES - len(cycles) else None
            found: tuple[DraftShare, ...] | None = None
            if record is not None:
                found = draft_shares(record, self._info.layers)
            fills = [share.mlp * share.inputs for share in found or ()]
            self._paint_row(painter, theme, mlp + number * SLICE, SLICE - GAP, fills)
        self._paint_ticks(painter, theme, below)
        self._paint_legend(painter, theme)

    def _cell(self, layer: int, top: float, height: float) -> QRectF:
        left, right = round(self._cell_left(layer)), round(self._cell_left(layer + 1))
        return QRectF(left, top, max(1, right - left - GAP), height)

    def _paint_row(self, painter: QPainter, theme: Theme, top: float, height: float, fills: list[float]) -> None:
        """One cell a layer; without fills (nothing was drafted) empty ones."""
        for layer in range(len(self._places)):
            box = self._cell(layer, top, height)
            fill = fills[layer] if fills else None
            painter.setPen(Qt.PenStyle.NoPen)
            if fill is None:
                painter.fillRect(box, theme.color("free"))
            elif fill > 0:
                painter.fillRect(box, density(theme, fill))
            else:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(theme.color("line2"), 1))
                inner = box.adjusted(0.5, 0.5, -0.5, -0.5)
                painter.drawRect(inner)
                painter.drawLine(inner.bottomLeft(), inner.topRight())

    def _paint_names(self, painter: QPainter, theme: Theme) -> None:
        painter.setFont(ui_font(PX_CAPTION))
        painter.setPen(theme.color("text3"))
        tops = self._tops()
        for words, top, height in zip(self._row_names(), tops, (ROW, ROW, SLICES * SLICE), strict=False):
            box = QRectF(0, top - 6, self._label_width(), height + 12)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, words)

    def _paint_ticks(self, painter: QPainter, theme: Theme, top: float) -> None:
        painter.setFont(ui_font(PX_TICK))
        painter.setPen(theme.color("text3"))
        height = QFontMetricsF(painter.font()).height()
        for layer in tick_layers(len(self._places)):
            middle = (self._cell_left(layer) + self._cell_left(layer + 1)) / 2
            left = min(max(middle - 20, self._label_width() - 16), self.width() - 40.0)
            side = Qt.AlignmentFlag.AlignHCenter if left == middle - 20 else Qt.AlignmentFlag.AlignRight
            painter.drawText(QRectF(left, top, 40, height), side, str(layer + 1))

    def _legend(self) -> list[tuple[str, str, int]]:
        """Words, colour role and how many."""
        places = [place.whole for place in self._places]
        names = ((self.tr("GPU"), Place.CARD), (self.tr("streamed"), Place.STREAMED), (self.tr("CPU"), Place.CPU))
        rows = [(words, place.value, places.count(place)) for words, place in names]
        newest = self.newest
        left_out = skipped(newest, len(self._places)) if newest is not None else 0
        shown = [row for row in rows if row[2]]
        return [*shown, (self.tr("skipped"), "", left_out)] if left_out else shown

    def _paint_legend(self, painter: QPainter, theme: Theme) -> None:
        painter.setFont(ui_font(PX_CAPTION))
        metrics = QFontMetricsF(painter.font())
        middle = self.height() - metrics.height() / 2
        x = 0.5
        for words, role, count in self._legend():
            square = QRectF(x, middle - 4, 8, 8)
            painter.setPen(Qt.PenStyle.NoPen if role else QPen(theme.color("line2"), 1))
            painter.setBrush(theme.color(role) if role else QBrush(Qt.BrushStyle.NoBrush))
            painter.drawRoundedRect(square, 2, 2)
            if role == Place.STREAMED.value:
                painter.setBrush(QBrush(theme.color("surface"), Qt.BrushStyle.BDiagPattern))
                painter.drawRoundedRect(square, 2, 2)
            for text, tone, gap in ((words, "text2", 5), (str(count), "text", LEGEND_GAP)):
                painter.setPen(theme.color(tone))
                width = metrics.horizontalAdvance(text)
                left = x + (13 if tone == "text2" else 0)
                painter.drawText(QRectF(left, middle - 10, width + 2, 20), Qt.AlignmentFlag.AlignVCenter, text)
                x = left + width + gap
        self._paint_ramp(painter, theme, middle)

    def _paint_ramp(self, painter: QPainter, theme: Theme, middle: float) -> None:
        """Least to most of a layer, at the right."""
        for step in range(8):
            painter.fillRect(QRectF(self.width() - 40 + step * 5, middle - 4, 5, 8), density(theme, (step + 1) / 8))

    # Figures

    def text_of(self, layer: int) -> str:
        """A layer in words, as its tooltip."""
        if self._info is None:
            return ""
        lines = [self._place_text(layer)]
        newest = self.newest
        shares = draft_shares(newest, self._info.layers) if newest is not None else None
        if newest is None or shares is None:
            return "\n".join([*lines, self.tr("No draft yet")])
        share = shares[layer]
        lines.append(self.tr("Draft, cycle {cycle}:").replace("{cycle}", str(newest.index + 1)))
        lines.append(self._share_text(self.tr("attention"), self.tr("heads"), share.attention))
        lines.append(self._share_text(self.tr("MLP"), self.tr("neurons"), share.mlp))
        words = self.tr("{inputs} % of the input channels, {bits}-bit weights")
        lines.append(words.replace("{inputs}", f"{share.inputs * 100:.0f}").replace("{bits}", _bits(newest)))
        return "\n".join(lines)

    def _place_text(self, layer: int) -> str:
        place = self._places[layer]
        words = {
            Place.CARD: self.tr("on the GPU"),
            Place.STREAMED: self.tr("brought in for every full pass"),
            Place.CPU: self.tr("in RAM, computed by the CPU"),
        }
        if place.attention is place.mlp:
            text = self.tr("Layer {layer}: {place}").replace("{place}", words[place.mlp])
        else:
            text = self.tr("Layer {layer}: attention {first}, MLP {second}")
            text = text.replace("{first}", words[place.attention]).replace("{second}", words[place.mlp])
        return text.replace("{layer}", str(layer + 1))

    def _share_text(self, part: str, units: str, share: float) -> str:
        if share <= 0:
            return self.tr("{part}: left out").replace("{part}", part)
        words = self.tr("{part}: {share} % of the {units}").replace("{part}", part).replace("{units}", units)
        return words.replace("{share}", f"{share * 100:.0f}")

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            layer = self.layer_at(event.pos())
            if layer is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self.text_of(layer), self)
            return True
        return super().event(event)


def _paint_place(painter: QPainter, box: QRectF, place: Place, theme: Theme) -> None:
    """Solid in the place's colour; streamed hatched, and in high contrast the CPU dotted: in grey it is like a card."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color(place.value))
    painter.drawRect(box)
    pattern = {Place.STREAMED: Qt.BrushStyle.BDiagPattern}.get(place)
    if place is Place.CPU and not theme.washes:
        pattern = Qt.BrushStyle.Dense6Pattern
    if pattern is not None:
        painter.setBrush(QBrush(theme.color("surface"), pattern))
        painter.drawRect(box)


def _bits(record: CycleRecord) -> str:
    return str(record.recipe.weight_bits)


def density(theme: Theme, share: float) -> QColor:
    """The colour of a share from 0 to 1: from the surface to the draft's violet."""
    empty, full = theme.color("surface"), theme.color("gpu")
    weight = 0.25 + 0.75 * min(max(share, 0.0), 1.0)
    return QColor.fromRgbF(
        empty.redF() + (full.redF() - empty.redF()) * weight,
        empty.greenF() + (full.greenF() - empty.greenF()) * weight,
        empty.blueF() + (full.blueF() - empty.blueF()) * weight,
    )


def tick_layers(layers: int) -> list[int]:
    """Layers (from 0) whose number stands under the map: the first, the last, and a few even steps between."""
    if layers <= 1:
        return list(range(layers))
    step = next(step for step in (1, 2, 4, 8, 16, 32, 64, 10**6) if layers / step <= 5)
    between = [number - 1 for number in range(step, layers, step) if step > 1 and number + step * 0.5 <= layers]
    return sorted({0, layers - 1, *between} if step > 1 else set(range(layers)))
