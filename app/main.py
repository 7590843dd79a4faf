"""Starts the window. Nothing that this imports imports torch: the engine thread does, after the first paint."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app import language, theme
from app.end_signals import EndSignals
from app.host import EngineHost
from app.launcher import Launcher
from app.log_file import logging_to_file
from app.run_marker import Crash, RunMarker
from app.settings import ENGLISH, AppSettings
from app.settings_store import Loaded, SettingsStore
from app.single_instance import SingleInstance, instance_name
from app.smoke import QUESTION, DemoRun, PictureRun, SmokeRun
from app.ui.main_window import MainWindow
from app.worker import EngineFactory, EngineLike
from engine.files.paths import OVERRIDE

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
    parser.add_argument("--data-dir", metavar="FOLDER", help="keep chats, settings, models and caches in this folder")
    parser.add_argument("--safe-mode", action="store_true", help="default settings for this run, and no model loaded")
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


def main(argv: list[str] | None = None, factory: EngineFactory = make_engine) -> int:
    """Open the window and run it until it is closed; the exit status. `factory` makes the engine, in its thread."""
    options = arguments(argv)
    if options.data_dir:
        os.environ[OVERRIDE] = str(Path(options.data_dir).expanduser().absolute())
    if options.install_shortcut or options.uninstall_shortcut:
        return change_shortcut(install=options.install_shortcut)
    if options.smoke:
        return take_picture(options, factory)
    file = str(Path(options.file).absolute()) if options.file else ""
    make_application()
    instance = SingleInstance(instance_name())
    if not instance.begin(file):
        return 0
    with ExitStack() as at_end:
        at_end.callback(instance.end)
        at_end.enter_context(logging_to_file())
        marker = RunMarker()
        crash = marker.begin()
        at_end.callback(marker.end)
        log.info("Specular begins.")
        store = at_end.enter_context(safe_store()) if options.safe_mode else SettingsStore()
        model = "" if options.demo or options.safe_mode else options.model
        return run(store.load(), store, model, factory, file=file, instance=instance, marker=marker, crash=crash)


@contextmanager
def safe_store() -> Iterator[SettingsStore]:
    """Settings in a folder that is gone in the end: the user's are neither read nor written."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield SettingsStore(Path(folder), safe=True)


def take_picture(options: argparse.Namespace, factory: EngineFactory) -> int:
    """Have the window make the picture that the command line asks for; the exit status."""
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
    marker: RunMarker | None = None,
    crash: Crash | None = None,
) -> int:
    """Show the window with these settings; with `smoke`, only until its picture is saved.

    file: to be opened at once. instance: tells of later starts, which the window then serves.
    """
    app = make_application()
    theme.apply(app, loaded.settings.theme)
    language.install(app, loaded.settings.language)
    history = store.folder if smoke else None  # what a picture is taken of is not the user's chats
    timing = os.environ.get("SPECULAR_TIMING", "")
    launcher = Launcher(
        factory, store, loaded, model, started=timing, history=history, file=file, marker=marker, crash=crash
    )
    if instance is not None:
        instance.asked.connect(launcher.opening.come)
        launcher.window.more_commands.shortcut.ask_once()
    app.setQuitOnLastWindowClosed(False)  # Qt's own quit may arrive after the loop has ended; ours comes in time
    launcher.window.closed.connect(app.quit)
    smoke_run = smoke(launcher.window, launcher.host) if smoke else None
    signals = EndSignals(launcher.window.close)
    signals.begin()
    launcher.faults.begin()
    try:
        launcher.window.show()
        app.exec()
    finally:
        launcher.faults.end()
        signals.end()
        launcher.window.close()
        if launcher.host.left_behind:
            leave_at_once(marker)
        launcher.dismiss()
        language.install(app, ENGLISH)
    return smoke_run.exit_status if smoke_run else 0


def leave_at_once(marker: RunMarker | None) -> None:
    """End the process although a thread of it hangs. All is written and closed."""
    if marker is not None:
        marker.end()
    logging.shutdown()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
