"""Files that are given to the window at its start, by the desktop or by a second start: what is done with each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Slot

from app.history.exports import FORMAT as CHAT_FORMAT
from app.model_controller import droppable

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

HEAD_BYTES = 256


class Opening(QObject):
    """Opens paths in a window."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    @Slot(str)
    def come(self, path: str) -> None:
        """Come to the front, and open `path` where there is one."""
        window = self._window
        window.setWindowState((window.windowState() & ~Qt.WindowState.WindowMinimized) | Qt.WindowState.WindowActive)
        window.show()
        window.raise_()
        window.activateWindow()
        if path:
            self.open(path)

    def open(self, path: str) -> None:
        """A model is loaded, a chat taken in, a replay played; anything else is refused in a sentence."""
        window, target = self._window, Path(path)
        if droppable(path):
            window.show_chat()
            window.models.load(path)
        elif target.suffix.lower() == ".json" and target.is_file():
            window.show_chat()
            if is_chat(target):
                window.shelf.take_in(target)
            else:
                window.replays.open_file(target)
        else:
            words = self.tr("{path} is no model, chat or replay that Specular can open.")
            window.notices.tell(words.replace("{path}", path))


def is_chat(path: Path) -> bool:
    """Whether a JSON file begins as an exported chat does."""
    try:
        with path.open("rb") as file:
            return CHAT_FORMAT.encode() in file.read(HEAD_BYTES)
    except OSError:
        return False
