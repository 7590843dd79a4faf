"""The memory budget: a slider with a number field, and what the memory would hold under it while it moves."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QSignalBlocker, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFont, QShowEvent, QValidator
from PySide6.QtWidgets import QDoubleSpinBox, QHBoxLayout, QProgressBar, QSlider, QVBoxLayout, QWidget

from app.budget_picture import (
    FITS,
    NOT,
    VERDICTS,
    gigabytes,
    help_words,
    picture_of,
    speed_words,
    verdict_words,
    with_streamed,
)
from app.budget_scale import STEPS, BudgetScale
from app.engine_words import in_user_words
from app.outlooks import Answered
from app.theme import PX_CAPTION, PX_LABEL, SPACING_BLOCK, SPACING_INNER, SPACING_PART
from app.ui.panel import ToneLabel
from app.ui.wheel_guard import guard
from app.widgets.icon_button import TextButton
from app.widgets.memory_bar import MemoryBar, MemoryLegend, translated
from app.words import Words, fill
from engine.offload.outlook import Help, Outlook
from engine.probes.reading import Measure
from engine.records import LoadProgress

KEYS_MS = 600  # after the last key, a budget counts as chosen
MOST_HELPS = 2


def in_budget_words(text: Words) -> str:
    """A sentence of `app.budget_picture` in the user's language."""
    values = [
        (name, QCoreApplication.translate("Budget", value) if value in VERDICTS.values() else value)
        for name, value in text.values
    ]
    return fill(QCoreApplication.translate("Budget", text.text) if text.text else "", values)


class BudgetField(QDoubleSpinBox):
    """GB as a number; at its maximum, the words for all that is free."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setKeyboardTracking(False)
        self.setAccessibleName(self.tr("Memory budget in GB"))
        self.lineEdit().setTextMargins(6, 0, 0, 0)
        self.setMinimumWidth(self.fontMetrics().horizontalAdvance(self._free()) + 48)
        guard(self)

    def _free(self) -> str:
        return self.tr("What is free")

    def textFromValue(self, value: float) -> str:
        return self._free() if value >= self.maximum() else f"{value:.{self.decimals()}f} GB"

    def valueFromText(self, text: str) -> float:
        number = text.replace("GB", "").replace(",", ".").strip()
        try:
            return float(number)
        except ValueError:
            return self.maximum()

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        plain = text.replace("GB", "").replace(",", ".").strip()
        try:
            good = bool(plain) and float(plain) > 0
        except ValueError:
            good = text == self._free()
        return (QValidator.State.Acceptable if good else QValidator.State.Intermediate, text, position)


class HelpRow(QWidget):
    """Something that would help; where it is a budget, with a button that takes it."""

    chosen = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._gb = 0.0
        self.words = ToneLabel("", "text2", PX_LABEL)
        self.words.setWordWrap(True)
        self.button = TextButton(self.tr("Take it"), "secondary")
        self.button.clicked.connect(self._on_clicked)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACING_PART)
        row.addWidget(self.words, 1)
        row.addWidget(self.button)

    def show_help(self, fix: Help | None) -> None:
        """Show a fix; None hides the row."""
        self.setVisible(fix is not None)
        if fix is not None:
            self.words.setText(in_budget_words(help_words(fix)))
            self._gb = fix.amount / 1e9
            self.button.setVisible(fix.remedy == "budget")
            self.button.setAccessibleName(self.tr("Take a budget of {size}").replace("{size}", gigabytes(fix.amount)))

    @Slot()
    def _on_clicked(self) -> None:
        self.chosen.emit(self._gb)


class BudgetEditor(QWidget):
    """value_changed(GB) when one is chosen, 0 for all that is free; moved(GB) all along the way; shown() when it is;
    load_again() by the button of a note."""

    value_changed = Signal(object)
    moved = Signal(float)
    shown = Signal()
    load_again = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scale = BudgetScale()
        self._chosen = self._present = 0.0
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, STEPS)
        self.slider.setPageStep(10)
        guard(self.slider)
        self.field = BudgetField()
        self.low = ToneLabel("", "text3", PX_CAPTION)
        self.bar = MemoryBar()
        self.legend = MemoryLegend()
        self.verdict = ToneLabel("", "text", PX_LABEL, QFont.Weight.DemiBold)
        self.speed = ToneLabel("", "text2", PX_LABEL)
        self.peak = ToneLabel("", "text2", PX_LABEL)
        self.helps = tuple(HelpRow() for _ in range(MOST_HELPS))
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName(self.tr("Parts moved"))
        self.progress_words = ToneLabel("", "text2", PX_LABEL)
        self.note = ToneLabel("", "warn", PX_LABEL)
        self.again = TextButton(self.tr("Load again"), "secondary")
        self.again.clicked.connect(self.load_again)
        for label in (self.verdict, self.speed, self.peak, self.note):
            label.setWordWrap(True)
        self._lay_out()
        self.setFocusProxy(self.slider)
        self._keys = QTimer(self)
        self._keys.setSingleShot(True)
        self._keys.setInterval(KEYS_MS)
        self._keys.timeout.connect(self._choose)
        self.slider.valueChanged.connect(self._on_slider)
        self.slider.sliderReleased.connect(self._choose)
        self.field.valueChanged.connect(self._on_field)
        for row in self.helps:
            row.chosen.connect(self._on_help)
        self.show_progress(None)
        self.show_note("")
        self.show_answer(None)

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(SPACING_BLOCK)
        top.addWidget(self.low)
        top.addWidget(self.slider, 1)
        top.addWidget(self.field)
        note = QHBoxLayout()
        note.setSpacing(SPACING_PART)
        note.addWidget(self.note, 1)
        note.addWidget(self.again)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACING_INNER + 2)
        column.addLayout(top)
        for part in (self.bar, self.legend, self.verdict, self.speed, *self.helps, self.peak):
            column.addWidget(part)
        column.addWidget(self.progress_words)
        column.addWidget(self.progress)
        column.addLayout(note)

    def set_value(self, value: float) -> None:
        """Show a budget without telling anyone."""
        self._keys.stop()
        self._chosen = self._present = float(value)
        if value and not self.scale.low <= value <= self.scale.high:
            self.scale = BudgetScale(min(self.scale.low, value), max(self.scale.high, value))
        self._show_value()

    def _show_value(self) -> None:
        with QSignalBlocker(self.slider), QSignalBlocker(self.field):
            self.slider.setValue(self.scale.position_of(self._present))
            self.field.setDecimals(self.scale.decimals)
            step = 10.0**-self.scale.decimals
            self.field.setRange(step, self.scale.high + step)
            self.field.setSingleStep(max(step, round((self.scale.high - self.scale.low) / STEPS, 3)))
            self.field.setValue(self._present or self.field.maximum())
        self.low.setText(gigabytes(self.scale.low * 1e9))
        self.slider.setAccessibleDescription(self.field.text())

    @Slot(int)
    def _on_slider(self, position: int) -> None:
        self._move(self.scale.budget_at(position))
        if not self.slider.isSliderDown():
            self._keys.start()

    @Slot(float)
    def _on_field(self, value: float) -> None:
        self._move(0.0 if value >= self.field.maximum() else round(value, self.scale.decimals))
        self._keys.start()

    @Slot(float)
    def _on_help(self, budget_gb: float) -> None:
        self._move(budget_gb)
        self._choose()

    def _move(self, budget_gb: float) -> None:
        self._present = budget_gb
        self._show_value()
        self.moved.emit(budget_gb)

    @Slot()
    def _choose(self) -> None:
        """Whatever the slider stands at is meant."""
        self._keys.stop()
        if self._present != self._chosen:
            self._chosen = self._present
            self.value_changed.emit(self._chosen)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.shown.emit()

    @Slot(object)
    def show_answer(self, answer: Answered | None) -> None:
        """A forecast, or why there is none; None before the first."""
        outlook = answer.outlook if answer is not None else None
        for part in (self.bar, self.legend):
            part.setVisible(outlook is not None)
        self.verdict.setVisible(answer is not None)
        self.speed.setVisible(outlook is not None and outlook.plain is not None)
        for number, row in enumerate(self.helps):
            row.show_help(outlook.helps[number] if outlook is not None and number < len(outlook.helps) else None)
        self._show_peak(outlook, answer.peak if answer is not None else None)
        if answer is not None and outlook is None:
            self.verdict.set_tone("warn")
            self.verdict.setText(in_user_words(answer.sentence))
        if outlook is not None:
            self._show_outlook(outlook)

    def _show_outlook(self, outlook: Outlook) -> None:
        picture = picture_of(outlook)
        self.bar.set_picture(picture)
        self.legend.set_picture(with_streamed(picture, outlook))
        self.verdict.set_tone({FITS: "ok", NOT: "error"}.get(outlook.verdict, "text"))
        self.verdict.setText(in_budget_words(verdict_words(outlook)))
        self.speed.setText(in_budget_words(speed_words(outlook)))
        basis = self.tr("Predicted from the model's headers and the memory's speed, which was measured here.")
        if not outlook.measured_rates:
            basis = self.tr("Predicted from the model's headers and the speed that such hardware usually has.")
        self.speed.setToolTip(basis)
        if not self.slider.isSliderDown() and not self._keys.isActive():
            self.scale = BudgetScale.of(outlook.least, outlook.whole, outlook.total.value, self._present)
            self._show_value()

    def _show_peak(self, outlook: Outlook | None, peak: Measure | None) -> None:
        """What the model was said to take beside what it has taken since its load."""
        known = outlook is not None and outlook.peak is not None and peak is not None
        self.peak.setVisible(known and self._present == self._chosen)
        if outlook is not None and outlook.peak is not None and peak is not None:
            words = self.tr("Estimated peak {estimate} with a full context; measured since the load: {measured}.")
            shown = gigabytes(peak.value) if peak.value is not None else self.tr("n/a")
            self.peak.setText(words.replace("{estimate}", gigabytes(outlook.peak)).replace("{measured}", shown))
            self.peak.setToolTip(translated(peak.reason))

    def show_progress(self, progress: LoadProgress | None) -> None:
        """How far the move of the model's parts has come; None when it is over."""
        for part in (self.progress, self.progress_words):
            part.setVisible(progress is not None)
        if progress is not None:
            self.progress.setRange(0, max(1, progress.total))
            self.progress.setValue(progress.done)
            self.progress_words.setText(f"{in_user_words(progress.what)}, {progress.done}/{progress.total}")

    def show_note(self, sentence: str, *, reload: bool = False) -> None:
        """What became of the last choice, where it is not in force; "" for nothing."""
        self.note.setVisible(bool(sentence))
        self.again.setVisible(reload and bool(sentence))
        sentence = in_user_words(sentence)
        if sentence and not reload:
            words = self.tr("The budget has stayed as it was: {reason}")
            sentence = words.replace("{reason}", sentence)
        self.note.setText(sentence)
