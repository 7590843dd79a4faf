"""The question of the first run: shall the desktop's menu have Specular? And the same as a command, at any time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from app.desktop.shortcut import install_shortcut, uninstall_shortcut
from app.host import EngineHost
from app.live_settings import LiveSettings
from app.states import HostState
from app.ui.notices import Notices

CLOSE_SECONDS = 5.0


class ShortcutOffer(QObject):
    """Asks once, when the first model is there and nothing else is to be told. The desktop's tools may take seconds,
    so that a thread waits for them."""

    _done = Signal(str)

    def __init__(self, host: EngineHost, settings: LiveSettings, notices: Notices, parent: QObject) -> None:
        super().__init__(parent)
        self._host, self._settings, self._notices = host, settings, notices
        self._thread: threading.Thread | None = None
        self._done.connect(notices.tell)
        notices.shortcut_wanted.connect(self.install)
        host.state_changed.connect(self._on_state)

    def ask_once(self) -> None:
        """Ask as soon as it fits, unless it has been asked before."""
        if not self._settings.current.shortcut_asked:
            self._host.model_loaded.connect(self._on_model)

    @Slot()
    def _on_model(self) -> None:
        if not self._settings.current.shortcut_asked and self._notices.silent:
            self._settings.set("shortcut_asked", True)
            self._notices.offer_shortcut()

    @Slot()
    def install(self) -> None:
        """Put Specular into the desktop's menu."""
        self._begin(lambda: install_shortcut()[1])

    @Slot()
    def uninstall(self) -> None:
        """Take it out again."""
        self._begin(lambda: uninstall_shortcut()[1])

    def _begin(self, work: Callable[[], str]) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=lambda: self._done.emit(work()), name="shortcut", daemon=True)
            self._thread.start()

    @Slot(object)
    def _on_state(self, state: HostState) -> None:
        if state is HostState.CLOSED and self._thread is not None:
            self._thread.join(CLOSE_SECONDS)
