"""The bar above the conversation: chat list toggle, model chip, and at the right proof, theme and settings."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.states import Command, HostState, is_legal
from app.theme import SPACING_BLOCK, SPACING_PART, SPACING_WIDE, active, is_theme_change
from app.ui.model_chip import ModelChip
from app.ui.panel import Panel
from app.widgets.icon_button import IconButton, TextButton

HEIGHT = 48
NARROW = 560
WIDE = 760


class TopBar(Panel):
    """Signals: toggle_sidebar(), prove(), replay() and report() of the last reply, toggle_theme(), settings(),
    toggle_cockpit()."""

    toggle_sidebar = Signal()
    prove = Signal()
    replay = Signal()
    report = Signal()
    toggle_theme = Signal()
    settings = Signal()
    toggle_cockpit = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("canvas", "bottom", parent)
        self.setFixedHeight(HEIGHT)
        self.sidebar_button = IconButton("sidebar", self.tr("Show or hide the chats (Ctrl+B)"))
        self.sidebar_button.clicked.connect(self.toggle_sidebar)
        self.chip = ModelChip()
        self.prove_button = TextButton(self.tr("Prove it"), "ghost", "prove")
        self.prove_button.clicked.connect(self.prove)
        self.replay_button = TextButton(self.tr("Replay"), "ghost", "play")
        self.replay_button.setToolTip(self.tr("Play the last reply again, as it was written"))
        self.replay_button.clicked.connect(self.replay)
        self.report_button = TextButton(self.tr("Report"), "ghost", "report")
        self.report_button.setToolTip(self.tr("Export the last reply as a page, a picture and a replay"))
        self.report_button.clicked.connect(self.report)
        self.theme_button = IconButton("moon", self.tr("Dark theme"))
        self.theme_button.clicked.connect(self.toggle_theme)
        self.settings_button = IconButton("settings", self.tr("Settings (Ctrl+,)"))
        self.settings_button.clicked.connect(self.settings)
        self.cockpit_button = IconButton("cockpit", self.tr("Show or hide the cockpit (Ctrl+J)"))
        self.cockpit_button.setCheckable(True)
        self.cockpit_button.clicked.connect(self.toggle_cockpit)
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACING_BLOCK, 0, SPACING_WIDE, 1)
        row.setSpacing(SPACING_PART)
        row.addWidget(self.sidebar_button)
        row.addWidget(self.chip)
        row.addStretch(1)
        for button in (self.prove_button, self.replay_button, self.report_button):
            row.addWidget(button)
        row.addWidget(self.theme_button)
        row.addWidget(self.settings_button)
        row.addWidget(self.cockpit_button)
        self._dress()
        self.show_state(HostState.NO_MODEL)
        self.show_finished(False)

    def show_state(self, state: HostState) -> None:
        """What can be done in this state."""
        self.chip.show_state(state)
        ready = is_legal(state, Command.PROVE)
        self.prove_button.setEnabled(ready)
        self.prove_button.setToolTip(
            self.tr("Compare speculation with plain decoding, token for token and bit for bit")
            if ready
            else self.tr("Possible when a model is loaded and no reply is being written")
        )

    def show_finished(self, finished: bool) -> None:
        """Whether the open chat has a reply that is over."""
        self.replay_button.setEnabled(finished)
        self.report_button.setEnabled(finished)

    def show_cockpit(self, shown: bool) -> None:
        """Whether the cockpit is to be seen."""
        self.cockpit_button.setChecked(shown)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.chip.set_narrow(self.width() < NARROW)
        self.prove_button.setVisible(self.width() >= NARROW)
        for button in (self.replay_button, self.report_button):  # both are in the reply's own menu too
            button.setVisible(self.width() >= WIDE)

    def _dress(self) -> None:
        dark = active().dark
        self.theme_button.set_icon_name("sun" if dark else "moon")
        words = self.tr("Light theme") if dark else self.tr("Dark theme")
        self.theme_button.setToolTip(words)
        self.theme_button.setAccessibleName(words)

    def changeEvent(self, event: QEvent) -> None:
        if is_theme_change(event) and hasattr(self, "theme_button"):
            self._dress()
        super().changeEvent(event)
