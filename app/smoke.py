"""A question or more to the model in the real window, a picture of it, and out: `specular --smoke OUT.png`.

With `--demo` the recorded demo instead of a question, and no model.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from PySide6.QtCore import QObject, Qt, QTimer, Slot

from app.conversation import Reply
from app.host import EngineHost
from app.states import HostState
from app.ui.main_window import MainWindow
from engine.records import ModelInfo, StopReason

QUESTION = "What is the capital of France?"
SIZE = (1440, 900)
LIMIT_MS = 180_000
SETTLE_MS = 500
DEMO_SHARE = 0.8


class PictureRun(QObject):
    """A picture of the window, and out. exit_status is 0 once it is saved; else one line says why not."""

    def __init__(self, window: MainWindow, host: EngineHost, target: str) -> None:
        super().__init__(window)
        self.exit_status = 1
        self._window = window
        self._host = host
        self._target = target
        self._over = False
        window.resize(*SIZE)
        self._limit = QTimer(self)
        self._limit.setSingleShot(True)
        self._limit.timeout.connect(self._on_limit)
        self._limit.start(LIMIT_MS)

    @Slot()
    def _save(self) -> None:
        if self._over:
            return
        if (cockpit := self._window.cockpit.cockpit) is not None:
            cockpit.settle()
        if not self._window.grab().save(self._target):
            self._fail(f"The picture cannot be written to {self._target}.")
            return
        self.exit_status = 0
        self._leave()

    @Slot()
    def _on_limit(self) -> None:
        self._fail(f"There was no reply within {self._limit.interval() // 1000} seconds.")

    def _fail(self, sentence: str) -> None:
        if not self._over:
            print(sentence, file=sys.stderr)
            self._leave()

    def _leave(self) -> None:
        """End the event loop by closing the window."""
        self._over = True
        self._limit.stop()
        QTimer.singleShot(0, self._window, self._window.close)


class SmokeRun(PictureRun):
    """Asks the model by the window's own signals."""

    def __init__(
        self, window: MainWindow, host: EngineHost, target: str, questions: Sequence[str] = (QUESTION,)
    ) -> None:
        super().__init__(window, host, target)
        self._questions = list(questions)
        host.model_loaded.connect(self._on_model)
        host.failed.connect(self._on_failed)
        host.reply_refused.connect(self._on_refused)
        window.models.starter_missing.connect(self._on_missing)
        window.chat.reply_moved.connect(self._on_reply)

    @Slot(object)
    def _on_model(self, _: ModelInfo) -> None:
        QTimer.singleShot(0, self, self._ask)

    @Slot()
    def _ask(self) -> None:
        self._window.chat.send(self._questions.pop(0))
        if self._host.state is not HostState.GENERATING:
            self._fail("The question was not taken.")

    @Slot(object)
    def _on_reply(self, reply: Reply) -> None:
        if reply.finished is None:
            return
        if reply.finished.reason is StopReason.FAILED or not reply.text.strip():
            self._fail(reply.finished.message or "The reply is empty.")
        elif self._questions:
            QTimer.singleShot(0, self, self._ask)
        else:
            QTimer.singleShot(SETTLE_MS, self, self._save)

    @Slot(str, str)
    def _on_failed(self, sentence: str, _: str) -> None:
        self._fail(sentence)

    @Slot(int, str)
    def _on_refused(self, _: int, sentence: str) -> None:
        self._fail(sentence)

    @Slot()
    def _on_missing(self) -> None:
        self._fail("The starter model is not installed: run python3 run.py setup to fetch it.")


class DemoRun(PictureRun):
    """Lets the demo play until most of it is there, stops it and takes the picture."""

    def __init__(self, window: MainWindow, host: EngineHost, target: str) -> None:
        super().__init__(window, host, target)
        window.painted.connect(self._on_painted, Qt.ConnectionType.QueuedConnection)

    @Slot()
    def _on_painted(self) -> None:
        """After the launcher has opened the demo: it was connected first."""
        replay = self._window.replays.replay
        if replay is None:
            self._fail(self._window.view.banner.sentence() or "The demo was not opened.")
        else:
            replay.moved.connect(self._on_moved)

    @Slot(float)
    def _on_moved(self, seconds: float) -> None:
        replay = self._window.replays.replay
        if replay is not None and replay.playing and seconds >= replay.duration * DEMO_SHARE:
            replay.pause()
            QTimer.singleShot(SETTLE_MS, self, self._save)
