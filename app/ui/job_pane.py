"""What the panes of the engine's long jobs share: progress, the outcome in a sentence, and ways to stop and repeat."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QFont
from PySide6.QtWidgets import QDialog, QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from app.host import EngineHost
from app.states import Command, HostState, is_legal
from app.theme import PX_LABEL, PX_TEXT, SPACING_BLOCK, SPACING_PART, SPACING_TURN
from app.ui.panel import ToneLabel
from app.widgets.icon_button import TextButton


class JobPane(QDialog):
    """A window of its own over one kind of job; closing it stops a running one.

    A pane says what the job is (title, `about`, the bar's name, the words of `again_button`), takes what an earlier one
    found away in `_clear`, and calls `_settle` as it ends.

    Signal: settled() when an outcome is shown.
    """

    settled = Signal()

    def __init__(
        self,
        host: EngineHost,
        command: Command,
        state: HostState,
        start: Callable[[], bool],
        parent: QWidget | None = None,
    ) -> None:
        """command, start: the one that starts the job, and how; false where the engine is not ready for it.

        state: the host's while it runs.
        """
        super().__init__(parent)
        self._host, self._command, self._state, self._start = host, command, state, start
        self._running = False
        self.about = _wrapped(ToneLabel("", "text2"))
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.progress = ToneLabel("", "text2", PX_LABEL)
        self.outcome = _wrapped(ToneLabel("", "text", PX_TEXT, QFont.Weight.DemiBold))
        self.outcome.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.stop_button = TextButton(self.tr("Stop"), "secondary", "stop")
        self.stop_button.clicked.connect(self._stop)
        self.again_button = TextButton("", "secondary")
        self.again_button.clicked.connect(self.begin)
        self.close_button = TextButton(self.tr("Close"), "primary")
        self.close_button.clicked.connect(self.reject)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(SPACING_TURN, SPACING_TURN, SPACING_TURN, SPACING_TURN)
        self._column.setSpacing(SPACING_BLOCK)
        for part in (self.about, self.bar, self.progress, self.outcome):
            self._column.addWidget(part)
        host.state_changed.connect(self._on_state)
        host.failed.connect(self._on_failed)

    @Slot()
    def begin(self) -> bool:
        """Start the job; False where the engine is not ready for it."""
        if not self._start():
            return False
        self._clear()
        self.outcome.setText("")
        self.progress.setText(self.tr("Starting…"))
        self._set_running(True)
        return True

    def reject(self) -> None:
        """Close; a running job is stopped."""
        self._stop()
        super().reject()

    def closeEvent(self, event: QCloseEvent) -> None:
        self._stop()
        super().closeEvent(event)

    @Slot()
    def _stop(self) -> None:
        if self._running:
            self._host.stop()

    @Slot(str, str)
    def _on_failed(self, sentence: str, _: str) -> None:
        if self._running:
            self._settle(sentence, "error")

    @Slot(object)
    def _on_state(self, _: HostState) -> None:
        state = self._host.state
        self.stop_button.setEnabled(state is self._state)
        self.again_button.setEnabled(is_legal(state, self._command))
        if state is HostState.CLOSED:
            self._running = False
            self.hide()

    def _clear(self) -> None:
        """Take away what an earlier job left."""
        self.bar.setValue(0)

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

    def _add_buttons(self, *beside: QWidget) -> None:
        """The row of buttons below all that is in the column by then, with these widgets to its left."""
        row = QHBoxLayout()
        row.setSpacing(SPACING_PART)
        for widget in beside:
            row.addWidget(widget)
        row.addStretch(1)
        for button in (self.stop_button, self.again_button, self.close_button):
            row.addWidget(button)
        self._column.addLayout(row)


def _wrapped(label: ToneLabel) -> ToneLabel:
    label.setWordWrap(True)
    return label
