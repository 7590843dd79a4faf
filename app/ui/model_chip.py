"""The model chip of the top bar: what is loaded, how far a load is, and the menu to choose another model."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QFont
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QProgressBar, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.engine_words import in_user_words
from app.icons import icon
from app.states import HostState
from app.theme import PX_CAPTION, PX_CONTROL, PX_LABEL, SPACING_BLOCK, SPACING_PART, active, is_theme_change
from app.ui.panel import Dot, ElidedLabel
from app.ui.status_line import TONES
from app.widgets.icon_button import TextButton
from engine.records import LoadProgress, ModelInfo

MEGA = 1_000_000


def short_context(tokens: int) -> str:
    """8192 as "8k", 2000 as "2k", 12345 as "12.3k"."""
    if tokens < 1000:
        return str(tokens)
    if tokens % 1024 == 0:
        return f"{tokens // 1024}k"
    return f"{tokens / 1000:.1f}".removesuffix(".0") + "k"


def model_name(model: str) -> str:
    """The last part of a path, for people."""
    return Path(model).name or model


class ModelChip(QWidget):
    """Signals: chosen(model), manage(), open_folder(), open_file(), cancel(), unload(), demo(), open_replay()."""

    chosen = Signal(str)
    manage = Signal()
    open_folder = Signal()
    open_file = Signal()
    cancel = Signal()
    unload = Signal()
    demo = Signal()
    open_replay = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._info: ModelInfo | None = None
        self._state = HostState.NO_MODEL
        self._loading = ""
        self._recent: tuple[str, ...] = ()
        self.button = _ChipButton()
        self.menu = QMenu(self.button)
        self.menu.setToolTipsVisible(True)
        self.menu.aboutToShow.connect(self._fill_menu)
        self.button.setMenu(self.menu)
        self.cancel_button = TextButton(self.tr("Cancel"), "ghost")
        self.cancel_button.setAccessibleName(self.tr("Cancel the load"))
        self.cancel_button.clicked.connect(self._on_cancel)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACING_PART)
        row.addWidget(self.button)
        row.addWidget(self.cancel_button)
        self._show()

    def show_state(self, state: HostState) -> None:
        """Follow the host's state."""
        self._state = state
        if state is HostState.LOADING:
            self.cancel_button.setEnabled(True)
            self.button.show_progress(self.tr("Starting the engine…"), 0, 0)
        self._show()

    def show_loading(self, model: str) -> None:
        """The name of what is being loaded."""
        self._loading = self.tr("Starter model") if model == "starter" else model_name(model)
        self._show()

    def show_progress(self, progress: LoadProgress) -> None:
        """How far the load is: what is done, counts and bytes."""
        self.button.show_progress(self.progress_words(progress), progress.done, progress.total)

    def show_model(self, info: ModelInfo | None) -> None:
        """What is loaded, if anything."""
        self._info = info
        self._show()

    def set_recent(self, models: tuple[str, ...]) -> None:
        """Models of earlier days, newest first."""
        self._recent = models

    def set_narrow(self, narrow: bool) -> None:
        """Leave out the details where there is little room."""
        self.button.details.setVisible(not narrow)

    def progress_words(self, progress: LoadProgress) -> str:
        """ "Reading tensors, 136 of 272 · 134 of 268 MB"; the phrase alone where nothing can be counted."""
        if progress.total <= 0:
            return in_user_words(progress.what) + "…"
        words = self.tr("{what}, {done} of {total}").format(
            what=in_user_words(progress.what), done=progress.done, total=progress.total
        )
        if progress.total_bytes > 0:
            size = self.tr("{done} of {total} MB")
            words += " · " + size.format(
                done=round(progress.done_bytes / MEGA), total=round(progress.total_bytes / MEGA)
            )
        return words

    def text(self) -> str:
        """What the chip says, as one phrase."""
        return self.button.accessibleName()

    def _show(self) -> None:
        loading = self._state is HostState.LOADING
        self.cancel_button.setVisible(loading)
        info = self._info
        if loading:
            self.button.show_load(self._loading)
        elif info is not None:
            context = self.tr("{count} context").format(count=short_context(info.context))
            self.button.show_plain(info.name, f"{info.weights_dtype} · {context}", TONES[self._state])
        else:
            self.button.show_plain(self.tr("Choose a model"), "", TONES[self._state])

    @Slot()
    def _on_cancel(self) -> None:
        self.cancel_button.setEnabled(False)
        self.cancel.emit()

    @Slot()
    def _fill_menu(self) -> None:
        self.menu.clear()
        self._add(self.tr("Starter model"), "models", "starter")
        for model in self._recent:
            if model != "starter":
                self._add(model_name(model), "models", model)
        self.menu.addSeparator()
        self._add(self.tr("Models…"), "models").triggered.connect(self.manage)
        self._add(self.tr("Open folder…"), "folder").triggered.connect(self.open_folder)
        self._add(self.tr("Open GGUF file…"), "folder").triggered.connect(self.open_file)
        self.menu.addSeparator()
        self._add(self.tr("Demo"), "play").triggered.connect(self.demo)
        self._add(self.tr("Open replay…"), "folder").triggered.connect(self.open_replay)
        if self._state in (HostState.READY, HostState.FAILED) and self._info is not None:
            self.menu.addSeparator()
            self._add(self.tr("Unload"), "close").triggered.connect(self.unload)

    def _add(self, words: str, icon_name: str, model: str = "") -> QAction:
        action = self.menu.addAction(icon(icon_name), words)
        if model:
            action.setData(model)
            action.setToolTip(model)
            action.triggered.connect(self._on_model)
        return action

    @Slot()
    def _on_model(self) -> None:
        action = self.sender()
        if isinstance(action, QAction):
            self.chosen.emit(str(action.data()))


class _ChipButton(QPushButton):
    """A button with a dot, a strong name, quiet details and, during a load, a determinate bar under both."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._dot = Dot()
        self._name = ElidedLabel("", "text", PX_CONTROL, QFont.Weight.DemiBold)
        self.details = ElidedLabel("", "text2", PX_LABEL)
        self._step = ElidedLabel("", "text2", PX_CAPTION)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(4)
        self._bar.setAccessibleName(self.tr("Progress of the load"))
        self._chevron = QLabel()
        self._drawn = ""
        words = QHBoxLayout()
        words.setSpacing(SPACING_PART)
        words.addWidget(self._name)
        words.addWidget(self.details)
        words.addWidget(self._step)
        column = QVBoxLayout()
        column.setSpacing(2)
        column.addStretch(1)
        column.addLayout(words)
        column.addWidget(self._bar)
        column.addStretch(1)
        self._row = row = QHBoxLayout(self)
        row.setContentsMargins(SPACING_PART, 2, SPACING_PART, 2)
        row.setSpacing(SPACING_PART)
        row.addWidget(self._dot)
        row.addLayout(column)
        row.addSpacing(SPACING_BLOCK - SPACING_PART)
        row.addWidget(self._chevron)
        for child in self.findChildren(QWidget):
            child.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._dress()

    def show_plain(self, name: str, details: str, tone: str) -> None:
        """No load is running."""
        self._set(name, details, tone, loading=False)

    def show_load(self, name: str) -> None:
        """A load is running."""
        self._set(name, "", "warn", loading=True)

    def show_progress(self, words: str, done: int, total: int) -> None:
        """How far it is; with nothing to count the bar stays empty and the words say what happens."""
        self._step.setText(words)
        self._bar.setRange(0, max(total, 1))
        self._bar.setValue(done)
        self._name_all()

    def _set(self, name: str, details: str, tone: str, *, loading: bool) -> None:
        self._name.setText(name)
        self.details.setText(details)
        self._dot.set_tone(tone)
        self._step.setVisible(loading)
        self._bar.setVisible(loading)
        self._name_all()
        self.updateGeometry()

    def _name_all(self) -> None:
        parts = [self._name.text(), self.details.text()]
        if self._bar.isVisibleTo(self):
            parts.append(self._step.text())
        self.setAccessibleName(" ".join(part for part in parts if part))

    def _dress(self) -> None:
        if self._drawn == active().name:
            return
        self._drawn = active().name
        self._chevron.setPixmap(icon("chevron-down").pixmap(QSize(16, 16), self.devicePixelRatio()))

    def changeEvent(self, event: QEvent) -> None:
        if is_theme_change(event) and hasattr(self, "_drawn"):
            self._dress()
        super().changeEvent(event)

    def sizeHint(self) -> QSize:
        return QSize(self._row.sizeHint().width(), 32)

    def minimumSizeHint(self) -> QSize:
        return QSize(self._row.minimumSize().width(), 32)
