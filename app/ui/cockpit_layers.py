"""The cockpit's section with the layer map."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.reply_figures import ReplyFigures
from app.ui.cockpit_section import Section
from app.widgets.layer_map import SLICES, LayerMap
from engine.offload.plan import Plan
from engine.records import CycleRecord, ModelInfo


class LayersSection(Section):
    """Where every layer is and what the drafts of the last cycles computed of it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("layers", parent)
        self.set_name(self.tr("Layers"))
        self.map = LayerMap()
        self.head.show_value("", detail=self._caption(None))

    def build(self) -> None:
        self.rows.addWidget(self.map)

    def set_model(self, info: ModelInfo | None, plan: Plan | None) -> None:
        """The model whose layers are shown, and where its parts lie; no plan: all in one memory."""
        self.map.set_model(info, plan)

    def show_figures(self, figures: ReplyFigures) -> None:
        """Show the last cycles of a reply."""
        self.map.show_cycles(figures.last)

    def choose(self, record: CycleRecord | None) -> None:
        """Show one cycle, that of a token pointed at; None for the last ones again."""
        self.map.choose(record)
        self.head.show_value("", detail=self._caption(record))

    def _caption(self, record: CycleRecord | None) -> str:
        if record is not None:
            return self.tr("draft density, cycle {cycle}").replace("{cycle}", str(record.index + 1))
        return self.tr("draft density, last {count} cycles").replace("{count}", str(SLICES))
