"""Takes text files that are dropped on the window or chosen along with the message, and has their tokens counted."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, Slot
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFileDialog, QWidget

from app.host import EngineHost
from app.text_files import FileRefused, TextFile, read_text_file
from app.ui.attachments import MOST
from app.ui.composer import Composer
from app.ui.conversation_view import ConversationView
from app.ui.model_drop import dropped_model

_DRAGS = (QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop)


class Attaching(QObject):
    """Watches a window and its text fields, as `ModelDrop` does, for what that leaves alone."""

    def __init__(self, host: EngineHost, composer: Composer, view: ConversationView, window: QWidget) -> None:
        super().__init__(window)
        self._host, self._composer, self._view, self._window = host, composer, view, window
        self._counting: dict[int, TextFile] = {}
        composer.attach_clicked.connect(self.choose)
        host.counted.connect(self._on_counted)
        host.model_loaded.connect(self._count_all)
        window.setAcceptDrops(True)
        window.installEventFilter(self)
        for area in window.findChildren(QAbstractScrollArea):
            area.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() not in _DRAGS or not isinstance(event, QDropEvent):
            return False
        paths = _files_in(event.mimeData())
        if not paths:
            return False
        event.acceptProposedAction()
        if event.type() is QEvent.Type.Drop:
            self.take(paths)
        return True

    @Slot()
    def choose(self) -> None:
        """Ask for files in the system's dialog."""
        paths, _ = QFileDialog.getOpenFileNames(self._window, self.tr("Take text files along"))
        self.take([Path(path) for path in paths])

    def take(self, paths: list[Path]) -> None:
        """Take files along; the first that is refused is told."""
        refused = ""
        for path in paths:
            try:
                file = read_text_file(path)
            except FileRefused as error:
                refused = refused or str(error)
                continue
            if not self._composer.attachments.add(file):
                refused = refused or self.tr("At most {count} files go along.").replace("{count}", str(MOST))
                break
            self._count(file)
        if refused:
            self._view.show_banner(refused)
        elif paths:
            self._composer.focus_input()

    def _count(self, file: TextFile) -> None:
        number = self._host.count(file.quoted())
        if number is not None:
            self._counting[number] = file

    @Slot()
    def _count_all(self) -> None:
        """Another model has another tokenizer."""
        for file in self._composer.attachments.files():
            self._count(file)

    @Slot(int, int)
    def _on_counted(self, number: int, tokens: int) -> None:
        file = self._counting.pop(number, None)
        if file is not None and tokens >= 0:
            self._composer.attachments.set_tokens(file, tokens)


def _files_in(data: QMimeData) -> list[Path]:
    """The files that are dragged, unless they are a model."""
    if dropped_model(data) is not None:
        return []
    return [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
