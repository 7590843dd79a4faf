"""Downloading a model by its name on the hub: the field, how far it is, and the ways to pause, go on and give up."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QProgressBar, QVBoxLayout, QWidget

from app.engine_words import in_user_words
from app.known_model import HubName, hub_name
from app.model_library import Download, Phase
from app.theme import PX_CONTROL, PX_LABEL, SPACING_BLOCK, SPACING_PART, SPACING_WIDE
from app.ui.model_words import size_words
from app.ui.panel import ElidedLabel, ToneLabel
from app.widgets.icon_button import TextButton

STEPS = 1000


class DownloadBox(QWidget):
    """wanted(HubName) when one is asked for; pause(), resume(), cancel()."""

    wanted = Signal(object)
    pause = Signal()
    resume = Signal()
    cancel = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = QLineEdit()
        self.field.setPlaceholderText(self.tr("OWNER/NAME, or OWNER/NAME/FILE.gguf"))
        self.field.setAccessibleName(self.tr("Model on the hub"))
        self.field.setClearButtonEnabled(True)
        self.field.returnPressed.connect(self._on_wanted)
        self.field.textChanged.connect(self._on_text)
        self.start_button = TextButton(self.tr("Download"), "secondary")
        self.start_button.clicked.connect(self._on_wanted)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setRange(0, STEPS)
        self.bar.setAccessibleName(self.tr("Progress of the download"))
        self.title = ElidedLabel("", "text", PX_LABEL, QFont.Weight.Medium)
        self.progress = ElidedLabel("", "text2", PX_LABEL)
        self.sentence = ToneLabel("", "error", PX_LABEL)
        self.sentence.setWordWrap(True)
        self.pause_button = TextButton(self.tr("Pause"), "secondary", "pause")
        self.resume_button = TextButton(self.tr("Resume"), "secondary", "play")
        self.cancel_button = TextButton(self.tr("Cancel"), "ghost")
        self.cancel_button.setAccessibleName(self.tr("Give the download up and delete what arrived"))
        self.pause_button.clicked.connect(self.pause)
        self.resume_button.clicked.connect(self.resume)
        self.cancel_button.clicked.connect(self.cancel)
        self._running = False
        self._lay_out()
        self.show_download(Download())

    def show_download(self, download: Download) -> None:
        """How it stands."""
        phase = download.phase
        self._running = phase is Phase.RUNNING
        begun = phase in (Phase.RUNNING, Phase.PAUSED, Phase.FAILED)
        self._state.setVisible(begun)
        self.sentence.setVisible(bool(download.sentence))
        self.sentence.setText(in_user_words(download.sentence))
        self.pause_button.setVisible(self._running)
        self.resume_button.setVisible(phase in (Phase.PAUSED, Phase.FAILED))
        share = download.done_bytes / download.total_bytes if download.total_bytes else 0.0
        self.bar.setValue(round(share * STEPS))
        self.title.setText(download.name.shown if download.name is not None else "")
        self.progress.setText(self._words(download))
        if phase is Phase.DONE:
            self.field.clear()
        self._on_text()

    def _words(self, download: Download) -> str:
        if not download.total_bytes:
            return self.tr("Asking the hub…") if download.phase is Phase.RUNNING else ""
        words = self.tr("{done} of {total}")
        words = words.replace("{done}", size_words(download.done_bytes))
        words = words.replace("{total}", size_words(download.total_bytes))
        if download.phase is Phase.PAUSED:
            return words + " · " + self.tr("paused")
        if download.rate is None:
            return words
        return words + " · " + self.tr("{rate} MB/s").replace("{rate}", f"{download.rate / 1e6:.1f}")

    @Slot()
    def _on_text(self) -> None:
        name = hub_name(self.field.text())
        self.start_button.setEnabled(name is not None and not self._running)

    @Slot()
    def _on_wanted(self) -> None:
        name = hub_name(self.field.text())
        if name is not None and not self._running:
            self.wanted.emit(name)

    def _lay_out(self) -> None:
        heading = ToneLabel(self.tr("Download"), "text", PX_CONTROL, QFont.Weight.Medium)
        about = ToneLabel(
            self.tr(
                "From the model hub, with its login: only safetensors and the texts beside them, or one GGUF file."
            ),
            "text2",
            PX_LABEL,
        )
        about.setWordWrap(True)
        asked = QHBoxLayout()
        asked.setSpacing(SPACING_PART)
        asked.addWidget(self.field, 1)
        asked.addWidget(self.start_button)
        self._state = QWidget()
        words = QHBoxLayout()
        words.setSpacing(SPACING_PART)
        words.addWidget(self.title, 1)
        words.addWidget(self.progress)
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACING_PART)
        buttons.addWidget(self.bar, 1)
        for button in (self.pause_button, self.resume_button, self.cancel_button):
            buttons.addWidget(button)
        inside = QVBoxLayout(self._state)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.setSpacing(SPACING_PART)
        inside.addLayout(words)
        inside.addLayout(buttons)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACING_WIDE, SPACING_BLOCK, SPACING_WIDE, SPACING_BLOCK)
        column.setSpacing(SPACING_PART)
        for part in (heading, about):
            column.addWidget(part)
        column.addLayout(asked)
        column.addWidget(self._state)
        column.addWidget(self.sentence)


def named(text: str) -> HubName:
    """The name of an unfinished download, as the list tells it."""
    found = hub_name(text)
    return found if found is not None else HubName(text)
