"""Commands of the window beside those it has keys for from the start: by key, or by the palette alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog

from app.desktop.offer import ShortcutOffer
from app.log_file import end_of_log
from app.states import Command, HostState, is_legal
from app.ui.command_palette import CommandPalette
from app.ui.commands import MODEL, REPLY, WINDOW
from app.ui.log_pane import LogPane
from app.ui.shortcuts_sheet import ShortcutsSheet

if TYPE_CHECKING:
    from app.host import EngineHost
    from app.live_settings import LiveSettings
    from app.ui.main_window import MainWindow


class WindowCommands(QObject):
    """Adds the commands, and owns the panes that some of them open; a pane is made when it is first wanted."""

    def __init__(self, window: MainWindow, host: EngineHost, settings: LiveSettings) -> None:
        super().__init__(window)
        self._window, self._host, self._settings = window, host, settings
        self.palette: CommandPalette | None = None
        self.sheet: ShortcutsSheet | None = None
        self.log: LogPane | None = None
        self.shortcut = ShortcutOffer(host, settings, window.notices, self)
        self._add()
        host.state_changed.connect(self._on_state)

    def _add(self) -> None:
        window, add = self._window, self._window.commands.add
        add(REPLY, self.tr("Replay the last reply"), window.replays.start_last, possible=self._finished)
        add(REPLY, self.tr("Export a report of the last reply…"), window.reports.export_last, possible=self._finished)
        add(MODEL, self.tr("Models of this computer…"), window.model_management.show)
        add(MODEL, self.tr("Open a model folder…"), window.choose_folder)
        add(MODEL, self.tr("Open a GGUF file…"), window.choose_file)
        add(MODEL, self.tr("Load the starter model"), window.load_starter)
        add(MODEL, self.tr("Restart the engine"), window.models.restart, possible=lambda: self._can(Command.RESTART))
        add(MODEL, self.tr("Unload the model"), window.models.unload, possible=lambda: self._can(Command.UNLOAD))
        add(MODEL, self.tr("Prove it: compare with plain decoding…"), window.jobs.prove, possible=self._can_prove)
        add(MODEL, self.tr("Calibrate the draft…"), window.jobs.calibrate, possible=self._can_calibrate)
        add(MODEL, self.tr("Benchmark: a few questions both ways…"), window.jobs.bench, possible=self._can_bench)
        add(WINDOW, self.tr("Watch the demo"), window.show_demo)
        add(WINDOW, self.tr("Open a replay…"), window.choose_replay)
        add(WINDOW, self.tr("Light or dark theme"), window.toggle_theme)
        add(WINDOW, self.tr("Commands"), self.show_palette, "Ctrl+Shift+P")
        add(WINDOW, self.tr("Keyboard shortcuts"), self.show_sheet, "F1")
        add(WINDOW, self.tr("Add Specular to the desktop's menu"), self.shortcut.install)
        add(WINDOW, self.tr("Take Specular out of the desktop's menu"), self.shortcut.uninstall)
        add(WINDOW, self.tr("Show the log"), self.show_log)
        add(WINDOW, self.tr("Copy diagnostics"), self.copy_diagnostics)

    @Slot()
    def show_palette(self) -> None:
        """The list of commands, to be typed into."""
        if self.palette is None:
            self.palette = CommandPalette(self._window.commands, self._window)
        self.palette.open_over(self._window)

    @Slot()
    def show_sheet(self) -> None:
        """All shortcuts."""
        if self.sheet is None:
            self.sheet = ShortcutsSheet(self._window.commands, self._window)
        self.sheet.open()

    @Slot()
    def show_log(self) -> None:
        """The log viewer."""
        if self.log is None:
            self.log = LogPane(self.diagnostics, self._window)
        self.log.read()
        self.log.open()

    @Slot()
    def copy_diagnostics(self) -> None:
        """What helps with a fault, into the clipboard."""
        QGuiApplication.clipboard().setText(self.diagnostics())
        self._window.notices.tell(self.tr("The diagnostics are in the clipboard."))

    def diagnostics(self) -> str:
        """The text."""
        return self.diagnostics_with(end_of_log())

    def diagnostics_with(self, log: str, lines: int | None = None) -> str:
        """The text with so many lines of another log."""
        from app.diagnostics import diagnostics  # what it asks for versions takes a while to import

        return diagnostics(self._settings.current, self._host.info, log, lines=lines)

    def add_crash_report(self, show: Callable[[], object]) -> None:
        """There is a report of the last run; `show` shows it."""
        self._window.commands.add(WINDOW, self.tr("Report of the last run"), show)

    def _finished(self) -> bool:
        return self._window.chat.last_finished is not None

    def _can(self, command: Command) -> bool:
        return is_legal(self._host.state, command)

    def _can_prove(self) -> bool:
        return self._can(Command.PROVE)

    def _can_calibrate(self) -> bool:
        return self._can(Command.CALIBRATE)

    def _can_bench(self) -> bool:
        return self._can(Command.BENCH)

    @Slot(object)
    def _on_state(self, state: HostState) -> None:
        if state is HostState.CLOSED:
            panes: tuple[QDialog | None, ...] = (self.palette, self.sheet, self.log)
            for pane in panes:
                if pane is not None:
                    pane.hide()
