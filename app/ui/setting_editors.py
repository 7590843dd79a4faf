"""One editor for each kind of setting. All have value_changed(value) and set_value(value), which tells nobody."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QSlider,
    QSpinBox,
    QWidget,
)

from app.declaration import Declaration
from app.theme import PX_CONTROL, SPACING_BLOCK
from app.ui.budget_editor import BudgetEditor
from app.ui.panel import ElidedLabel, ToneLabel
from app.ui.switches import Segmented, Switch
from app.ui.wheel_guard import guard


def words(text: str) -> str:
    """A declared label, help or choice in the user's language."""
    return QCoreApplication.translate("Settings", text) if text else ""


def format_value(declared: Declaration, value: Any) -> str:
    """A value as the page shows it."""
    for allowed, label in declared.choices:
        if allowed == value and type(allowed) is type(value):
            return words(label)
    if isinstance(value, bool):
        return QCoreApplication.translate("Settings", "on") if value else QCoreApplication.translate("Settings", "off")
    if value is None:
        return QCoreApplication.translate("Settings", "random")
    if declared.percent:
        return f"{round(value * 100)} %"
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}".replace(",", "\u202f")


class SliderEditor(QWidget):
    """A slider in steps of the declaration, its value written to the right."""

    value_changed = Signal(object)

    def __init__(self, declared: Declaration, whole: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._declared = declared
        self._whole = whole
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, round((declared.high - declared.low) / declared.step))
        self.slider.setSingleStep(1)
        self.slider.setPageStep(10)
        self._shown = ToneLabel("", "text", PX_CONTROL, QFont.Weight.Medium)
        self._shown.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._shown.setMinimumWidth(self._shown.fontMetrics().horizontalAdvance("100 %") + 8)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACING_BLOCK)
        row.addWidget(self.slider, 1)
        row.addWidget(self._shown)
        self.setFocusProxy(self.slider)
        guard(self.slider)
        self.slider.valueChanged.connect(self._on_moved)

    def _value(self) -> float | int:
        value = self._declared.low + self.slider.value() * self._declared.step
        return round(value) if self._whole else round(value, 4)

    @Slot(int)
    def _on_moved(self, _: int) -> None:
        self._show(self._value())
        self.value_changed.emit(self._value())

    def set_value(self, value: float) -> None:
        """Show a value without telling anyone."""
        with QSignalBlocker(self.slider):
            self.slider.setValue(round((value - self._declared.low) / self._declared.step))
        self._show(value)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.EnabledChange:
            self._shown.set_tone("text" if self.isEnabled() else "text3")
        super().changeEvent(event)

    def _show(self, value: float) -> None:
        self._shown.setText(format_value(self._declared, value))
        self.slider.setAccessibleDescription(self._shown.text())


class NumberEditor(QSpinBox):
    """A whole number."""

    value_changed = Signal(object)

    def __init__(self, declared: Declaration, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setRange(int(declared.low), int(declared.high))
        self.setKeyboardTracking(False)
        self.lineEdit().setTextMargins(6, 0, 0, 0)
        guard(self)
        self.valueChanged.connect(self._on_changed)

    @Slot(int)
    def _on_changed(self, value: int) -> None:
        self.value_changed.emit(value)

    def set_value(self, value: int) -> None:
        """Show a value without telling anyone."""
        with QSignalBlocker(self):
            self.setValue(value)


class SeedEditor(QLineEdit):
    """A whole number, or nothing for a random seed. What is not a number of the range goes back on leaving."""

    value_changed = Signal(object)

    def __init__(self, declared: Declaration, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._declared = declared
        self._value: int | None = None
        self.setPlaceholderText(format_value(declared, None))
        self.editingFinished.connect(self._on_finished)

    @Slot()
    def _on_finished(self) -> None:
        text = self.text().strip()
        good = text.isascii() and text.isdigit() and self._declared.low <= int(text) <= self._declared.high
        value = int(text) if good else self._value if text else None
        changed = value != self._value
        self.set_value(value)
        if changed:
            self.value_changed.emit(value)

    def set_value(self, value: int | None) -> None:
        """Show a value without telling anyone."""
        self._value = value
        self.setText("" if value is None else str(value))


class ListEditor(QComboBox):
    """One of several values in a drop-down list."""

    value_changed = Signal(object)

    def __init__(self, declared: Declaration, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        for value, label in declared.choices:
            self.addItem(words(label), value)
        guard(self)
        self.activated.connect(self._on_activated)

    @Slot(int)
    def _on_activated(self, _: int) -> None:
        self.value_changed.emit(self.currentData())

    def set_value(self, value: Any) -> None:
        """Show a value without telling anyone."""
        self.setCurrentIndex(self.findData(value))


class TextEditor(QPlainTextEdit):
    """Several lines of text."""

    value_changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "field")
        self.setTabChangesFocus(True)
        self.setFixedHeight(self.fontMetrics().lineSpacing() * 5 + 16)
        self.textChanged.connect(self._on_changed)

    @Slot()
    def _on_changed(self) -> None:
        self.value_changed.emit(self.toPlainText())

    def set_value(self, value: str) -> None:
        """Show a value without telling anyone; the text being typed is left alone."""
        if value != self.toPlainText():
            with QSignalBlocker(self):
                self.setPlainText(value)


class PathEditor(QWidget):
    """The name of the model and a button to choose another: signals open_folder(), open_file(), load_starter()."""

    value_changed = Signal(object)
    open_folder = Signal()
    open_file = Signal()
    load_starter = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown = ElidedLabel("", "text", PX_CONTROL)
        self.button = QPushButton(self.tr("Choose…"))
        menu = QMenu(self.button)
        menu.addAction(self.tr("Starter model")).triggered.connect(self.load_starter)
        menu.addAction(self.tr("Open folder…")).triggered.connect(self.open_folder)
        menu.addAction(self.tr("Open GGUF file…")).triggered.connect(self.open_file)
        self.button.setMenu(menu)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACING_BLOCK)
        row.addWidget(self._shown, 1)
        row.addWidget(self.button)
        self.setFocusProxy(self.button)

    def set_value(self, value: str) -> None:
        """Show the last part of a path, all of it as tooltip."""
        name = value.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]
        self._shown.setText(self.tr("Starter model") if value == "starter" else name)
        self._shown.setAccessibleDescription(value)


def make_editor(declared: Declaration, default: Any) -> Any:
    """The editor for a declaration; `default` tells whole numbers from others. Raises KeyError for a hidden one."""
    choices = tuple((value, words(label)) for value, label in declared.choices)
    makers: dict[str, Any] = {
        "switch": Switch,
        "choice": lambda: Segmented(choices),
        "list": lambda: ListEditor(declared),
        "slider": lambda: SliderEditor(declared, isinstance(default, int)),
        "number": lambda: NumberEditor(declared),
        "seed": lambda: SeedEditor(declared),
        "text": TextEditor,
        "path": PathEditor,
        "budget": BudgetEditor,
    }
    return makers[declared.kind]()
