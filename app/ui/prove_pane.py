"""The proof as a user sees it: how far it is, what was equal so far, and the outcome in one sentence."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QFont
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from app.host import EngineHost
from app.states import Command, HostState, is_legal
from app.theme import PX_LABEL, PX_TEXT, SPACING_BLOCK, SPACING_INNER, SPACING_PART, SPACING_TURN
from app.ui.panel import ToneLabel
from app.widgets.icon_button import TextButton
from engine.proof import PromptProof, ProofProgress, ProofReport

TOKENS = 1024
WIDTH = 460
COLUMNS = 2


class ProvePane(QDialog):
    """A small window beside the chat. `begin` starts a proof of `TOKENS` tokens; closing it stops a running one.

    Signal: settled() when an outcome is shown.
    """

    settled = Signal()

    def __init__(self, host: EngineHost, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Prove it"))
        self._host = host
        self._running = False
        self._found: list[ToneLabel] = []
        about = self.tr(
            "Answers the same prompts twice, by plain decoding and with speculation, and compares every token "
            "and the model's scores for it bit for bit. Follow-up questions compare a kept conversation with one "
            "that is read anew."
        )
        self._about = _wrapped(ToneLabel(about, "text2"))
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Progress of the proof"))
        self.progress = ToneLabel("", "text2", PX_LABEL)
        self.outcome = _wrapped(ToneLabel("", "text", PX_TEXT, QFont.Weight.DemiBold))
        self.outcome.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._results = QGridLayout()
        self.stop_button = TextButton(self.tr("Stop"), "secondary", "stop")
        self.stop_button.clicked.connect(self._stop)
        self.again_button = TextButton(self.tr("Prove again"), "secondary")
        self.again_button.clicked.connect(self.begin)
        self.close_button = TextButton(self.tr("Close"), "primary")
        self.close_button.clicked.connect(self.reject)
        self._lay_out()
        host.proof_progress.connect(self._on_progress)
        host.proof_ended.connect(self._on_ended)
        host.state_changed.connect(self._on_state)
        host.failed.connect(self._on_failed)

    @property
    def result_lines(self) -> list[str]:
        """What is shown of each finished prompt."""
        return [label.text() for label in self._found]

    @Slot()
    def begin(self) -> bool:
        """Start a proof; False where the engine is not ready for one."""
        if not self._host.prove(TOKENS):
            return False
        for label in self._found:
            label.deleteLater()
        self._found.clear()
        self.outcome.setText("")
        self.bar.setRange(0, 0)
        self.progress.setText(self.tr("Starting…"))
        self._set_running(True)
        return True

    def reject(self) -> None:
        """Close; a running proof is stopped."""
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
    def _on_progress(self, step: ProofProgress) -> None:
        self.bar.setRange(0, step.total)
        self.bar.setValue(step.done)
        words = self.tr("{prompt}: {done} of {total} tokens made, half of them by plain decoding")
        self.progress.setText(words.format(prompt=step.prompt, done=f"{step.done:,}", total=f"{step.total:,}"))
        if step.result is not None:
            self._add_result(step.result)

    @Slot(object)
    def _on_ended(self, report: ProofReport) -> None:
        if report.difference is not None:
            self._settle(report.difference.sentence, "error")
            return
        words = (
            self.tr("Stopped. Identical so far: {tokens} tokens, ids and logits, over {prompts} prompts")
            if report.stopped
            else self.tr("Identical: {tokens} tokens, ids and logits, over {prompts} prompts")
        )
        self._settle(
            words.format(tokens=f"{report.tokens:,}", prompts=report.prompts), "text" if report.stopped else "ok"
        )

    @Slot(str, str)
    def _on_failed(self, sentence: str, _: str) -> None:
        if self._running:
            self._settle(sentence, "error")

    @Slot(object)
    def _on_state(self, _: HostState) -> None:
        state = self._host.state
        self.stop_button.setEnabled(state is HostState.PROVING)
        self.again_button.setEnabled(is_legal(state, Command.PROVE))
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
        self.adjustSize()

    def _add_result(self, result: PromptProof) -> None:
        words = (
            self.tr("{prompt}: {tokens} equal")
            if result.difference is None
            else self.tr("{prompt}: different after {tokens}")
        )
        text = words.format(prompt=result.prompt, tokens=f"{result.tokens:,}")
        label = ToneLabel(text, "text2" if result.difference is None else "error", PX_LABEL)
        number = len(self._found)
        self._results.addWidget(label, number // COLUMNS, number % COLUMNS)
        self._found.append(label)

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACING_PART)
        buttons.addStretch(1)
        for button in (self.stop_button, self.again_button, self.close_button):
            buttons.addWidget(button)
        self._results.setVerticalSpacing(SPACING_INNER)
        self._results.setHorizontalSpacing(SPACING_TURN)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACING_TURN, SPACING_TURN, SPACING_TURN, SPACING_TURN)
        column.setSpacing(SPACING_BLOCK)
        for part in (self._about, self.bar, self.progress, self.outcome):
            column.addWidget(part)
        column.addLayout(self._results)
        column.addStretch(1)
        column.addLayout(buttons)
        self.setMinimumWidth(WIDTH)


def _wrapped(label: ToneLabel) -> ToneLabel:
    label.setWordWrap(True)
    return label
