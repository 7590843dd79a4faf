"""What a calibration measured, a row each: what was tried, its cost, acceptance and speed-up, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from app.theme import PX_CONTROL, PX_LABEL, SPACING_BLOCK, SPACING_WIDE, active
from app.ui.panel import Panel, ToneLabel
from engine.calibration.report import Finding, Verdict

COLUMNS = 6
FIGURES = range(1, 5)
TONES = {Verdict.ON: "ok", Verdict.OFF: "text2", Verdict.UNABLE: "text3", Verdict.UNTRIED: "text3"}
NOT_MEASURED = "n/a"


def verdict_words(finding: Finding) -> str:
    """What became of an ingredient and why, for people; empty while that is open."""
    words = {
        Verdict.ON: QCoreApplication.translate("FindingsTable", "On"),
        Verdict.OFF: QCoreApplication.translate("FindingsTable", "Off"),
        Verdict.UNABLE: QCoreApplication.translate("FindingsTable", "Not here"),
        Verdict.UNTRIED: QCoreApplication.translate("FindingsTable", "Not tried"),
        Verdict.OPEN: "",
    }[finding.verdict]
    return f"{words}: {finding.reason}" if words and finding.reason else words


def figures(finding: Finding) -> tuple[str, str, str, str]:
    """Cost, acceptance, tokens a cycle with their γ, and speed-up."""
    cost = NOT_MEASURED if finding.cost is None else f"{finding.cost:.2f}"
    acceptance = NOT_MEASURED if finding.acceptance is None else f"{finding.acceptance * 100:.1f} %"
    tokens = NOT_MEASURED if finding.tokens is None else f"{finding.tokens:.2f} (γ {finding.gamma})"
    speed_up = NOT_MEASURED if finding.speed_up is None else f"{finding.speed_up:.2f}×"
    return cost, acceptance, tokens, speed_up


class FindingsTable(Panel):
    """A heading and a row for each finding."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("canvas", "", parent)
        self._rows: list[list[ToneLabel]] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, SPACING_WIDE, 0)
        self._grid.setHorizontalSpacing(SPACING_WIDE)
        self._grid.setVerticalSpacing(SPACING_BLOCK)
        self._grid.setColumnStretch(COLUMNS - 1, 1)
        headings = (
            (self.tr("Draft"), ""),
            ("c", self.tr("Cost of a draft step, in plain steps")),
            ("α", self.tr("Acceptance: share of drafted tokens that are the model's own")),
            (self.tr("Tokens a cycle"), self.tr("At the draft length γ that serves best")),
            ("S", self.tr("Speed expected, over plain decoding")),
            ("", ""),
        )
        for column, (words, tip) in enumerate(headings):
            label = ToneLabel(words, "text2", PX_LABEL, QFont.Weight.Medium)
            label.setToolTip(tip)
            self._grid.addWidget(label, 0, column, _alignment(column))

    def paintEvent(self, event: QPaintEvent) -> None:
        """A hairline above every row."""
        super().paintEvent(event)
        painter = QPainter(self)
        line = active().color("line")
        for row in self._rows:
            painter.fillRect(0, row[0].y() - SPACING_BLOCK // 2, self.width(), 1, line)

    @property
    def rows(self) -> list[list[str]]:
        """The texts of all rows."""
        return [[label.text() for label in row] for row in self._rows]

    def clear(self) -> None:
        """Only the heading."""
        for row in self._rows:
            for label in row:
                self._grid.removeWidget(label)
                label.hide()
                label.deleteLater()
        self._rows.clear()

    def show_all(self, findings: Sequence[Finding]) -> None:
        """These in place of what was shown."""
        self.clear()
        for finding in findings:
            self.add(finding)

    def add(self, finding: Finding) -> None:
        """One more row."""
        measured = finding.cost is not None
        tone = "text" if measured else "text3"
        weight = QFont.Weight.DemiBold if finding.verdict is Verdict.ON else QFont.Weight.Normal
        texts = (finding.ingredient, *figures(finding), verdict_words(finding))
        row: list[ToneLabel] = []
        for column, text in enumerate(texts):
            last = column == COLUMNS - 1
            label = ToneLabel(text, TONES.get(finding.verdict, tone) if last else tone, PX_CONTROL, weight)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            label.setWordWrap(last)
            if last and not measured:
                label.setToolTip(text)
            self._grid.addWidget(label, len(self._rows) + 1, column, _alignment(column))
            row.append(label)
        self._rows.append(row)


def _alignment(column: int) -> Qt.AlignmentFlag:
    if column == COLUMNS - 1:
        return Qt.AlignmentFlag.AlignTop
    side = Qt.AlignmentFlag.AlignRight if column in FIGURES else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignTop
