"""The models of this computer: the list with what each is and how it fits, adding by file or by drop, downloading."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.engine_words import in_user_words
from app.known_model import STARTER, UNFINISHED, KnownModel
from app.model_library import Download, ModelLibrary, Phase
from app.theme import PX_LABEL, SPACING_BLOCK, SPACING_PART, SPACING_TURN
from app.ui.download_box import DownloadBox, named
from app.ui.model_dialogs import ask_file, ask_folder
from app.ui.model_drop import ModelDrop
from app.ui.model_row import ModelRow
from app.ui.panel import ToneLabel
from app.ui.setting_rows import Card
from app.widgets.icon_button import TextButton

SIZE = (760, 620)


class ModelManager(QDialog):
    """A window of its own. load(model) when the user wants one, "starter" or a path. Downloads go on when it closes."""

    load = Signal(str)

    def __init__(self, library: ModelLibrary, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Models"))
        self._library = library
        self._loaded = ""
        self.rows: list[ModelRow] = []
        self.folder_button = TextButton(self.tr("Add folder…"), "secondary", "folder")
        self.folder_button.clicked.connect(self._on_folder)
        self.file_button = TextButton(self.tr("Add GGUF file…"), "secondary", "folder")
        self.file_button.clicked.connect(self._on_file)
        self.clear_button = TextButton(self.tr("Delete converted copies"), "ghost")
        self.clear_button.setToolTip(
            self.tr("A GGUF file is converted when it is first loaded. Deleted copies are made again then.")
        )
        self.clear_button.clicked.connect(library.clear_cache)
        self.close_button = TextButton(self.tr("Close"), "primary")
        self.close_button.clicked.connect(self.reject)
        self.outcome = ToneLabel("", "text2", PX_LABEL)
        self.outcome.setWordWrap(True)
        self.outcome.hide()
        self.empty = ToneLabel("", "text2", PX_LABEL)
        self.box = DownloadBox()
        self._list = QVBoxLayout()
        self._card: QWidget | None = None
        self._lay_out()
        self._connect()
        self.resize(*SIZE)

    def open_list(self) -> None:
        """Show the window, with the list as it is now."""
        self._tell("", "text2")
        self.empty.setText(self.tr("Reading the list…") if not self.rows else "")
        self._library.refresh()
        self.show()
        self.raise_()
        self.activateWindow()

    def set_loaded(self, model: str) -> None:
        """Which model is loaded: "starter", a path, or "" for none."""
        self._loaded = model
        for row in self.rows:
            row.set_loaded(bool(model) and model == _loaded_as(row.model))

    @Slot(object)
    def show_models(self, models: tuple[KnownModel, ...]) -> None:
        """These in place of what was shown."""
        bar = self._scroll.verticalScrollBar()
        place = bar.value()
        if self._card is not None:
            self._list.removeWidget(self._card)
            self._card.hide()
            self._card.deleteLater()
        self.rows = [ModelRow(model) for model in models if not self._is_coming(model)]
        self._card = Card(self.rows)
        self._list.insertWidget(0, self._card)
        self._card.setVisible(bool(self.rows))
        for row in self.rows:
            row.load.connect(self._on_load)
            row.resume.connect(self._on_resume)
            row.remove.connect(self._library.remove)
        self.empty.setText(self.tr("No model is known yet: add one, drop one here, or download one."))
        self.empty.setVisible(not self.rows)
        self.set_loaded(self._loaded)
        bar.setValue(place)

    def _is_coming(self, model: KnownModel) -> bool:
        """Whether it is the download that runs: it is shown below."""
        download = self._library.download
        if download.phase is not Phase.RUNNING or download.name is None:
            return False
        return model.origin == UNFINISHED and model.name == download.name.shown

    def _connect(self) -> None:
        library = self._library
        library.listed.connect(self.show_models)
        library.failed.connect(self._on_failed)
        library.told.connect(self._on_told)
        library.download_changed.connect(self._on_download)
        self.box.wanted.connect(library.fetch)
        self.box.pause.connect(library.pause)
        self.box.resume.connect(library.resume)
        self.box.cancel.connect(library.cancel)
        ModelDrop(self).dropped.connect(self._on_add)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter in the field asks for a download and presses no button of the window beside."""
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)

    @Slot()
    def _on_folder(self) -> None:
        self._on_add(ask_folder(self))

    @Slot()
    def _on_file(self) -> None:
        self._on_add(ask_file(self))

    @Slot(str)
    def _on_add(self, path: str) -> None:
        if path:
            self._tell("", "text2")
            self._library.add(path)

    @Slot(str)
    def _on_load(self, path: str) -> None:
        self.load.emit(path)
        self.accept()

    @Slot(str)
    def _on_resume(self, name: str) -> None:
        self._library.fetch(named(name))

    @Slot(object)
    def _on_download(self, download: Download) -> None:
        self.box.show_download(download)

    @Slot(str)
    def _on_failed(self, sentence: str) -> None:
        self._tell(in_user_words(sentence), "error")
        self.show_models(self._library.models)

    @Slot(str)
    def _on_told(self, sentence: str) -> None:
        self._tell(sentence, "text2")

    def _tell(self, sentence: str, tone: str) -> None:
        self.outcome.set_tone(tone)
        self.outcome.setText(sentence)
        self.outcome.setVisible(bool(sentence))

    def _lay_out(self) -> None:
        adding = QHBoxLayout()
        adding.setSpacing(SPACING_PART)
        adding.addWidget(self.folder_button)
        adding.addWidget(self.file_button)
        adding.addWidget(ToneLabel(self.tr("or drop one here"), "text2", PX_LABEL))
        adding.addStretch(1)
        self._scroll = QScrollArea()
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        holder = QWidget()
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.addWidget(self.empty)
        self._list.addStretch(1)
        holder.setLayout(self._list)
        self._scroll.setWidget(holder)
        footer = QHBoxLayout()
        footer.addWidget(self.clear_button)
        footer.addStretch(1)
        footer.addWidget(self.close_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACING_TURN, SPACING_TURN, SPACING_TURN, SPACING_TURN)
        column.setSpacing(SPACING_BLOCK)
        column.addLayout(adding)
        column.addWidget(self.outcome)
        column.addWidget(self._scroll, 1)
        column.addWidget(Card([self.box]))
        column.addLayout(footer)


def _loaded_as(model: KnownModel) -> str:
    return "starter" if model.origin == STARTER else model.path
