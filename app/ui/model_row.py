"""A row of the list of models: what it is, how it fits, and the ways to load and to remove it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.engine_words import in_user_words
from app.known_model import HUB_CACHE, STARTER, UNFINISHED, KnownModel
from app.theme import PX_CAPTION, PX_CONTROL, PX_LABEL, SPACING_BLOCK, SPACING_INNER, SPACING_PART, SPACING_WIDE
from app.ui.model_words import fact_words, fit_words, name_words, origin_words, removal_words
from app.ui.panel import Dot, ElidedLabel, Tag, ToneLabel
from app.widgets.icon_button import IconButton, TextButton


class ModelRow(QWidget):
    """One model. load(path), resume(name), remove(path): the last after the question was answered."""

    load = Signal(str)
    resume = Signal(str)
    remove = Signal(str)

    def __init__(self, model: KnownModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = model
        name = name_words(model)
        self.load_button = TextButton(self.tr("Resume") if model.origin == UNFINISHED else self.tr("Load"))
        self.load_button.setAccessibleName(f"{self.load_button.text()}: {name}")
        self.load_button.clicked.connect(self._on_load)
        self.remove_button = IconButton("trash", self.tr("Remove"))
        self.remove_button.setAccessibleName(self.tr("Remove {name}").replace("{name}", name))
        self.remove_button.clicked.connect(self._ask)
        self.question = QWidget()
        question, verb = removal_words(model)
        self.yes_button = TextButton(verb, "secondary")
        self.yes_button.clicked.connect(self._on_yes)
        self.no_button = TextButton(self.tr("Keep"), "ghost")
        self.no_button.clicked.connect(self._withdraw)
        self._buttons = _in_row(self.load_button, self.remove_button)
        self._lay_out_question(question)
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACING_WIDE, SPACING_BLOCK, SPACING_WIDE, SPACING_BLOCK)
        row.setSpacing(SPACING_WIDE)
        row.addLayout(self._facts(name), 1)
        row.addWidget(self._buttons, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.question, 0, Qt.AlignmentFlag.AlignVCenter)
        self._withdraw()
        self.set_loaded(False)

    def set_loaded(self, loaded: bool) -> None:
        """Whether this is the model that is loaded: it is neither loaded again nor removed then."""
        reason = ""
        if loaded:
            reason = self.tr("It is loaded now; unload it first.")
        elif self.model.origin == HUB_CACHE:
            reason = self.tr("It is in the hub's own cache, which hf cache manages.")
        self.remove_button.setEnabled(not reason)
        self.remove_button.setToolTip(reason or self.tr("Remove"))
        self._state.setVisible(loaded)
        can_load = not self.model.problem or self.model.origin == UNFINISHED
        self.load_button.setEnabled(can_load and not loaded)

    def _facts(self, name: str) -> QVBoxLayout:
        model = self.model
        heading = QHBoxLayout()
        heading.setSpacing(SPACING_PART)
        title = ElidedLabel(name, "text", PX_CONTROL, QFont.Weight.DemiBold)
        heading.addWidget(title)
        if model.origin != STARTER:
            heading.addWidget(Tag(origin_words(model)))
        self._state = Tag(self.tr("loaded"))
        heading.addWidget(self._state)
        heading.addStretch(1)
        words, tone = fit_words(model)
        fit = QHBoxLayout()
        fit.setSpacing(SPACING_PART)
        fit.addWidget(Dot(tone))
        fit.addWidget(ElidedLabel(words, "text2", PX_LABEL), 1)
        column = QVBoxLayout()
        column.setSpacing(SPACING_INNER)
        column.addLayout(heading)
        facts = fact_words(model)
        if facts:
            column.addWidget(ElidedLabel(facts, "text2", PX_LABEL))
        column.addLayout(fit)
        for sentence in self.sentences():
            label = ToneLabel(sentence, "text3" if not model.problem else "text2", PX_CAPTION)
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            column.addWidget(label)
        return column

    def sentences(self) -> tuple[str, ...]:
        """What is said below: why it cannot be loaded, what would help, what to know."""
        model = self.model
        problem = "" if model.origin == UNFINISHED else model.problem
        return tuple(in_user_words(text) for text in (problem, model.advice, *model.notes) if text)

    def _lay_out_question(self, question: str) -> None:
        label = ToneLabel(question, "text", PX_LABEL)
        label.setWordWrap(True)
        label.setFixedWidth(label.fontMetrics().averageCharWidth() * 28)
        column = QVBoxLayout(self.question)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACING_PART)
        column.addWidget(label)
        column.addWidget(_in_row(self.yes_button, self.no_button))

    @Slot()
    def _on_load(self) -> None:
        if self.model.origin == UNFINISHED:
            self.resume.emit(self.model.name)
        else:
            self.load.emit(self.model.path)

    @Slot()
    def _ask(self) -> None:
        self._buttons.hide()
        self.question.show()
        self.no_button.setFocus()

    @Slot()
    def _withdraw(self) -> None:
        self.question.hide()
        self._buttons.show()

    @Slot()
    def _on_yes(self) -> None:
        self.yes_button.setEnabled(False)
        self.remove.emit(self.model.path)


def _in_row(*buttons: QWidget) -> QWidget:
    holder = QWidget()
    row = QHBoxLayout(holder)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(SPACING_PART)
    for button in buttons:
        row.addWidget(button)
    return holder
