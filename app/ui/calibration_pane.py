"""A calibration as a user sees it: what is measured now, every draft tried so far, and the recipe that was found."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.host import EngineHost
from app.states import Command, HostState
from app.theme import PX_LABEL
from app.ui.findings_table import FindingsTable
from app.ui.job_pane import JobPane
from app.ui.panel import ToneLabel
from engine.calibration.report import CalibrationProgress, CalibrationReport

MINUTES = 2.0
SIZE = (860, 560)
STEPS = 1000


class CalibrationPane(JobPane):
    """A window of its own beside the settings. `begin` starts a calibration; closing it stops a running one."""

    def __init__(self, host: EngineHost, parent: QWidget | None = None) -> None:
        super().__init__(host, Command.CALIBRATE, HostState.CALIBRATING, partial(host.calibrate, MINUTES), parent)
        self.setWindowTitle(self.tr("Calibrate"))
        self.about.setText(
            self.tr(
                "Lets the model answer some prompts, measures on this computer what each way to make its draft costs "
                "and how often that draft is right, and keeps the ones that make replies faster. The text of replies "
                "never depends on it."
            )
        )
        self.bar.setRange(0, STEPS)
        self.bar.setAccessibleName(self.tr("Progress of the calibration"))
        self.again_button.setText(self.tr("Calibrate again"))
        self.table = FindingsTable()
        self._scroll = _scrolled(self.table)
        self._column.addWidget(self._scroll, 1)
        key = self.tr("c: cost of a draft step · α: acceptance · S: speed, both against plain decoding")
        self._add_buttons(ToneLabel(key, "text2", PX_LABEL))
        self.resize(*SIZE)
        host.calibration_progress.connect(self._on_progress)
        host.calibration_ended.connect(self._on_ended)

    def _clear(self) -> None:
        """See JobPane._clear."""
        super()._clear()
        self.table.clear()

    @Slot(object)
    def _on_progress(self, step: CalibrationProgress) -> None:
        self.bar.setValue(round(step.fraction * STEPS))
        self.progress.setText(step.what)
        if step.finding is not None:
            self.table.add(step.finding)
            bar = self._scroll.verticalScrollBar()
            bar.setValue(bar.maximum())

    @Slot(object)
    def _on_ended(self, report: CalibrationReport) -> None:
        self.table.show_all(report.findings)
        self._scroll.verticalScrollBar().setValue(0)
        gains = report.speed_up is not None and report.speed_up > 1
        sentence = report.sentence if report.note is None else f"{report.sentence} {report.note}"
        self._settle(sentence, "ok" if gains and report.note is None else "text")


def _scrolled(table: FindingsTable) -> QScrollArea:
    """The table at the top of an area that scrolls up and down."""
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    holder = QWidget()
    inside = QVBoxLayout(holder)
    inside.setContentsMargins(0, 0, 0, 0)
    inside.addWidget(table)
    inside.addStretch(1)
    area.setWidget(holder)
    return area
