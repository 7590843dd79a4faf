"""The proof as a user sees it: how far it is, what was equal so far, and the outcome in one sentence."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QGridLayout, QWidget

from app.host import EngineHost
from app.states import Command, HostState
from app.theme import PX_LABEL, SPACING_INNER, SPACING_TURN
from app.ui.job_pane import JobPane
from app.ui.panel import ToneLabel
from engine.proof import PromptProof, ProofProgress, ProofReport

TOKENS = 1024
WIDTH = 460
COLUMNS = 2


class ProvePane(JobPane):
    """A small window beside the chat. `begin` starts a proof of `TOKENS` tokens; closing it stops a running one."""

    def __init__(self, host: EngineHost, parent: QWidget | None = None) -> None:
        super().__init__(host, Command.PROVE, HostState.PROVING, partial(host.prove, TOKENS), parent)
        self.setWindowTitle(self.tr("Prove it"))
        self.about.setText(
            self.tr(
                "Answers the same prompts twice, by plain decoding and with speculation, and compares every token "
                "and the model's scores for it bit for bit. Follow-up questions compare a kept conversation with one "
                "that is read anew."
            )
        )
        self.bar.setAccessibleName(self.tr("Progress of the proof"))
        self.again_button.setText(self.tr("Prove again"))
        self._found: list[ToneLabel] = []
        self._results = QGridLayout()
        self._results.setVerticalSpacing(SPACING_INNER)
        self._results.setHorizontalSpacing(SPACING_TURN)
        self._column.addLayout(self._results)
        self._column.addStretch(1)
        self._add_buttons()
        self.setMinimumWidth(WIDTH)
        host.proof_progress.connect(self._on_progress)
        host.proof_ended.connect(self._on_ended)

    @property
    def result_lines(self) -> list[str]:
        """What is shown of each finished prompt."""
        return [label.text() for label in self._found]

    def _clear(self) -> None:
        """See JobPane._clear."""
        for label in self._found:
            label.deleteLater()
        self._found.clear()
        self.bar.setRange(0, 0)

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

    def _set_running(self, running: bool) -> None:
        super()._set_running(running)
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
