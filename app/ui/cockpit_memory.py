"""The cockpit's memory section: one bar, the parts by name, and how the KV cache is held."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from app.kv_rows import KvRow, kv_rows
from app.memory_parts import memory_picture, size_text
from app.monitor import Sample
from app.theme import PX_LABEL, SPACING_BLOCK, SPACING_INNER
from app.ui.cockpit_section import FoldButton, Headline, Section
from app.ui.panel import ToneLabel
from app.widgets.memory_bar import MemoryBar, MemoryLegend, translated
from app.words import fill
from engine.memory.report import KvMemory
from engine.records import ModelInfo

KV_KEY = "kv"


class MemorySection(Section):
    """The memory of the card that the model is on, or RAM. Its inner list of the KV cache folds under the key "kv"."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("memory", parent)
        self.set_name(self.tr("Memory"))
        self.kv_button = FoldButton()
        self.kv_button.set_name(self.tr("KV cache"))
        self.kv_button.clicked.connect(self._on_kv_clicked)
        self._report: KvMemory | None = None

    def build(self) -> None:
        self.bar = MemoryBar()
        self.legend = MemoryLegend()
        self.kv_head = Headline(self.kv_button)
        self.fallback = ToneLabel("", "text2", PX_LABEL)
        self.fallback.setWordWrap(True)
        self.kv = KvDetails()
        for part in (self.bar, self.legend, self.kv_head, self.fallback, self.kv):
            self.rows.addWidget(part)
        self.rows.setSpacing(SPACING_INNER + 2)
        self._show_kv(self._report)

    def show_sample(self, sample: Sample, info: ModelInfo | None) -> None:
        """Show a reading."""
        picture = memory_picture(sample, info)
        self.set_name(self.tr("GPU memory") if picture.on_card else self.tr("RAM"))
        own, total = picture.own.value, picture.total.value
        detail = self.tr("of {total}").replace("{total}", size_text(total)) if total is not None else ""
        if picture.budget is not None:
            detail = self.tr("of {budget} budget").replace("{budget}", size_text(picture.budget))
        reason = translated(picture.own.reason)
        self.head.show_value(size_text(own) if own is not None else None, reason, detail)
        self.head.setToolTip(self.tr("What this program takes, of all there is") if own is not None else reason)
        self.bar.set_picture(picture)
        self.legend.set_picture(picture)
        self._show_kv(sample.kv)

    @property
    def kv_open(self) -> bool:
        """Whether the list of the KV cache is unfolded."""
        return self.kv_button.isChecked()

    def set_kv_open(self, is_open: bool) -> None:
        """Unfold or fold the list of the KV cache."""
        self.kv_button.setChecked(is_open)
        if self._built:
            self._show_kv(self._report)

    def _on_kv_clicked(self) -> None:
        self.set_kv_open(self.kv_button.isChecked())
        self.folded.emit(KV_KEY, not self.kv_open)

    def _show_kv(self, report: KvMemory | None) -> None:
        self._report = report
        self.kv_head.setVisible(report is not None)
        self.fallback.setVisible(report is not None and report.reason is not None)
        if report is not None:
            self.kv_head.show_value("", detail=report.backend)
            self.fallback.setText(fallback_words(report))
        self.kv.setVisible(report is not None and self.kv_open)
        if self.kv_open:
            self.kv.show_report(report)


def fallback_words(report: KvMemory) -> str:
    """Why the rows do not lie in virtual memory; empty where they do."""
    words = QCoreApplication.translate("KvDetails", "No virtual memory, because {reason}.")
    return words.replace("{reason}", report.reason) if report.reason is not None else ""


class KvDetails(QWidget):
    """All figures of the KV cache, one a row."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Figures of the KV cache"))
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(SPACING_BLOCK, 0, 0, 0)
        self._grid.setHorizontalSpacing(SPACING_BLOCK)
        self._grid.setVerticalSpacing(SPACING_INNER)
        self._grid.setColumnStretch(0, 1)
        self._cells: list[tuple[ToneLabel, ToneLabel]] = []

    def show_report(self, report: KvMemory | None) -> None:
        """Show a state of the cache; rows are made once and then only change their words."""
        rows = kv_rows(report) if report is not None else ()
        while len(self._cells) < len(rows):
            name, value = ToneLabel("", "text2", PX_LABEL), ToneLabel("", "text", PX_LABEL)
            self._grid.addWidget(name, len(self._cells), 0)
            self._grid.addWidget(value, len(self._cells), 1, Qt.AlignmentFlag.AlignRight)
            self._cells.append((name, value))
        for number, (name, value) in enumerate(self._cells):
            name.setVisible(number < len(rows))
            value.setVisible(number < len(rows))
            if number < len(rows):
                self._fill(name, value, rows[number])
        shown = self._cells[: len(rows)]
        self.setAccessibleDescription(", ".join(f"{name.text()} {value.text()}" for name, value in shown))

    def _fill(self, name: ToneLabel, value: ToneLabel, row: KvRow) -> None:
        name.setText(fill(translated(row.name.text), row.name.values))
        value.setText(self.tr("n/a") if row.figure is None else row.figure)
        value.set_tone("text3" if row.figure is None else "text")
        for label in (name, value):
            label.setToolTip(translated(row.help))
