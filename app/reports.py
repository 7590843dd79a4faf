"""Reports in the window: what "Export report…" in a reply's menu does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject, QStandardPaths, Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from app.chat_controller import ChatController
from app.conversation import Turn
from app.live_settings import LiveSettings
from app.recorded import recording_of
from app.report.files import write_report
from app.ui.labels import reply_note
from app.ui.notices import Notices
from app.ui.reply_view import ReplyView
from engine.errors import RecordingError


def ask_report(parent: QWidget, name: str) -> str:
    """Where the report is to be; empty when the user thinks better of it."""
    title = QCoreApplication.translate("Reports", "Export report")
    kinds = QCoreApplication.translate("Reports", "Report: page, picture and replay (*.html)")
    folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    path, _ = QFileDialog.getSaveFileName(parent, title, str(Path(folder) / name), kinds)
    return path


class Reports(QObject):
    """Writes reports. ask: where to (replaced in tests)."""

    def __init__(
        self,
        chat: ChatController,
        settings: LiveSettings,
        notices: Notices,
        window: QWidget,
        ask: Callable[[QWidget, str], str] = ask_report,
    ) -> None:
        super().__init__(window)
        self._chat = chat
        self._settings = settings
        self._notices = notices
        self._window = window
        self.ask = ask
        chat.reply_shown.connect(self._on_shown)

    @Slot(object, object)
    def _on_shown(self, view: ReplyView, _: Turn) -> None:
        view.report_requested.connect(self._on_requested)

    @Slot()
    def _on_requested(self) -> None:
        view = self.sender()
        if isinstance(view, ReplyView):
            self._export(self._chat.chats.current.turn(view.property("replyId")))

    @Slot()
    def export_last(self) -> None:
        """The report of the last finished reply of the open chat."""
        self._export(self._chat.last_finished)

    def _export(self, turn: Turn | None) -> None:
        """Ask where to and write."""
        if turn is None:
            return
        made = datetime.now().astimezone().replace(microsecond=0)
        path = self.ask(self._window, f"specular-report-{made:%Y-%m-%d-%H%M%S}.html")
        if path:
            self._write(Path(path), turn, made)

    def _write(self, path: Path, turn: Turn, made: datetime) -> None:
        """Write, and say where or why not."""
        QGuiApplication.setOverrideCursor(Qt.CursorShape.WaitCursor)  # some seconds for 20,000 tokens
        try:
            keep = self._settings.current.keep_ghosts
            files = write_report(path, recording_of(turn), keep_ghosts=keep, made=made)
        except RecordingError as error:
            self._notices.tell(str(error))
            return
        finally:
            QGuiApplication.restoreOverrideCursor()
        words = self.tr("report saved as {page}, with .png and .json beside it").replace("{page}", files[0].name)
        view = self._chat.view_of(turn.reply.reply_id) if turn.reply is not None else None
        if view is not None:
            view.set_note(" · ".join(filter(None, [reply_note(turn), words])))
