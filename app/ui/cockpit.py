"""The cockpit: why it is as fast as it is, how drafting goes, what the memory holds, what the layers do.

Importing this imports pyqtgraph; the window does so when the cockpit is first shown.
"""

from __future__ import annotations

import os

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFont, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.conversation import Reply
from app.monitor import Sample
from app.reply_figures import ReplyFigures
from app.sample_history import SampleHistory
from app.theme import PX_CONTROL, SPACING_BLOCK, SPACING_PART, SPACING_WIDE
from app.ui.cockpit_layers import LayersSection
from app.ui.cockpit_machine import BusSection, HistorySection, UseSection
from app.ui.cockpit_memory import KV_KEY, MemorySection
from app.ui.cockpit_section import Section
from app.ui.cockpit_speculation import AcceptanceSection, SpeedSection, columns
from app.ui.panel import Panel, Tag, ToneLabel
from app.ui.verdict_card import VerdictCard
from app.widgets.icon_button import HIT_SMALL, IconButton
from engine.offload.plan import Plan
from engine.offload.report import Offload
from engine.records import CycleRecord, ModelInfo

REFRESH_MS = 100
SUMS_EVERY = 4  # refreshes of a growing reply: sums over all of it move slowly, and their plots cost most
FOLD_SECONDS = 0.006  # of a refresh, for cycles that are new


class Cockpit(QWidget):
    """closed() asks to be hidden; folded(key, bool) as the user folds a section; watch_changed() when what is on screen
    needs other readings of the machine; refreshed(growing) after every update, with whether another is due."""

    closed = Signal()
    folded = Signal(str, bool)
    watch_changed = Signal()
    refreshed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Cockpit"))
        self._figures = ReplyFigures()
        self._history = SampleHistory()
        self._info: ModelInfo | None = None
        self._plan: Plan | None = None
        self._stale = False
        self._turn = 0
        self._cores = os.cpu_count() or 1
        self.acceptance, self.speed = AcceptanceSection(), SpeedSection()
        self.memory, self.layers = MemorySection(), LayersSection()
        self.use, self.bus, self.history = UseSection(), BusSection(), HistorySection()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        self.verdict = VerdictCard()
        verdict_place = QVBoxLayout()
        verdict_place.setContentsMargins(SPACING_WIDE, 0, SPACING_WIDE, SPACING_BLOCK)
        verdict_place.addWidget(self.verdict)
        self._area = self._make_area()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(self._make_head())
        column.addLayout(verdict_place)  # above what scrolls
        column.addWidget(self._area, 1)
        for section in self.sections():
            section.folded.connect(self.folded)
            section.shown_changed.connect(self._on_shown)
        self.refresh()

    def sections(self) -> tuple[Section, ...]:
        """In their fixed order."""
        return self.acceptance, self.speed, self.memory, self.layers, self.use, self.bus, self.history

    def _make_head(self) -> QHBoxLayout:
        self.title = ToneLabel(self.tr("Cockpit"), "text", PX_CONTROL, QFont.Weight.DemiBold)
        self.replay_tag = Tag(self.tr("Replay"))
        self.replay_tag.setToolTip(self.tr("These are the figures of a stored reply. No model is running it."))
        self.replay_tag.hide()
        self.close_button = IconButton("close", self.tr("Hide the cockpit (Ctrl+J)"), self, HIT_SMALL)
        self.close_button.clicked.connect(self.closed)
        row = QHBoxLayout()
        row.setContentsMargins(SPACING_WIDE, SPACING_BLOCK, SPACING_BLOCK, SPACING_PART)
        row.setSpacing(SPACING_PART)
        row.addWidget(self.title)
        row.addWidget(self.replay_tag)
        row.addStretch(1)
        row.addWidget(self.close_button)
        return row

    def _make_area(self) -> QScrollArea:
        page = Panel("surface")
        page.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # a plot that changes paints nothing below it
        column = self._column = QVBoxLayout(page)
        column.setContentsMargins(SPACING_WIDE, 0, SPACING_WIDE, SPACING_BLOCK)
        column.setSpacing(SPACING_PART)
        for number, section in enumerate(self.sections()):
            if number:
                line = Panel("line")
                line.setFixedHeight(1)
                column.addWidget(line)
            column.addWidget(section)
        column.addStretch(1)
        area = QScrollArea(self)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(page)
        area.verticalScrollBar().rangeChanged.connect(self._on_range)
        area.viewport().setAutoFillBackground(False)
        return area

    @Slot(int, int)
    def _on_range(self, _: int, highest: int) -> None:
        """The margin at the right is as wide with a scroll bar in it as without."""
        bar = self._area.verticalScrollBar().sizeHint().width() if highest else 0
        self._column.setContentsMargins(SPACING_WIDE, 0, max(0, SPACING_WIDE - bar), SPACING_BLOCK)

    # What is shown

    def set_folded(self, keys: tuple[str, ...]) -> None:
        """Fold exactly these sections."""
        for section in self.sections():
            section.set_open(section.key not in keys)
        self.memory.set_kv_open(KV_KEY not in keys)

    def set_model(self, info: ModelInfo | None, offload: Offload | None) -> None:
        """The model that is loaded, and how its parts lie where not all of it is in one memory."""
        self._info, self._plan = info, offload.plan if offload is not None else None
        self._show_layers_of_model()
        last = self._history.last
        if last is not None and self.memory.open:
            self.memory.show_sample(last, info)

    def follow(self, reply: Reply | None, *, replay: bool = False) -> None:
        """Show a reply as it stands; to be called whenever it has grown. replay: it is played from a record."""
        if reply is not self._figures.reply:
            self.layers.choose(None)
        self._figures.follow(reply)
        self.replay_tag.setVisible(reply is not None and (replay or reply.reply_id < 0))
        self._stale = True
        self.wake()

    @Slot()
    def wake(self) -> None:
        """Catch up soon, if somebody can see it."""
        if self._stale and self.on_screen and not self._timer.isActive():
            self._timer.start()

    @property
    def on_screen(self) -> bool:
        """Whether it is shown in a window that is not minimised."""
        return self.isVisible() and not self.window().isMinimized()

    def choose_cycle(self, record: CycleRecord | None) -> None:
        """Show the layers of one cycle, that of a token pointed at; None for the last cycles again."""
        self.layers.choose(record)

    def settle(self) -> None:
        """Show all that has come, at once, for a still picture."""
        while self._figures.pending or self._stale:
            self.refresh()
        self.verdict.settle()

    @property
    def figures(self) -> ReplyFigures:
        """What is folded of the reply that is followed."""
        return self._figures

    @property
    def updating(self) -> bool:
        """Whether an update is due: a cockpit at rest costs nothing."""
        return self._timer.isActive()

    @Slot()
    def refresh(self) -> None:
        """Bring everything about the reply up to date; happens by itself, at most ten times a second."""
        growing = self._figures.take(FOLD_SECONDS) > 0
        self._turn = (self._turn + 1) % SUMS_EVERY if growing else 0
        self._show_layers_of_model()
        trend = columns(self._figures.trend.points)
        if self.acceptance.open:
            self.acceptance.show_figures(self._figures, trend, sums=self._turn == 0)
        if self.speed.open:
            self.speed.show_figures(self._figures, trend, sums=not growing or self._turn == SUMS_EVERY // 2)
        if self.layers.open:
            self.layers.show_figures(self._figures)
        self._stale = growing or self._figures.pending  # once more when it rests, so that nothing is left behind
        self.refreshed.emit(self._stale)
        self.wake()

    def _show_layers_of_model(self) -> None:
        """A replay shows the layers of the model that wrote it, where its file tells."""
        reply = self._figures.reply
        if reply is not None and reply.info is not None and reply.reply_id < 0:
            self.layers.set_model(reply.info, None)
        else:
            self.layers.set_model(self._info, self._plan)

    # Readings of the machine

    @property
    def wants_machine(self) -> bool:
        """Whether anything on screen needs readings of the machine."""
        return self.on_screen and any(section.in_view for section in (self.memory, self.use, self.bus, self.history))

    @property
    def wants_bus(self) -> bool:
        """Whether the bus is on screen."""
        return self.on_screen and self.bus.in_view

    @Slot(object)
    def show_sample(self, sample: Sample) -> None:
        """A reading of the monitor."""
        self._history.add(sample)
        plan = sample.offload.plan if sample.offload is not None else None
        if plan != self._plan:
            self._plan = plan
            self._show_layers_of_model()
        if self.memory.in_view:
            self.memory.show_sample(sample, self._info)
        if self.use.in_view:
            self.use.show_history(self._history, self._cores)
        for section in (self.bus, self.history):
            if section.in_view:
                section.show_history(self._history)

    @Slot()
    def _on_shown(self) -> None:
        """A section came into view or left it."""
        self._stale = True
        self.wake()
        self.watch_changed.emit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.wake()
