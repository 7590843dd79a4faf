"""`specular-cli models` in a process of its own, so that the window neither waits for it nor imports what it needs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal, Slot

COMMAND = (sys.executable, "-m", "engine.cli.main", "models")
GIVE_UP_MS = 3000
PREFIX = "specular-cli: "


class ModelsProcess(QObject):
    """One command at a time. said(values): a line of JSON; ended(sentence): it is over, "" where it went well.

    A command that was killed says nothing more.
    """

    said = Signal(object)
    ended = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._killed = False
        self._rest = b""
        self._process = QProcess(self)
        self._process.setWorkingDirectory(str(Path(__file__).resolve().parent.parent))
        self._process.readyReadStandardOutput.connect(self._on_output)
        self._process.finished.connect(self._on_finished)
        self._process.errorOccurred.connect(self._on_error)

    @property
    def running(self) -> bool:
        """Whether a command is under way."""
        return self._process.state() is not QProcess.ProcessState.NotRunning

    def start(self, *arguments: str) -> None:
        """Run a command; only while none is running."""
        self._killed, self._rest = False, b""
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        environment.insert("PYTHONIOENCODING", "utf-8")
        self._process.setProcessEnvironment(environment)
        self._process.start(COMMAND[0], [*COMMAND[1:], *arguments])

    def kill(self) -> None:
        """End the running command now. What it has written to the disk stays, and is whole or marked as a part."""
        if self.running:
            self._killed = True
            self._process.kill()
            self._process.waitForFinished(GIVE_UP_MS)

    @Slot()
    def _on_output(self) -> None:
        lines = (self._rest + bytes(self._process.readAllStandardOutput().data())).split(b"\n")
        self._rest = lines.pop()
        if not self._killed:
            for line in lines:
                if (values := _values(line)) is not None:
                    self.said.emit(values)

    @Slot(int, QProcess.ExitStatus)
    def _on_finished(self, code: int, status: QProcess.ExitStatus) -> None:
        self._on_output()
        lines = bytes(self._process.readAllStandardError().data()).decode(errors="replace").strip().splitlines()
        if self._killed:
            return
        if status is QProcess.ExitStatus.NormalExit and code == 0:
            self.ended.emit("")
        else:
            last = lines[-1].removeprefix(PREFIX) if lines else ""
            self.ended.emit(last or self.tr("The command ended without saying why."))

    @Slot(QProcess.ProcessError)
    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            words = self.tr("The list of models cannot be read: {cause}.")
            self.ended.emit(words.replace("{cause}", self._process.errorString().rstrip(".")))


def _values(line: bytes) -> dict[str, Any] | None:
    """The object in a line; None for anything else that a library may print."""
    try:
        values = json.loads(line)
    except ValueError:
        return None
    return values if isinstance(values, dict) else None
