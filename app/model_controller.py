"""Loading: which model next, what happens to a running reply or load, what is remembered, what can be fetched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.host import EngineHost
from app.live_settings import LiveSettings
from app.states import Command, HostState, is_legal
from engine.records import ModelInfo

RECENT = 6
STARTER = "starter"
LOADED_WITH = ("context", "virtual_memory")  # settings that count from the next load on


class ModelController(QObject):
    """Asks the host for loads. loading(model) when one begins; recent_changed(models); starter_missing()."""

    loading = Signal(str)
    starter_missing = Signal()
    recent_changed = Signal(object)

    def __init__(
        self,
        host: EngineHost,
        settings: LiveSettings,
        starter_installed: Callable[[], bool],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._starter_installed = starter_installed
        self._host = host
        self._settings = settings
        self._pending: str | None = None
        self._asked: str | None = None
        host.state_changed.connect(self._on_state)
        host.model_loaded.connect(self._on_loaded)
        settings.changed.connect(self._on_setting)

    @Slot(str)
    def load(self, model: str) -> None:
        """Load a model as soon as the engine is free: a running load is cancelled, a running reply stopped first."""
        if model == STARTER and not self._starter_installed():
            self.starter_missing.emit()
        elif is_legal(self._host.state, Command.LOAD):
            self._begin(model)
        elif self._host.state is not HostState.CLOSED:
            self._pending = model
            if not self._host.cancel_load():
                self._host.stop()

    @Slot()
    def load_again(self) -> None:
        """Load the model that is there, or that could not be loaded, with the settings as they are now."""
        self.load(self._asked or self._settings.current.model)

    @Slot()
    def cancel(self) -> None:
        """Give up the running load and what was to follow it."""
        self._pending = None
        self._host.cancel_load()

    @Slot()
    def restart(self) -> None:
        """Another engine in place of the present one, with the same model."""
        model = self._asked
        if self._host.restart() and model is not None:
            self._pending = model

    @Slot()
    def unload(self) -> None:
        """Give the model's memory back."""
        self._host.unload()

    def _begin(self, model: str) -> None:
        self._asked = model
        self.loading.emit(model)
        self._host.load(model, self._settings.current.loading())

    @Slot(object)
    def _on_state(self, _: HostState) -> None:
        if self._pending is not None and is_legal(self._host.state, Command.LOAD):
            model, self._pending = self._pending, None
            self._begin(model)

    @Slot(object)
    def _on_loaded(self, _: ModelInfo) -> None:
        if self._asked is None:
            return
        known = self._asked if self._asked == STARTER else str(Path(self._asked).absolute())
        self._settings.set("model", known)
        recent = tuple(model for model in self._settings.current.recent_models if model != known)
        if known != STARTER:
            self._settings.set("recent_models", (known, *recent)[:RECENT])
            self.recent_changed.emit(self._settings.current.recent_models)

    @Slot(str, object)
    def _on_setting(self, name: str, _: object) -> None:
        if name in LOADED_WITH and self._host.info is not None and self._asked is not None:
            self.load(self._asked)


def droppable(path: str) -> bool:
    """Whether a dropped path looks like a model: a folder or a GGUF file."""
    target = Path(path)
    return target.is_dir() or (target.is_file() and target.suffix.lower() == ".gguf")
