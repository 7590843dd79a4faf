"""The settings page: a card for each group, generated from the settings' own declarations."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.declaration import GROUPS, PROMPT, RECIPE, SAMPLING
from app.draft_declarations import OWN_DIALS, missing_widths, usable
from app.live_settings import LiveSettings
from app.settings import declaration, names
from app.states import HostState
from app.theme import PX_CONTROL, PX_LABEL, PX_TEXT, SPACING_PART, SPACING_TURN, SPACING_WIDE
from app.ui.budget_editor import BudgetEditor
from app.ui.calibration_row import CalibrationRow
from app.ui.chat_scope import ChatScope
from app.ui.panel import Panel, ToneLabel
from app.ui.setting_editors import PathEditor, words
from app.ui.setting_rows import Card, SettingRow
from app.ui.switches import Segmented
from app.widgets.icon_button import TextButton
from engine.records import ModelInfo

HEADER_HEIGHT = 56
COLUMN_WIDTH = 720


class SettingsPane(Panel):
    """Every change is applied at once and kept. back(): to the chat; calibrate(): measure the draft; the others ask for
    another model.

    group_in_view(name) follows scrolling.
    """

    back = Signal()
    calibrate = Signal()
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
        self.calibration = CalibrationRow()
        self.calibration.calibrate.connect(self.calibrate)
        self.back_button = TextButton(self.tr("Back to chat"), "ghost")
        self.back_button.clicked.connect(self.back)
        self.reset_button = TextButton(self.tr("Reset to defaults"), "ghost", "regenerate")
        self.reset_button.clicked.connect(settings.reset)
        self.mode = self._mode_switch()
        self.hidden_note = TextButton("", "ghost")
        self.hidden_note.clicked.connect(self._show_expert)
        self.group_resets: dict[str, TextButton] = {}
        self._recipe_word: ToneLabel | None = None
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
        self._show_what_counts()

    def _mode_switch(self) -> Segmented:
        switch = Segmented(((False, self.tr("Simple")), (True, self.tr("Expert"))))
        switch.name_all(self.tr("Settings shown"))
        switch.set_value(self._settings.current.expert)
        switch.value_changed.connect(self._on_mode)
        return switch

    @Slot(object)
    def _on_mode(self, expert: object) -> None:
        self._settings.set("expert", bool(expert))

    @Slot()
    def _show_expert(self) -> None:
        self._settings.set("expert", True)

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
        row.addWidget(self.mode, 0, Qt.AlignmentFlag.AlignVCenter)
        return header

    def _page(self) -> QWidget:
        page = Panel("canvas")
        self._column = QVBoxLayout(page)
        self._column.setContentsMargins(SPACING_WIDE, SPACING_WIDE, SPACING_WIDE, SPACING_TURN)
        self._column.setSpacing(0)
        for group, title, beside in GROUPS:
            self._add_group(group, words(title), words(beside))
        self._column.addSpacing(SPACING_PART)
        self._column.addWidget(self.hidden_note, 0, Qt.AlignmentFlag.AlignLeft)
        self._column.addStretch(1)
        return page

    def _add_group(self, group: str, title: str, beside: str) -> None:
        heading = QWidget()
        row = QHBoxLayout(heading)
        row.setContentsMargins(0, SPACING_WIDE, 0, SPACING_PART)
        row.setSpacing(SPACING_PART)
        row.addWidget(ToneLabel(title, "text", PX_CONTROL, QFont.Weight.DemiBold))
        row.addWidget(self._word_beside(group, beside))
        if group in (SAMPLING, PROMPT):
            row.addWidget(ChatScope(self._settings))
        row.addStretch(1)
        row.addWidget(self._reset_of(group, title))
        rows: list[QWidget] = [self._row(name) for name in names() if declaration(name).group == group]
        if group == RECIPE:
            rows.insert(1, self.calibration)
        self._titles[group] = heading
        self._column.addWidget(heading)
        self._column.addWidget(Card(rows))

    def _word_beside(self, group: str, beside: str) -> ToneLabel:
        label = ToneLabel(beside, "text2", PX_LABEL)
        if group == RECIPE:
            self._recipe_word = label
        return label

    def _reset_of(self, group: str, title: str) -> TextButton:
        """Puts a group back; there only while something in it differs from its default."""
        button = TextButton(self.tr("Reset"), "ghost", "regenerate")
        button.setAccessibleName(self.tr("Reset: {group}").replace("{group}", title))
        button.setToolTip(self.tr("Puts all settings of this group back to their defaults, also those of expert mode."))
        button.setProperty("group", group)
        button.clicked.connect(self._on_reset)
        policy = button.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        button.setSizePolicy(policy)
        self.group_resets[group] = button
        return button

    @Slot()
    def _on_reset(self) -> None:
        button = self.sender()
        if button is not None:
            self._settings.reset_group(button.property("group"))

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

    @property
    def budget(self) -> BudgetEditor:
        """The editor of the memory budget."""
        editor = self._rows["budget_gb"].editor
        assert isinstance(editor, BudgetEditor)
        return editor

    def show_group(self, group: str) -> None:
        """Scroll a group to the top, as soon as the page has its final height."""
        self._wanted = group
        self._scroll_to_wanted()
        QTimer.singleShot(0, self, self._scroll_to_wanted)

    @Slot()
    def _scroll_to_wanted(self) -> None:
        self._scroll.verticalScrollBar().setValue(self._titles[self._wanted].y())
        self.group_in_view.emit(self._wanted)  # also where the page is too short to bring it to the top

    @Slot(str, object)
    def _on_edited(self, name: str, value: Any) -> None:
        self._settings.set(name, value)

    @Slot(str, object)
    def _on_changed(self, name: str, value: Any) -> None:
        if name in self._rows:
            self._rows[name].set_value(value)
        self._show_what_counts()

    @Slot(int)
    def _on_scrolled(self, top: int) -> None:
        bar = self._scroll.verticalScrollBar()
        passed = [group for group, title in self._titles.items() if title.y() <= top + SPACING_TURN]
        last = list(self._titles)[-1]
        self.group_in_view.emit(last if top == bar.maximum() and top > 0 else passed[-1] if passed else "")

    def show_model(self, info: ModelInfo | None) -> None:
        """The draft that the loaded model has; what its device has no use for is disabled, with the reason."""
        self.calibration.show_model(info)
        self._show_owner(info)
        able = info.ingredients if info is not None else None
        obstacle = self.tr("Not possible for this model on this device.")
        for name, counts in usable(able).items() if able is not None else ((name, True) for name in OWN_DIALS[1:]):
            self._rows[name].set_obstacle("" if counts else obstacle)
        missing = missing_widths(able) if able is not None else ()
        widths = self.tr("Not all are possible for this model on this device.")
        self._rows["draft_weight_bits"].set_missing(missing, widths if missing else "")

    def _show_owner(self, info: ModelInfo | None) -> None:
        """Whose draft settings these are: each model keeps its own."""
        usual = next(words(beside) for group, _, beside in GROUPS if group == RECIPE)
        if self._recipe_word is not None:
            kept = self.tr("{usual}; kept for {model}")
            named = kept.replace("{usual}", usual).replace("{model}", info.name) if info is not None else usual
            self._recipe_word.setText(named)

    def show_state(self, state: HostState) -> None:
        """What can be done in this state."""
        self.calibration.show_state(state)

    def _show_what_counts(self) -> None:
        """Settings of expert mode, and those that depend on another one, are there only where they count."""
        settings = self._settings
        current = settings.current
        counts = {"gamma": current.gamma_fixed, **dict.fromkeys(OWN_DIALS, current.draft_own)}
        for name, row in self._rows.items():
            row.setVisible(counts.get(name, True) and (current.expert or declaration(name).simple))
        self.mode.set_value(current.expert)
        for group, button in self.group_resets.items():
            button.setVisible(bool(settings.changed_names(group)))
        hidden = [name for name in settings.changed_names() if not declaration(name).simple]
        text = self.tr("Changed settings of expert mode: {count}. Show them").replace("{count}", str(len(hidden)))
        self.hidden_note.setText(text)
        self.hidden_note.setVisible(bool(hidden) and not current.expert)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side = max(SPACING_WIDE, (self.width() - COLUMN_WIDTH) // 2)
        self._column.setContentsMargins(side, SPACING_WIDE, side, SPACING_TURN)
