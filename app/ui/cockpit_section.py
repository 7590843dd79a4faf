"""A part of the cockpit: a head with its name and figure that folds it, and what it shows."""

from __future__ import annotations

from abc import abstractmethod

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFont, QHideEvent, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.icons import icon
from app.theme import PX_LABEL, SPACING_INNER, SPACING_PART, active, is_theme_change, ui_font
from app.ui.panel import ElidedLabel, ToneLabel
from app.widgets.abstract import AbstractWidget

CHEVRON = 12
SIDE_BY_SIDE = 40  # average characters that must fit for two plots beside each other


class FoldButton(QToolButton):
    """The name of a section; pressing it folds the section or unfolds it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._drawn = ""
        self.setCheckable(True)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFont(ui_font(PX_LABEL, QFont.Weight.Medium))
        self.setStyleSheet(
            "QToolButton, QToolButton:checked, QToolButton:hover, QToolButton:pressed"
            " { padding: 1px 2px 1px 0; margin: 0 0 0 -5px; border: 1px solid transparent; background: transparent; }"
        )
        self.toggled.connect(self._dress)
        self._dress()

    def set_name(self, name: str) -> None:
        """The section's name."""
        self.setText(name)
        self.setAccessibleName(name)
        self._dress()

    def _dress(self) -> None:
        wanted = f"{self.isChecked()} {active().name} {self.text()}"
        if wanted != self._drawn:
            self._drawn = wanted
            self.setIcon(icon("chevron-down" if self.isChecked() else "chevron-right", "text3", CHEVRON))
            words = self.tr("{name}: fold") if self.isChecked() else self.tr("{name}: unfold")
            self.setToolTip(words.replace("{name}", self.text()))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.hasFocus():
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(active().color("accent"))
            painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 4, 4)
            painter.end()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "_drawn"):
            self._dress()


class Headline(QWidget):
    """A name at the left (a fold button, or words), a strong figure and quiet words at the right."""

    def __init__(self, title: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.value = ToneLabel("", "text", PX_LABEL, QFont.Weight.DemiBold)
        self.detail = ToneLabel("", "text2", PX_LABEL)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACING_INNER)
        row.addWidget(title)
        row.addStretch(1)
        row.addWidget(self.value)
        row.addWidget(self.detail)
        self.detail.hide()

    def show_value(self, value: str | None, reason: str = "", detail: str = "") -> None:
        """A figure, n/a with its reason where it is None, or nothing where both are empty."""
        missing = value is None
        self.value.setText(self.tr("n/a") if value is None else value)
        self.value.set_tone("text3" if missing else "text")
        self.value.setToolTip(reason if missing else "")
        self.detail.setText(detail)
        self.detail.setVisible(bool(detail))


class Section(QWidget, metaclass=AbstractWidget):
    """Folded until `set_open`; what it shows is built when it is first unfolded.

    folded(key, bool) when the user folds or unfolds it; shown_changed() when its content comes or goes.
    """

    folded = Signal(str, bool)
    shown_changed = Signal()

    def __init__(self, key: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.key = key
        self.button = FoldButton()
        self.button.clicked.connect(self._on_clicked)
        self.head = Headline(self.button)
        self._built = False
        self.content = QWidget()
        self.rows = QVBoxLayout(self.content)
        self.rows.setContentsMargins(0, 0, 0, 0)
        self.rows.setSpacing(SPACING_PART)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACING_INNER)
        column.addWidget(self.head)
        column.addWidget(self.content)
        self.content.hide()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def set_name(self, name: str) -> None:
        """What the section is called."""
        self.button.set_name(name)
        self.setAccessibleName(name)

    @property
    def open(self) -> bool:
        """Whether its content is unfolded."""
        return self.button.isChecked()

    @property
    def in_view(self) -> bool:
        """Whether its content is on screen (or would be after scrolling)."""
        return self.open and self.isVisible()

    @abstractmethod
    def build(self) -> None:
        """Make what it shows; called once."""

    def set_open(self, is_open: bool) -> None:
        """Unfold or fold it."""
        if is_open and not self._built:
            self._built = True
            self.build()
        self.button.setChecked(is_open)
        self._show_content(is_open)
        self.shown_changed.emit()

    def _show_content(self, shown: bool) -> None:
        self.content.setVisible(shown)

    def _on_clicked(self) -> None:
        self.set_open(self.button.isChecked())
        self.folded.emit(self.key, not self.button.isChecked())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.shown_changed.emit()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.shown_changed.emit()


class PairSection(Section):
    """Two plots beside each other, each with its own name and figure; below each other where they do not fit."""

    def __init__(self, key: str, parent: QWidget | None = None) -> None:
        super().__init__(key, parent)
        outer = self.layout()
        assert isinstance(outer, QVBoxLayout)
        self._second = ElidedLabel("", "text2", PX_LABEL, QFont.Weight.Medium)
        self.second_head = Headline(self._second)
        self._pair = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._pair.setSpacing(12)
        self._columns = []
        self.content.setParent(None)
        for head in (self.head, self.second_head):
            column = QVBoxLayout()
            column.setSpacing(SPACING_INNER)
            column.addWidget(head)
            self._pair.addLayout(column, 1)
            self._pair.setAlignment(column, Qt.AlignmentFlag.AlignTop)
            self._columns.append(column)
        outer.addLayout(self._pair)
        self.plots: list[QWidget] = []

    def set_names(self, first: str, second: str) -> None:
        """What the two plots are called."""
        self.set_name(first)
        self._second.setText(second)

    def set_plots(self, first: QWidget, second: QWidget) -> None:
        """The two plots."""
        self.plots = [first, second]
        for column, plot in zip(self._columns, self.plots, strict=True):
            column.addWidget(plot)

    def add_below(self, widget: QWidget) -> None:
        """Put a widget below the second plot."""
        self.plots.append(widget)
        self._columns[1].addWidget(widget)

    def _show_content(self, shown: bool) -> None:
        for plot in self.plots:
            plot.setVisible(shown)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.second_head.setMinimumHeight(self.head.sizeHint().height())  # so that the two plots are level
        room = self.width() / max(1, self.fontMetrics().averageCharWidth())
        direction = QBoxLayout.Direction.LeftToRight if room >= SIDE_BY_SIDE else QBoxLayout.Direction.TopToBottom
        if self._pair.direction() != direction:
            self._pair.setDirection(direction)
