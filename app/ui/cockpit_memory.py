"""The cockpit's memory section: one bar, the parts by name, and how the KV cache is held."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from app.memory_parts import memory_picture, size_text
from app.monitor import Sample
from app.theme import PX_LABEL, SPACING_BLOCK, SPACING_INNER
from app.ui.cockpit_section import FoldButton, Headline, Section
from app.ui.panel import ToneLabel
from app.widgets.memory_bar import MemoryBar, MemoryLegend, translated
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
        rows = kv_rows(report) if report is not None else []
        while len(self._cells) < len(rows):
            name, value = ToneLabel("", "text2", PX_LABEL), ToneLabel("", "text", PX_LABEL)
            self._grid.addWidget(name, len(self._cells), 0)
            self._grid.addWidget(value, len(self._cells), 1, Qt.AlignmentFlag.AlignRight)
            self._cells.append((name, value))
        for number, (name, value) in enumerate(self._cells):
            shown = number < len(rows)
            name.setVisible(shown)
            value.setVisible(shown)
            if shown:
                words, figure, tip = rows[number]
                name.setText(words)
                value.setText(figure)
                value.set_tone("text3" if figure == self.tr("n/a") else "text")
                name.setToolTip(tip)
                value.setToolTip(tip)
        self.setAccessibleDescription(", ".join(f"{words} {figure}" for words, figure, _ in rows))


def _tr(text: str) -> str:
    return QCoreApplication.translate("KvDetails", text)


def kv_rows(report: KvMemory) -> list[tuple[str, str, str]]:
    """Name, figure and help of every row."""
    paged = report.page_bytes > 0
    no_pages = _tr("A plain tensor has no pages.")
    none = _tr("n/a")

    def of_pages(size: int) -> str:
        return size_text(size) if paged else none

    def tip(text: str) -> str:
        return text if paged else no_pages

    rows = [
        (_tr("Reserved"), size_text(report.reserved), _tr("Addresses set aside, which take no memory by themselves.")),
        (_tr("Whole context"), size_text(report.full), _tr("What one conversation takes when its context is full.")),
        (_tr("Mapped"), size_text(report.mapped), _tr("Backed by memory.")),
        (_tr("Used"), size_text(report.used), _tr("Rows of tokens that exist, and those the running cycle may write.")),
        (_tr("Fragmentation"), size_text(report.fragmentation), _tr("Mapped beyond what is used.")),
        (_tr("Pool"), of_pages(report.pool), tip(_tr("Pages created ahead of need."))),
        (_tr("Page size"), of_pages(report.page_bytes), tip(_tr("The least that is mapped at a time."))),
        (_tr("Conversations"), f"{report.conversations:,}", _tr("Chats whose rows are kept.")),
        (_tr("Evicted"), f"{report.evicted:,}", _tr("Chats that gave up their rows to others since the load.")),
        (_tr("Pages late"), f"{report.late:,}" if paged else none, tip(_tr("Pages that a cycle had to wait for."))),
    ]
    return rows + [_operation_row(op.name, op.count, op.seconds) for op in report.operations]


def _operation_row(name: str, count: int, seconds: float) -> tuple[str, str, str]:
    words = _tr("Pages: {operation}").replace("{operation}", name)
    if not count:
        return words, "0", _tr("It has not happened since the load.")
    figure = f"{count:,} · {seconds / count * 1e6:.1f} µs"
    return words, figure, _tr("How often since the load, and the mean time of each.")
