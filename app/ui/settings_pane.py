"""The settings page: a card for each group, generated from the settings' own declarations."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.declaration import GROUPS
from app.live_settings import LiveSettings
from app.settings import declaration, names
from app.theme import PX_CONTROL, PX_LABEL, PX_TEXT, SPACING_PART, SPACING_TURN, SPACING_WIDE
from app.ui.panel import Panel, ToneLabel
from app.ui.setting_editors import PathEditor, words
from app.ui.setting_rows import Card, SettingRow
from app.widgets.icon_button import TextButton

HEADER_HEIGHT = 56
COLUMN_WIDTH = 720


class SettingsPane(Panel):
    """Every change is applied at once and kept. back(): to the chat; the others ask for another model.

    group_in_view(name) follows scrolling.
    """

    back = Signal()
    open_folder = Signal()
    open_file = Signal()
    load_starter = Signal()
    group_in_view = Signal(str)

    def __init__(self, settings: LiveSettings, parent: QWidget | None = None) -> None:
        super().__init__("canvas", "", parent)
        self._settings = settings
        self._rows: dict[str, SettingRow] = {}
        self._titles: dict[str, QWidget] = {}
        self._wanted = GROUPS[0][0]
        self.back_button = TextButton(self.tr("Back to chat"), "ghost")
        self.back_button.clicked.connect(self.back)
        self.reset_button = TextButton(self.tr("Reset to defaults"), "ghost", "regenerate")
        self.reset_button.clicked.connect(settings.reset)
        self._scroll = QScrollArea()
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setWidget(self._page())
        self._scroll.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header())
        column.addWidget(self._scroll, 1)
        settings.changed.connect(self._on_changed)
        for name, row in self._rows.items():
            row.set_value(getattr(settings.current, name))
        self._show_fixed_gamma()

    def _header(self) -> QWidget:
        header = Panel("canvas", "bottom")
        header.setFixedHeight(HEADER_HEIGHT)
        row = QHBoxLayout(header)
        row.setContentsMargins(SPACING_TURN, 0, SPACING_WIDE, 0)
        row.setSpacing(SPACING_PART)
        row.addWidget(self.back_button)
        row.addWidget(ToneLabel(self.tr("Settings"), "text", PX_TEXT, QFont.Weight.DemiBold))
        row.addStretch(1)
        row.addWidget(self.reset_button)
        return header

    def _page(self) -> QWidget:
        page = Panel("canvas")
        self._column = QVBoxLayout(page)
        self._column.setContentsMargins(SPACING_WIDE, SPACING_WIDE, SPACING_WIDE, SPACING_TURN)
        self._column.setSpacing(0)
        for group, title, beside in GROUPS:
            self._add_group(group, words(title), words(beside))
        self._column.addStretch(1)
        return page

    def _add_group(self, group: str, title: str, beside: str) -> None:
        heading = QWidget()
        row = QHBoxLayout(heading)
        row.setContentsMargins(0, SPACING_WIDE, 0, SPACING_PART)
        row.setSpacing(SPACING_PART)
        row.addWidget(ToneLabel(title, "text", PX_CONTROL, QFont.Weight.DemiBold))
        row.addWidget(ToneLabel(beside, "text2", PX_LABEL))
        row.addStretch(1)
        rows = [self._row(name) for name in names() if declaration(name).group == group]
        self._titles[group] = heading
        self._column.addWidget(heading)
        self._column.addWidget(Card(rows))

    def _row(self, name: str) -> SettingRow:
        row = SettingRow(name)
        row.changed.connect(self._on_edited)
        if isinstance(row.editor, PathEditor):
            row.editor.open_folder.connect(self.open_folder)
            row.editor.open_file.connect(self.open_file)
            row.editor.load_starter.connect(self.load_starter)
        self._rows[name] = row
        return row

    def row(self, name: str) -> SettingRow:
        """The row of a setting. Raises KeyError for one that is not shown."""
        return self._rows[name]

    def show_group(self, group: str) -> None:
        """Scroll a group to the top, as soon as the page has its final height."""
        self._wanted = group
        self._scroll_to_wanted()
        QTimer.singleShot(0, self, self._scroll_to_wanted)

    @Slot()
    def _scroll_to_wanted(self) -> None:
        self._scroll.verticalScrollBar().setValue(self._titles[self._wanted].y())

    @Slot(str, object)
    def _on_edited(self, name: str, value: Any) -> None:
        self._settings.set(name, value)

    @Slot(str, object)
    def _on_changed(self, name: str, value: Any) -> None:
        if name in self._rows:
            self._rows[name].set_value(value)
        self._show_fixed_gamma()

    @Slot(int)
    def _on_scrolled(self, top: int) -> None:
        bar = self._scroll.verticalScrollBar()
        passed = [group for group, title in self._titles.items() if title.y() <= top + SPACING_TURN]
        last = list(self._titles)[-1]
        self.group_in_view.emit(last if top == bar.maximum() and top > 0 else passed[-1] if passed else "")

    def _show_fixed_gamma(self) -> None:
        self._rows["gamma"].setVisible(self._settings.current.gamma_fixed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side = max(SPACING_WIDE, (self.width() - COLUMN_WIDTH) // 2)
        self._column.setContentsMargins(side, SPACING_WIDE, side, SPACING_TURN)
