"""Figures of a benchmark, a row for each set of questions: both speeds, their ratio, acceptance, same texts."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from app.theme import PX_CONTROL, PX_LABEL, SPACING_BLOCK, SPACING_WIDE, active
from app.ui.panel import Panel, ToneLabel
from engine.bench.questions.summary import OVERALL, SetSummary

NAMES = {"mt_bench": "MT-bench", "humaneval": "HumanEval", "gsm8k": "GSM8K", "alpaca": "Alpaca"}
NONE = "–"


def row_of(entry: SetSummary) -> tuple[str, ...]:
    """The texts of a set's row."""
    name = NAMES.get(entry.name, entry.name)
    if entry.name == OVERALL:
        name = QCoreApplication.translate("BenchTable", "All")
    plain, other = entry.way("plain"), entry.way("speculative")
    ratio = NONE if other is None or other.speed_up is None else f"{other.speed_up:.2f}×"
    if other is not None and other.interval is not None and other.questions > 1:
        ratio = f"{ratio} ({other.interval[0]:.2f}–{other.interval[1]:.2f})"
    alpha, tokens = entry.draft.acceptance, entry.draft.tokens_per_cycle
    return (
        name,
        NONE if plain is None else f"{plain.tokens_per_second:.1f}",
        NONE if other is None else f"{other.tokens_per_second:.1f}",
        ratio,
        NONE if alpha is None else f"{alpha * 100:.0f} %",
        NONE if tokens is None else f"{tokens:.2f}",
        NONE if other is None or other.identical is None else f"{other.identical} / {other.questions}",
    )


class BenchTable(Panel):
    """A heading and a row for each set; rows are filled anew as figures come."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("canvas", "", parent)
        self.setAccessibleName(self.tr("Figures of the benchmark"))
        self._labels: list[list[ToneLabel]] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(SPACING_WIDE)
        self._grid.setVerticalSpacing(SPACING_BLOCK)
        headings = (
            self.tr("Questions"),
            self.tr("Plain, tok/s"),
            self.tr("Speculative, tok/s"),
            "S",
            "α",
            self.tr("Tokens a cycle"),
            self.tr("Same text"),
        )
        for column, words in enumerate(headings):
            label = ToneLabel(words, "text2", PX_LABEL, QFont.Weight.Medium)
            self._grid.addWidget(label, 0, column, _alignment(column))
        self._grid.setColumnStretch(len(headings), 1)

    @property
    def rows(self) -> list[list[str]]:
        """The texts of all rows."""
        return [[label.text() for label in row] for row in self._labels]

    def show_sets(self, sets: Sequence[SetSummary]) -> None:
        """Show the figures of each set."""
        while len(self._labels) > len(sets):
            for label in self._labels.pop():
                label.hide()
                label.deleteLater()
        for number, entry in enumerate(sets):
            if number == len(self._labels):
                self._add_row()
            for label, text in zip(self._labels[number], row_of(entry), strict=True):
                label.setText(text)
        self.update()

    def _add_row(self) -> None:
        row = [ToneLabel("", "text", PX_CONTROL) for _ in range(7)]
        for column, label in enumerate(row):
            self._grid.addWidget(label, len(self._labels) + 1, column, _alignment(column))
        self._labels.append(row)

    def paintEvent(self, event: QPaintEvent) -> None:
        """A hairline above every row."""
        super().paintEvent(event)
        painter = QPainter(self)
        line = active().color("line")
        for row in self._labels:
            painter.fillRect(0, row[0].y() - SPACING_BLOCK // 2, self.width(), 1, line)


def _alignment(column: int) -> Qt.AlignmentFlag:
    return (Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight) | Qt.AlignmentFlag.AlignVCenter
