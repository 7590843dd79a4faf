"""After a run that did not end well: the chat that was open is back, and the report of it can be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.log_file import end_of_log
from app.run_marker import Crash
from app.ui.log_pane import LogPane

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

LOG_BYTES = 8000
MOST_LINES = 1000


class Recovery(QObject):
    """Brings back, offers, shows. To be made before the history is open."""

    def __init__(self, window: MainWindow, crash: Crash) -> None:
        super().__init__(window)
        self._window = window
        self._crash = crash
        self._log = end_of_log(most=LOG_BYTES)  # as it was: this run writes there too
        self.pane: LogPane | None = None
        window.history.opened.connect(self._on_history)
        window.notices.report_wanted.connect(self.show_report)
        window.more_commands.add_crash_report(self.show_report)

    def _offer(self, *, back: bool) -> None:
        """Say what happened, with the report behind a button. back: the chat that was open is again."""
        if self._crash.loading:
            words = self.tr("Specular ended while it loaded {model}, so it was not loaded again.")
            words = words.replace("{model}", Path(self._crash.loading).name)
        elif back:
            words = self.tr("Specular did not end as it should the last time. Your chat is back.")
        else:
            words = self.tr("Specular did not end as it should the last time.")
        self._window.notices.offer_report(words)

    @Slot()
    def show_report(self) -> None:
        """The report, without personal paths, to be read and copied."""
        if self.pane is None:
            self.pane = LogPane(self.report, self._window, self.report)
            self.pane.setWindowTitle(self.tr("Report of the last run"))
        self.pane.read()
        self.pane.open()

    def report(self) -> str:
        """Where the program stood, what the engine had been doing, the log's end, and what the diagnostics have."""
        log = f"{self._log}\n\n{self._crash.path.name}:\n{self._crash.text}"
        return self._window.more_commands.diagnostics_with(log, MOST_LINES)

    @Slot(object)
    def _on_history(self, interrupted: list[int]) -> None:
        back = self._window.chat.reopen()
        self._offer(back=back or bool(interrupted))
