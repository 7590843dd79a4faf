"""The window with what it is started with: the first load, the recovery after a run that did not end well."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, Slot

from app import icons
from app.faults import Faults
from app.host import EngineHost, abandon_process
from app.live_settings import LiveSettings
from app.model_controller import droppable
from app.opening import Opening
from app.recovery import Recovery
from app.run_marker import LOADING, Crash, RunMarker
from app.settings_store import Loaded, SettingsStore
from app.states import HostState
from app.ui.main_window import MainWindow
from app.worker import EngineFactory


class Launcher(QObject):
    """Holds the window and begins the first load once the window has been painted; the demo where `model` is ""."""

    def __init__(
        self,
        factory: EngineFactory,
        store: SettingsStore,
        loaded: Loaded,
        model: str | None,
        *,
        started: str = "",
        history: Path | None = None,
        file: str = "",
        marker: RunMarker | None = None,
        crash: Crash | None = None,
    ) -> None:
        """marker: told what is done. crash: what is left of the run before, if that did not end well."""
        super().__init__()
        self._model = loaded.settings.model if model is None else model
        self._started, self._file = started, file
        self._marker, self._crash, self._safe = marker, crash, store.safe
        self.host = EngineHost(factory, self, on_hung=marker.abandon if marker is not None else abandon_process)
        self.settings = LiveSettings(store, loaded.settings, self)
        self.window = MainWindow(self.host, self.settings, loaded.notes, history_folder=history)
        self.opening = Opening(self.window)
        self.window.setWindowIcon(icons.icon("brand", "accent", 64))
        self.recovery = Recovery(self.window, crash) if crash is not None else None
        self.faults = Faults(self)
        self.faults.shown.connect(self.window.notices.failed)
        self.faults.again.connect(self.window.notices.failed_again)
        self.host.state_changed.connect(self._note_state)
        self.window.models.loading.connect(self._note_load)
        self.window.painted.connect(self._on_painted, Qt.ConnectionType.QueuedConnection)

    @Slot()
    def _on_painted(self) -> None:
        if self._started:
            print_timing(self._started)
        if self._file:
            self.opening.open(self._file)
        if self._crash is not None and self._crash.loading and not self._file:
            pass  # it may have been the load that brought the program down
        elif self._model and not (
            self._file and droppable(self._file)
        ):  # a chat or a replay is opened beside the model
            self.window.models.load(self._model)
        elif not self._file and not self._safe:
            self.window.show_demo()

    @Slot(object)
    def _note_state(self, state: HostState) -> None:
        if self._marker is not None and state is not HostState.LOADING:
            self._marker.note(state.value)

    @Slot(str)
    def _note_load(self, model: str) -> None:
        if self._marker is not None:
            self._marker.note(LOADING + model)

    def dismiss(self) -> None:
        """Close and destroy the window now: left to the garbage collector it might go in any order, in any thread."""
        self.window.close()
        self.window.deleteLater()
        self.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def print_timing(started: str) -> None:
    """Seconds to first paint since `started` (of time.time()), CPU seconds in it, and whether torch was imported."""
    busy, seconds = time.process_time(), time.time() - float(started)
    torch = "torch" in sys.modules
    print(f"first paint {seconds:.2f} s after process start, CPU {busy:.2f} s, torch imported: {torch}", flush=True)
