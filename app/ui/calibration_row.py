"""The row of the settings page that tells which draft is in use and offers to calibrate it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.engine_words import list_in_user_words
from app.states import Command, HostState, is_legal
from app.theme import PX_CONTROL, PX_LABEL, SPACING_WIDE
from app.ui.panel import ToneLabel
from app.widgets.icon_button import TextButton
from engine.calibration.report import in_words
from engine.records import ModelInfo


class CalibrationRow(QWidget):
    """Signal: calibrate() when the button is pressed."""

    calibrate = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        label = ToneLabel(self.tr("Calibration"), "text", PX_CONTROL, QFont.Weight.Medium)
        self._help = ToneLabel("", "text2", PX_LABEL)
        self._help.setWordWrap(True)
        self.button = TextButton(self.tr("Calibrate…"), "secondary")
        self.button.clicked.connect(self.calibrate)
        text = QVBoxLayout()
        text.setSpacing(2)
        text.addWidget(label)
        text.addWidget(self._help)
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACING_WIDE, 9, SPACING_WIDE, 9)
        row.setSpacing(SPACING_WIDE)
        row.addLayout(text, 1)
        row.addWidget(self.button)
        self.show_model(None)
        self.show_state(HostState.NO_MODEL)

    @property
    def help_words(self) -> str:
        """What is said beside the button."""
        return self._help.text()

    def show_model(self, info: ModelInfo | None) -> None:
        """Which draft the loaded model has where nothing else is asked for."""
        about = self.tr("Finds the fastest draft for the model on this computer, in about two minutes.")
        if info is None:
            self._help.setText(about)
            return
        words = self.tr("In use, measured here: {recipe}.") if info.calibrated else self.tr("In use: {recipe}.")
        self._help.setText(f"{about} {words.format(recipe=list_in_user_words(in_words(info.recipe)))}")

    def show_state(self, state: HostState) -> None:
        """Whether it can be done now."""
        ready = is_legal(state, Command.CALIBRATE)
        self.button.setEnabled(ready)
        self.button.setToolTip(
            "" if ready else self.tr("Possible when a model is loaded and no reply is being written")
        )
