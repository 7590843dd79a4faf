"""Fetches the starter model in a process of its own, which can be given up at any moment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal, Slot

COMMAND = (sys.executable, "-m", "engine.files.starter")
GIVE_UP_MS = 3000


class StarterFetch(QObject):
    """Signals: running_changed(bool); fetched(); failed(sentence). A fetch that was given up says nothing."""

    running_changed = Signal(bool)
    fetched = Signal()
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None, command: tuple[str, ...] | None = None) -> None:
        super().__init__(parent)
        self._command = command or COMMAND
        self._given_up = False
        self._process = QProcess(self)
        self._process.setWorkingDirectory(str(Path(__file__).resolve().parent.parent))
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        self._process.setProcessEnvironment(environment)
        self._process.finished.connect(self._on_finished)
        self._process.errorOccurred.connect(self._on_error)

    @property
    def running(self) -> bool:
        """Whether a fetch is under way."""
        return self._process.state() is not QProcess.ProcessState.NotRunning

    @Slot()
    def start(self) -> None:
        """Begin to fetch; does nothing when a fetch is running."""
        if self.running:
            return
        self._given_up = False
        self._process.start(self._command[0], list(self._command[1:]))
        self.running_changed.emit(True)

    @Slot()
    def give_up(self) -> None:
        """End a running fetch; nothing half-done stays under the model's name."""
        if self.running:
            self._given_up = True
            self._process.kill()
            self._process.waitForFinished(GIVE_UP_MS)

    @Slot(int, QProcess.ExitStatus)
    def _on_finished(self, code: int, status: QProcess.ExitStatus) -> None:
        lines = bytes(self._process.readAllStandardError().data()).decode(errors="replace").strip().splitlines()
        self.running_changed.emit(False)
        if self._given_up:
            return
        if status is QProcess.ExitStatus.NormalExit and code == 0:
            self.fetched.emit()
        else:
            self.failed.emit(lines[-1] if lines else self.tr("The starter model could not be fetched."))

    @Slot(QProcess.ProcessError)
    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self.running_changed.emit(False)
            words = self.tr("The starter model could not be fetched: {cause}.")
            self.failed.emit(words.format(cause=self._process.errorString().rstrip(".")))
