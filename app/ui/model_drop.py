"""Dropping a model folder or a GGUF file anywhere on the window loads it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, QObject, Signal
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from app.model_controller import droppable

_DRAGS = (QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop)


def dropped_model(data: QMimeData) -> str | None:
    """The path of the one thing that is dragged, if it can be a model; several things are none."""
    paths = [url.toLocalFile() for url in data.urls() if url.isLocalFile()]
    return paths[0] if len(paths) == 1 and droppable(paths[0]) else None


class ModelDrop(QObject):
    """Watches a window and the text fields in it, which would otherwise take the path as text. dropped(path)."""

    dropped = Signal(str)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        window.setAcceptDrops(True)
        window.installEventFilter(self)
        for area in window.findChildren(QAbstractScrollArea):
            area.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _DRAGS and isinstance(event, QDropEvent):
            path = dropped_model(event.mimeData())
            if path is not None:
                event.acceptProposedAction()
                if event.type() is QEvent.Type.Drop:
                    self.dropped.emit(path)
                return True
        return False
