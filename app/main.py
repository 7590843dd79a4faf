"""Starts the window. Nothing that this imports imports torch: the engine thread does, after the first paint."""

from __future__ import annotations

import argparse
import faulthandler
import logging
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app import icons, language, theme
from app.host import EngineHost
from app.live_settings import LiveSettings
from app.log_file import logging_to_file
from app.model_controller import droppable
from app.opening import Opening
from app.settings import ENGLISH, AppSettings
from app.settings_store import Loaded, SettingsStore
from app.single_instance import SingleInstance, instance_name
from app.smoke import QUESTION, DemoRun, PictureRun, SmokeRun
from app.ui.main_window import MainWindow
from app.worker import EngineFactory, EngineLike, fault_sentence

log = logging.getLogger(__name__)

APP_ID = "specular"


def make_engine() -> EngineLike:
    """The real engine. Called in the engine thread, because importing it takes seconds."""
    from engine.engine import Engine

    return Engine()


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line of the window."""
    parser = argparse.ArgumentParser(prog="specular", description="Chat with a model that drafts and verifies itself.")
    parser.add_argument("file", nargs="?", default="", help="a model, an exported chat or a replay to open")
    parser.add_argument(
        "--install-shortcut", action="store_true", help="put Specular into the desktop's menu, and exit"
    )
    parser.add_argument("--uninstall-shortcut", action="store_true", help="take it out again, and exit")
    parser.add_argument("--model", help="a model folder, a .gguf file, or starter; the last one used by default")
    parser.add_argument("--smoke", metavar="OUT.png", help="ask the starter model one question, save a picture, exit")
    parser.add_argument("--smoke-theme", choices=("light", "dark", "contrast"), default="dark", help="its theme")
    parser.add_argument("--smoke-language", choices=("en", "zh_CN"), default="en", help="language of that picture")
    parser.add_argument("--smoke-prompt", metavar="TEXT", action="append", help="its question; more make a chat")
    parser.add_argument("--demo", action="store_true", help="replay the recorded demo; no model is loaded")
    return parser.parse_args(argv)


def make_application() -> QApplication:
    """The QApplication with names, icon and scaling set; the one that exists already where there is one."""
    existing = QApplication.instance()
    if isinstance(existing, QApplication):
        return existing
    QGuiApplication.setHighDpiScaleFactorRoundingPolicy(Qt.HighDpiScaleFactorRoundingPolicy.PassThrough)
    QGuiApplication.setDesktopFileName(APP_ID)
    if sys.platform == "win32":
        import ctypes

        ctypes.windll.shell32.SetCurrentProcessExplicitAppUserModelID(APP_ID)
    app = QApplication([APP_ID])
    app.setApplicationName(APP_ID)
    app.setApplicationDisplayName("Specular")
    app.setOrganizationName(APP_ID)
    return app


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
    ) -> None:
        super().__init__()
        self._model = loaded.settings.model if model is None else model
        self._started, self._file = started, file
        self.host = EngineHost(factory, self)
        self.settings = LiveSettings(store, loaded.settings, self)
        self.window = MainWindow(self.host, self.settings, loaded.notes, history_folder=history)
        self.opening = Opening(self.window)
        self.window.setWindowIcon(icons.icon("brand", "accent", 64))
        self.window.painted.connect(self._on_painted, Qt.ConnectionType.QueuedConnection)

    @Slot()
    def _on_painted(self) -> None:
        if self._started:
            print_timing(self._started)
        if self._file:
            self.opening.open(self._file)
        if self._model and not (self._file and droppable(self._file)):  # a chat or a replay is opened beside the model
            self.window.models.load(self._model)
        elif not self._file:
            self.window.show_demo()

    def dismiss(self) -> None:
        """Close and destroy the window now: left to the garbage collector it might go in any order, in any thread."""
        self.window.close()
        self.window.deleteLater()
        self.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)

    def hook(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """An exception that reached Qt's event loop is shown, and the window stays."""
        details = "".join(traceback.format_exception(kind, error, trace))
        log.error("An exception reached the event loop.\n%s", details)
        if sys.__stderr__ is not None:
            sys.__stderr__.write(details)
        self.window.notices.failed(fault_sentence(error), details)


def print_timing(started: str) -> None:
    """Seconds to first paint since `started` (of time.time()), CPU seconds in it, and whether torch was imported."""
    busy, seconds = time.process_time(), time.time() - float(started)
    torch = "torch" in sys.modules
    print(f"first paint {seconds:.2f} s after process start, CPU {busy:.2f} s, torch imported: {torch}", flush=True)


def main(argv: list[str] | None = None, factory: EngineFactory = make_engine) -> int:
    """Open the window and run it until it is closed; the exit status. `factory` makes the engine, in its thread."""
    options = arguments(argv)
    if options.install_shortcut or options.uninstall_shortcut:
        return change_shortcut(install=options.install_shortcut)
    if sys.stderr is not None and not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__ or sys.stderr)
    if options.smoke:
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
        with tempfile.TemporaryDirectory() as folder:
            loaded = Loaded(AppSettings(theme=options.smoke_theme, language=options.smoke_language, keep_ghosts=True))
            smoke: Callable[[MainWindow, EngineHost], PictureRun]
            if options.demo:
                smoke = partial(DemoRun, target=options.smoke)
            else:
                smoke = partial(SmokeRun, target=options.smoke, questions=options.smoke_prompt or (QUESTION,))
            model = "" if options.demo else options.model or "starter"
            return run(loaded, SettingsStore(Path(folder)), model, factory, smoke)
    file = str(Path(options.file).absolute()) if options.file else ""
    make_application()
    instance = SingleInstance(instance_name())
    if not instance.begin(file):
        return 0
    store = SettingsStore()
    with logging_to_file():
        log.info("Specular begins.")
        model = "" if options.demo else options.model
        try:
            return run(store.load(), store, model, factory, file=file, instance=instance)
        finally:
            instance.end()


def change_shortcut(*, install: bool) -> int:
    """Make the desktop's shortcut or take it away, and say so; the exit status."""
    from app.desktop.shortcut import install_shortcut, uninstall_shortcut

    if QGuiApplication.instance() is None:  # icons are drawn, but nothing is shown
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
        make_application()
    done, sentence = install_shortcut() if install else uninstall_shortcut()
    print(sentence, file=sys.stdout if done else sys.stderr)
    return 0 if done else 1


def run(
    loaded: Loaded,
    store: SettingsStore,
    model: str | None,
    factory: EngineFactory,
    smoke: Callable[[MainWindow, EngineHost], PictureRun] | None = None,
    *,
    file: str = "",
    instance: SingleInstance | None = None,
) -> int:
    """Show the window with these settings; with `smoke`, only until its picture is saved.

    file: to be opened at once. instance: tells of later starts, which the window then serves.
    """
    app = make_application()
    theme.apply(app, loaded.settings.theme)
    language.install(app, loaded.settings.language)
    history = store.folder if smoke else None  # what a picture is taken of is not the user's chats
    timing = os.environ.get("SPECULAR_TIMING", "")
    launcher = Launcher(factory, store, loaded, model, started=timing, history=history, file=file)
    if instance is not None:
        instance.asked.connect(launcher.opening.come)
        launcher.window.more_commands.shortcut.ask_once()
    app.setQuitOnLastWindowClosed(False)  # Qt's own quit may arrive after the loop has ended; ours comes in time
    launcher.window.closed.connect(app.quit)
    smoke_run = smoke(launcher.window, launcher.host) if smoke else None
    old_hook: Callable[..., object] = sys.excepthook
    sys.excepthook = launcher.hook
    old_interrupt = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        launcher.window.show()
        app.exec()
    finally:
        sys.excepthook = old_hook
        signal.signal(signal.SIGINT, old_interrupt)
        launcher.dismiss()
        language.install(app, ENGLISH)
    return smoke_run.exit_status if smoke_run else 0


if __name__ == "__main__":
    sys.exit(main())
