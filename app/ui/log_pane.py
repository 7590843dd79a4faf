"""The log viewer: the end of the program's log, and the diagnostics for a report, without personal paths."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication, QTextCursor
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.log_file import end_of_log, log_path
from app.theme import PX_LABEL, SPACING_BLOCK, SPACING_PART, SPACING_TURN, mono_font
from app.ui.panel import ToneLabel
from app.widgets.icon_button import TextButton

SIZE = (760, 520)


class LogPane(QDialog):
    """diagnostics: makes the text that is copied. shown: the text that is read here, the log's end where it is None."""

    def __init__(
        self, diagnostics: Callable[[], str], parent: QWidget | None = None, shown: Callable[[], str] | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Log"))
        self.resize(*SIZE)
        self._diagnostics = diagnostics
        self._shown = shown or end_of_log
        self.view = QPlainTextEdit()
        self.view.setReadOnly(True)
        self.view.setFont(mono_font(PX_LABEL))
        self.view.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.view.setAccessibleName(self.tr("End of the log"))
        self.told = ToneLabel("", "text2", PX_LABEL)
        self.copy_button = TextButton(self.tr("Copy diagnostics"), "secondary", "copy")
        self.copy_button.setToolTip(
            self.tr("Versions, machine, model, settings and the log's end, without names and folders of yours")
        )
        self.copy_button.clicked.connect(self.copy)
        self.folder_button = TextButton(self.tr("Open folder"), "secondary", "folder")
        self.folder_button.clicked.connect(self._open_folder)
        self.again_button = TextButton(self.tr("Read again"), "secondary", "regenerate")
        self.again_button.clicked.connect(self.read)
        self.again_button.setVisible(shown is None)  # a report does not grow
        self.close_button = TextButton(self.tr("Close"), "primary")
        self.close_button.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACING_PART)
        buttons.addWidget(self.told, 1)
        for button in (self.copy_button, self.folder_button, self.again_button, self.close_button):
            buttons.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACING_TURN, SPACING_TURN, SPACING_TURN, SPACING_TURN)
        column.setSpacing(SPACING_BLOCK)
        column.addWidget(self.view, 1)
        column.addLayout(buttons)
        self.read()

    @Slot()
    def read(self) -> None:
        """Show the log as it is now, its end in view."""
        self.view.setPlainText(self._shown() or self.tr("Nothing has been logged."))
        self.view.moveCursor(QTextCursor.MoveOperation.End)
        self.told.setText("")

    @Slot()
    def copy(self) -> None:
        """Put the diagnostics into the clipboard."""
        QGuiApplication.clipboard().setText(self._diagnostics())
        self.told.setText(self.tr("Copied."))

    @Slot()
    def _open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(log_path().parent)))
