"""One window a user: a second start hands over what it was to open to the first, which comes to the front."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from engine.files.paths import data_dir

WAIT_MS = 2000
MOST_BYTES = 64 * 1024
TAKEN = b"taken\n"


def instance_name() -> str:
    """Of the user's instance over this data folder: a socket's path, or a pipe's name."""
    about = f"{_user()}\n{data_dir()}"
    name = f"specular-{hashlib.sha256(about.encode(errors='replace')).hexdigest()[:16]}"
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    return str(runtime / name) if runtime.is_absolute() and runtime.is_dir() else name


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name for the number
        return ""


class SingleInstance(QObject):
    """asked(path) when another start hands something over: a path to open, or "" to be shown only."""

    asked = Signal(str)

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)

    def begin(self, path: str) -> bool:
        """True for the first instance, which listens from now on; else `path` has been handed over to the first.

        An instance that does not answer, and a socket that a crash left behind, do not keep this one from starting.
        """
        if self._hand_over(path):
            return False
        if self._server.listen(self._name):
            return True
        if self._hand_over(path):  # both began at the same moment, and the other was quicker
            return False
        QLocalServer.removeServer(self._name)
        self._server.listen(self._name)
        return True

    def end(self) -> None:
        """Listen no more."""
        self._server.close()

    def _hand_over(self, path: str) -> bool:
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(WAIT_MS):
            return False
        message = {"open": path, "token": os.environ.get("XDG_ACTIVATION_TOKEN", "")}
        socket.write(json.dumps(message).encode() + b"\n")
        socket.waitForBytesWritten(WAIT_MS)
        answered = socket.waitForReadyRead(WAIT_MS) and bytes(socket.readAll().data()) == TAKEN
        socket.abort()
        return answered

    @Slot()
    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.setParent(self)
            socket.readyRead.connect(self._on_message)
            socket.disconnected.connect(socket.deleteLater)
            if socket.bytesAvailable():
                self._read(socket)

    @Slot()
    def _on_message(self) -> None:
        socket = self.sender()
        if isinstance(socket, QLocalSocket):
            self._read(socket)

    def _read(self, socket: QLocalSocket) -> None:
        if not socket.canReadLine():
            if socket.bytesAvailable() > MOST_BYTES:
                socket.abort()
            return
        try:
            message = json.loads(bytes(socket.readLine(MOST_BYTES).data()))
            path, token = str(message["open"]), str(message.get("token", ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            socket.abort()
            return
        socket.write(TAKEN)
        socket.flush()
        if token:
            os.environ["XDG_ACTIVATION_TOKEN"] = token  # what the compositor wants to see to bring us to the front
        self.asked.emit(path)
