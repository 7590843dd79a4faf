"""A row of the settings page (label, help, control) and the card that holds the rows of one group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.declaration import Declaration
from app.settings import declaration, default_of
from app.theme import PX_CONTROL, PX_LABEL, RADIUS_CARD, SPACING_PART, SPACING_WIDE, active, is_theme_change
from app.ui.panel import Tag, ToneLabel
from app.ui.setting_editors import format_value, make_editor, words
from app.ui.switches import Segmented

CONTROL_WIDTH = 288


def help_text(declared: Declaration, default: Any) -> str:
    """The declared help with range and default, in one line."""
    parts = [words(declared.help)]
    if declared.kind in ("slider", "number"):
        low = _short(declared, _like(default, declared.low)).removesuffix(" %")
        high = _short(declared, _like(default, declared.high))
        text = QCoreApplication.translate("Settings", "{low} to {high}, default {default}.")
        parts.append(text.format(low=low, high=high, default=_short(declared, default)))
    elif declared.kind == "budget":
        parts.append(QCoreApplication.translate("Settings", "Default: what is free."))
    elif declared.kind in ("switch", "choice", "list"):
        text = QCoreApplication.translate("Settings", "Default: {default}.")
        parts.append(text.format(default=format_value(declared, default)))
    return " ".join(parts)


def _short(declared: Declaration, value: Any) -> str:
    """Without the zeros that keep the value beside a slider from jumping."""
    if isinstance(value, float) and not declared.percent:
        return f"{value:g}"
    return format_value(declared, value)


def _like(default: Any, value: float) -> float | int:
    return int(value) if isinstance(default, int) else float(value)


class ReloadTag(Tag):
    """A change counts once the model has been loaded again."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setText(self.tr("reload"))
        self.setToolTip(self.tr("A change loads the model again."))


class RestartTag(Tag):
    """A change counts once the window has been opened again."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setText(self.tr("next start"))
        self.setToolTip(self.tr("A change counts from the next start of Specular."))


class SettingRow(QWidget):
    """One setting. changed(name, value) when the user sets it."""

    changed = Signal(str, object)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = name
        declared = declaration(name)
        self.editor = make_editor(declared, default_of(name))
        self.editor.value_changed.connect(self._on_changed)
        self._label = ToneLabel(words(declared.label), "text", PX_CONTROL, QFont.Weight.Medium)
        self._help = ToneLabel(help_text(declared, default_of(name)), "text2", PX_LABEL)
        self._help.setWordWrap(True)
        self._name_editor(words(declared.label))
        heading = QHBoxLayout()
        heading.setSpacing(SPACING_PART)
        heading.addWidget(self._label)
        if declared.reload:
            heading.addWidget(ReloadTag())
        if declared.restart:
            heading.addWidget(RestartTag())
        heading.addStretch(1)
        text = QVBoxLayout()
        text.setSpacing(2)
        text.addLayout(heading)
        text.addWidget(self._help)
        tall = declared.kind in ("text", "budget")
        if tall:
            row: QVBoxLayout | QHBoxLayout = QVBoxLayout(self)
            row.addLayout(text)
            row.addWidget(self.editor)
        else:
            row = QHBoxLayout(self)
            row.addLayout(text, 1)
            row.addWidget(self._boxed(declared), 0, Qt.AlignmentFlag.AlignVCenter)
        row.setContentsMargins(SPACING_WIDE, 9, SPACING_WIDE, 9)
        row.setSpacing(SPACING_PART if tall else SPACING_WIDE)

    def _boxed(self, declared: Declaration) -> QWidget:
        """The control in its column; a switch stands at the column's right edge."""
        box = QWidget()
        box.setFixedWidth(CONTROL_WIDTH)
        row = QHBoxLayout(box)
        row.setContentsMargins(0, 0, 0, 0)
        if declared.kind == "switch":
            row.addStretch(1)
        row.addWidget(self.editor)
        return box

    def _name_editor(self, label: str) -> None:
        target = self.editor.focusProxy() or self.editor
        target.setAccessibleName(label)
        target.setAccessibleDescription(self._help.text())
        if isinstance(self.editor, Segmented):
            self.editor.name_all(label)
        elif isinstance(self._label, QLabel):
            self._label.setBuddy(target)

    def _on_changed(self, value: Any) -> None:
        self.changed.emit(self.name, value)

    def set_value(self, value: Any) -> None:
        """Show a value without telling anyone."""
        self.editor.set_value(value)

    @property
    def help_words(self) -> str:
        """The help as it is shown."""
        return self._help.text()

    def set_obstacle(self, sentence: str) -> None:
        """Why the setting changes nothing now, or "" where it counts: its control is disabled then."""
        self.editor.setEnabled(not sentence)
        self._say(sentence)

    def set_missing(self, values: tuple[Any, ...], sentence: str) -> None:
        """Choices that are not to be had now, and why; () and "" where all are."""
        if isinstance(self.editor, Segmented):
            self.editor.set_missing(values, sentence)
        self._say(sentence)

    def _say(self, sentence: str) -> None:
        declared = declaration(self.name)
        usual = help_text(declared, default_of(self.name))
        self._help.setText(f"{words(declared.help)} {sentence}" if sentence else usual)
        (self.editor.focusProxy() or self.editor).setAccessibleDescription(self._help.text())


class Card(QWidget):
    """A rounded surface; a hairline between its rows."""

    def __init__(self, rows: Sequence[QWidget], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = tuple(rows)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 1, 0, 1)
        column.setSpacing(0)
        for row in rows:
            column.addWidget(row)

    def paintEvent(self, _: QPaintEvent) -> None:
        theme = active()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("line"), 1))
        painter.setBrush(theme.color("surface"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS_CARD, RADIUS_CARD)
        for row in self._rows[1:]:
            if row.isVisible():
                painter.fillRect(1, row.y(), self.width() - 2, 1, theme.color("line"))

    def changeEvent(self, event: QEvent) -> None:
        if is_theme_change(event):
            self.update()
        super().changeEvent(event)
