"""A calibration as a user sees it: what is measured now, every draft tried so far, and the recipe that was found."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QFont
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QProgressBar, QScrollArea, QVBoxLayout, QWidget

from app.host import EngineHost
from app.states import Command, HostState, is_legal
from app.theme import PX_LABEL, PX_TEXT, SPACING_BLOCK, SPACING_PART, SPACING_TURN
from app.ui.findings_table import FindingsTable
from app.ui.panel import ToneLabel
from app.widgets.icon_button import TextButton
from engine.calibration.report import CalibrationProgress, CalibrationReport

MINUTES = 2.0
SIZE = (860, 560)
STEPS = 1000


class CalibrationPane(QDialog):
    """A window of its own beside the settings. `begin` starts a calibration; closing it stops a running one.

    Signal: settled() when an outcome is shown.
    """

    settled = Signal()

    def __init__(self, host: EngineHost, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Calibrate"))
        self._host = host
        self._running = False
        about = self.tr(
            "Lets the model answer some prompts, measures on this computer what each way to make its draft costs and "
            "how often that draft is right, and keeps the ones that make replies faster. The text of replies never "
            "depends on it."
        )
        self._about = _wrapped(ToneLabel(about, "text2"))
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setRange(0, STEPS)
        self.bar.setAccessibleName(self.tr("Progress of the calibration"))
        self.progress = ToneLabel("", "text2", PX_LABEL)
        self.outcome = _wrapped(ToneLabel("", "text", PX_TEXT, QFont.Weight.DemiBold))
        self.outcome.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.table = FindingsTable()
        key = self.tr("c: cost of a draft step · α: acceptance · S: speed, both against plain decoding")
        self._key = ToneLabel(key, "text2", PX_LABEL)
        self.stop_button = TextButton(self.tr("Stop"), "secondary", "stop")
        self.stop_button.clicked.connect(self._stop)
        self.again_button = TextButton(self.tr("Calibrate again"), "secondary")
        self.again_button.clicked.connect(self.begin)
        self.close_button = TextButton(self.tr("Close"), "primary")
        self.close_button.clicked.connect(self.reject)
        self._lay_out()
        host.calibration_progress.connect(self._on_progress)
        host.calibration_ended.connect(self._on_ended)
        host.state_changed.connect(self._on_state)
        host.failed.connect(self._on_failed)

    @Slot()
    def begin(self) -> bool:
        """Start a calibration; False where the engine is not ready for one."""
        if not self._host.calibrate(MINUTES):
            return False
        self.table.clear()
        self.outcome.setText("")
        self.bar.setValue(0)
        self.progress.setText(self.tr("Starting…"))
        self._set_running(True)
        return True

    def reject(self) -> None:
        """Close; a running calibration is stopped."""
        self._stop()
        super().reject()

    def closeEvent(self, event: QCloseEvent) -> None:
        self._stop()
        super().closeEvent(event)

    @Slot()
    def _stop(self) -> None:
        if self._running:
            self._host.stop()

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

    @Slot(str, str)
    def _on_failed(self, sentence: str, _: str) -> None:
        if self._running:
            self._settle(sentence, "error")

    @Slot(object)
    def _on_state(self, _: HostState) -> None:
        state = self._host.state
        self.stop_button.setEnabled(state is HostState.CALIBRATING)
        self.again_button.setEnabled(is_legal(state, Command.CALIBRATE))
        if state is HostState.CLOSED:
            self._running = False
            self.hide()

    def _settle(self, sentence: str, tone: str) -> None:
        self.outcome.set_tone(tone)
        self.outcome.setText(sentence)
        self._set_running(False)
        self.settled.emit()

    def _set_running(self, running: bool) -> None:
        self._running = running
        for part in (self.bar, self.progress, self.stop_button):
            part.setVisible(running)
        for part in (self.outcome, self.again_button, self.close_button):
            part.setVisible(not running)

    def _lay_out(self) -> None:
        self._scroll = QScrollArea()
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        holder = QWidget()
        inside = QVBoxLayout(holder)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.addWidget(self.table)
        inside.addStretch(1)
        self._scroll.setWidget(holder)
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACING_PART)
        buttons.addWidget(self._key)
        buttons.addStretch(1)
        for button in (self.stop_button, self.again_button, self.close_button):
            buttons.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACING_TURN, SPACING_TURN, SPACING_TURN, SPACING_TURN)
        column.setSpacing(SPACING_BLOCK)
        for part in (self._about, self.bar, self.progress, self.outcome):
            column.addWidget(part)
        column.addWidget(self._scroll, 1)
        column.addLayout(buttons)
        self.resize(*SIZE)


def _wrapped(label: ToneLabel) -> ToneLabel:
    label.setWordWrap(True)
    return label
