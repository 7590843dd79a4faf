"""The sheet of all shortcuts (F1), made from the actions themselves."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QDialog, QFrame, QGridLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.theme import PX_CONTROL, PX_LABEL, SPACING_BLOCK, SPACING_PART, SPACING_TURN
from app.ui.commands import Commands
from app.ui.panel import Panel, Tag, ToneLabel
from app.widgets.icon_button import TextButton

SIZE = (460, 560)


class ShortcutsSheet(QDialog):
    """Lists what the commands say when it is made."""

    def __init__(self, commands: Commands, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Keyboard shortcuts"))
        self.resize(*SIZE)
        page = Panel("canvas")
        column = QVBoxLayout(page)
        column.setContentsMargins(SPACING_TURN, SPACING_BLOCK, SPACING_TURN, SPACING_BLOCK)
        column.setSpacing(SPACING_PART)
        self.rows: list[tuple[str, str]] = []
        for group, rows in commands.shortcuts():
            column.addSpacing(SPACING_PART)
            column.addWidget(ToneLabel(group, "text", PX_CONTROL, QFont.Weight.DemiBold))
            column.addLayout(self._group(rows))
            self.rows.extend(rows)
        column.addStretch(1)
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setAccessibleName(self.tr("Keyboard shortcuts"))
        area.setWidget(page)
        self.close_button = TextButton(self.tr("Close"), "primary")
        self.close_button.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(SPACING_TURN, SPACING_BLOCK, SPACING_TURN, SPACING_BLOCK)
        buttons.addStretch(1)
        buttons.addWidget(self.close_button)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(area, 1)
        whole.addLayout(buttons)

    def _group(self, rows: list[tuple[str, str]]) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(SPACING_BLOCK)
        grid.setVerticalSpacing(SPACING_PART)
        grid.setColumnStretch(0, 1)
        for number, (words, keys) in enumerate(rows):
            label = ToneLabel(words, "text2", PX_LABEL)
            label.setWordWrap(True)
            grid.addWidget(label, number, 0)
            grid.addWidget(Tag(keys), number, 1, Qt.AlignmentFlag.AlignRight)
        return grid
