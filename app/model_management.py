"""The manager of models in the window: made when it is first wanted, told what is loaded, ended with the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.host import EngineHost
from app.live_settings import LiveSettings
from app.model_controller import ModelController
from app.model_library import ModelLibrary

if TYPE_CHECKING:
    from app.ui.model_manager import ModelManager  # its cards bring numpy, for which the first paint does not wait


class ModelManagement(QObject):
    """Owned by the window, over which the manager stands."""

    def __init__(self, host: EngineHost, models: ModelController, settings: LiveSettings, window: QWidget) -> None:
        super().__init__(window)
        self._host, self._models, self._settings, self._window = host, models, settings, window
        self._manager: ModelManager | None = None
        self.library = ModelLibrary(self)
        host.model_loaded.connect(self._show_loaded)
        host.model_gone.connect(self._show_loaded)

    @property
    def manager(self) -> ModelManager:
        """The manager's window."""
        if self._manager is None:
            from app.ui.model_manager import ModelManager

            self._manager = ModelManager(self.library, self._window)
            self._manager.load.connect(self._models.load)
            self._show_loaded()
        return self._manager

    @Slot()
    def show(self) -> None:
        """Open the manager."""
        self.manager.open_list()

    def close(self) -> None:
        """The window closes: what is running ends, what has arrived of a download stays."""
        self.library.close()
        if self._manager is not None:
            self._manager.hide()

    @Slot()
    def _show_loaded(self) -> None:
        if self._manager is not None:
            self._manager.set_loaded(self._settings.current.model if self._host.info is not None else "")
