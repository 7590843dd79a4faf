"""One reply: its text, the timeline of its cycles, the counts, and the line of figures with the actions."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction, QEnterEvent, QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QToolButton, QVBoxLayout, QWidget

from app.theme import PX_LABEL, active, is_theme_change, ui_font
from app.ui.link_question import LinkQuestion
from app.widgets.counts_row import CountsRow
from app.widgets.cycle_timeline import CycleTimeline
from app.widgets.icon_button import HIT_SMALL, IconButton
from app.widgets.sibling_pager import SiblingPager
from app.widgets.token_pointer import TokenPointer
from app.widgets.token_spans import Span
from app.widgets.token_text import TokenText
from engine.records import CycleEvent, CycleRecord, Event, Finished, Opening, PrefillProgress, StopReason
from engine.statistics import ReplyStatistics


class ReplyView(QWidget):
    """A reply as its events arrive. The newest reply shows its marks; an old one only while it is pointed at."""

    regenerate_requested = Signal()
    continue_requested = Signal()
    branch_requested = Signal()
    page_requested = Signal(int)  # another version of it: -1 the one before, 1 the one after
    replay_requested = Signal()
    compare_requested = Signal()
    report_requested = Signal()
    statistics_changed = Signal(object)  # ReplyStatistics
    cycle_chosen = Signal(object)  # the CycleRecord of a cycle that was selected
    grew = Signal()  # its height changed by what it shows
    restarted = Signal()  # it is empty again

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._statistics = ReplyStatistics()
        self._unshown: list[CycleRecord] = []
        self._refresh = QTimer(self)
        self._refresh.setSingleShot(True)
        self._refresh.setInterval(100)
        self._refresh.timeout.connect(self.refresh)
        self._finished: Finished | None = None
        self._note = ""
        self._hovered = False
        self.text = TokenText(self)
        self.timeline = CycleTimeline(self)
        self.counts = CountsRow(self)
        self._progress = QLabel(self)
        self._failure = QLabel(self)
        self._figures = QLabel(self)
        self._menu = self._make_menu()
        self._cycles = self._make_cycles_panel()
        self._actions = self._make_actions()
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for widget in (self._progress, self.text, self._failure, self._cycles, self._actions):
            column.addWidget(widget)
        for label in (self._progress, self._failure):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.hide()
        self._cycles.hide()
        self._actions.hide()
        self.text.hide()
        self.text.set_tooltips(False)  # a card tells more
        self.pointer = TokenPointer(self.text)
        self.pointer.reached.connect(self._on_reached)
        self.text.cycle_clicked.connect(self._select_cycle)
        self.timeline.cycle_selected.connect(self._select_cycle)
        self.text.height_changed.connect(self.grew)
        self.text.link_clicked.connect(self._on_link)
        self.text.set_live(True)
        self._dress()

    def _make_menu(self) -> QMenu:
        menu = QMenu(self)
        self._keep = QAction(self.tr("Keep rejected guesses in the text"), menu)
        self._keep.setCheckable(True)
        self._keep.toggled.connect(self.text.set_keep_ghosts)
        self._details = QAction(self.tr("Show cycles"), menu)
        self._details.setCheckable(True)
        self._details.setChecked(True)
        self._details.toggled.connect(self._show_details)
        self._raw = QAction(self.tr("Raw tokens"), menu)
        self._raw.setCheckable(True)
        self._raw.toggled.connect(self.text.set_raw)
        menu.addAction(self._keep)
        menu.addAction(self._raw)
        menu.addAction(self._details)
        menu.addSeparator()
        for words, signal in (
            (self.tr("Replay"), self.replay_requested),
            (self.tr("Compare with plain decoding…"), self.compare_requested),
            (self.tr("Export report…"), self.report_requested),
        ):
            menu.addAction(words).triggered.connect(signal)
        return menu

    def _make_cycles_panel(self) -> QWidget:
        panel = QWidget(self)
        column = QVBoxLayout(panel)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.timeline)
        column.addWidget(self.counts)
        return panel

    def _make_actions(self) -> QWidget:
        row = QWidget(self)
        layout = QHBoxLayout(row)
        layout.setContentsMargins(2, 0, 0, 0)
        layout.setSpacing(4)
        self._figures.setFont(ui_font(PX_LABEL))
        self._figures.setTextFormat(Qt.TextFormat.PlainText)
        self._figures.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout.addWidget(self._figures, 1)
        self.copy_button = IconButton("copy", self.tr("Copy reply"), row, HIT_SMALL)
        self.copy_button.clicked.connect(self.copy)
        self.regenerate_button = IconButton("regenerate", self.tr("Regenerate"), row, HIT_SMALL)
        self.regenerate_button.clicked.connect(self.regenerate_requested)
        self.pager = SiblingPager(row)
        self.pager.chosen.connect(self.page_requested)
        self.continue_button = IconButton("continue", self.tr("Continue this reply"), row, HIT_SMALL)
        self.continue_button.clicked.connect(self.continue_requested)
        self.continue_button.hide()
        self.branch_button = IconButton("branch", self.tr("New chat from here"), row, HIT_SMALL)
        self.branch_button.clicked.connect(self.branch_requested)
        more = IconButton("ellipsis", self.tr("More"), row, HIT_SMALL)
        more.setMenu(self._menu)
        more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        own = (self.continue_button, self.copy_button, self.regenerate_button, self.branch_button, more)
        for part in (self.pager, *own):
            layout.addWidget(part)
        return row

    # Events

    def append(self, event: Event) -> None:
        """Show one event of the reply."""
        self.append_many([event])

    def append_many(self, events: list[Event]) -> None:
        """Show events in order; cycles that follow one another are laid out together."""
        run: list[CycleEvent] = []
        for event in events:
            if isinstance(event, CycleEvent):
                run.append(event)
                continue
            self._append_cycles(run)
            run = []
            if isinstance(event, Opening):
                self._begin_text()
                self.text.append_opening(event)
            elif isinstance(event, PrefillProgress):
                self._show_prefill(event)
            else:
                self._finish(event)
        self._append_cycles(run)

    def _append_cycles(self, events: list[CycleEvent]) -> None:
        if not events:
            return
        self._begin_text()
        self.text.append_cycles(events)
        for event in events:
            self._statistics = self._statistics.with_cycle(event.record)
        self._unshown += [event.record for event in events]
        if not self._refresh.isActive():
            self._refresh.start()
        self.statistics_changed.emit(self._statistics)

    def _begin_text(self) -> None:
        self._progress.hide()
        if self.text.isHidden():
            self.text.show()
            self._show_details()
            self._column.activate()  # the text must know its width before it is laid out

    def refresh(self) -> None:
        """Bring timeline and counts up to date; happens by itself ten times a second and at the end."""
        self._refresh.stop()
        for record in self._unshown:
            self.timeline.append(record)
        self._unshown.clear()
        self.counts.set_statistics(self._statistics)

    def _show_prefill(self, event: PrefillProgress) -> None:
        text = self.tr("Reading the prompt… {done} of {total} tokens")
        self._progress.setText(text.replace("{done}", f"{event.done:,}").replace("{total}", f"{event.total:,}"))
        if self._progress.isHidden():
            self._progress.show()
            self.grew.emit()

    def _finish(self, event: Finished) -> None:
        self._finished = event
        self.refresh()
        self._progress.hide()
        self.text.append_tail(event.tail)
        if event.tail:
            self.text.show()
        self.text.set_live(False)
        self.text.setAccessibleDescription(self.counts.summary() if self._statistics.cycles else "")
        if event.reason is StopReason.FAILED:
            sentence = event.message or self.tr("The reply could not be finished.")
            self._failure.setText(f"⚠ {sentence}")
            self._failure.setAccessibleName(self.tr("Error: {sentence}").replace("{sentence}", sentence))
            self._failure.show()
        self._figures.setText(self._figures_text(event))
        self.copy_button.setEnabled(bool(self.source_text()))
        self._actions.show()
        self.grew.emit()

    def _figures_text(self, event: Finished) -> str:
        reasons = {
            StopReason.STOPPED: self.tr("Stopped"),
            StopReason.LENGTH: self.tr("Ended at the length limit"),
            StopReason.CONTEXT_FULL: self.tr("Ended because the context is full"),
        }
        parts = [reasons[event.reason]] if event.reason in reasons else []
        if not self._statistics.emitted and event.reason is not StopReason.FAILED:
            parts.append(self.tr("no tokens"))
        return " · ".join([*parts, *self._figures_parts(), *filter(None, [self._note])])

    def _figures_parts(self) -> list[str]:
        s = self._statistics
        parts = []
        if s.tokens_per_second is not None:
            parts.append(self.tr("{speed} tok/s").replace("{speed}", f"{s.tokens_per_second:.1f}"))
        if s.acceptance is not None:
            parts.append(self.tr("{share} % accepted").replace("{share}", f"{s.acceptance * 100:.0f}"))
        if s.speed_up is not None and s.drafted:
            parts.append(self.tr("{factor}× plain").replace("{factor}", f"{s.speed_up:.1f}"))
        return parts

    def restart(self) -> None:
        """As before the first event; what was chosen in the menu stays. For replays."""
        self._refresh.stop()
        self._unshown.clear()
        self._statistics = ReplyStatistics()
        self._finished = None
        self.text.restart()
        self.text.set_live(True)
        self.timeline.restart()
        self.counts.set_statistics(self._statistics)
        for part in (self._progress, self.text, self._failure, self._cycles, self._actions):
            part.hide()
        self.restarted.emit()

    def hurry(self) -> None:
        """What comes until `settle` happened before: rejected guesses are shown as they end up."""
        self.text.set_hurried(True)

    def settle(self) -> None:
        """Show what has come at once: timeline, counts, and rejected guesses as they end up."""
        self.refresh()
        self.text.set_hurried(False)
        self.text.settle_ghosts()

    def for_a_still(self) -> None:
        """Leave out what only a reply on screen is for: its buttons, and guesses that fade."""
        self.text.set_reduced_motion(True)
        self.text.set_still()
        for button in self._actions.findChildren(QToolButton):
            button.hide()

    def set_note(self, note: str) -> None:
        """A few words about the reply beside its figures, such as what a comparison found; "" for none."""
        self._note = note
        if self._finished is not None:
            self._figures.setText(self._figures_text(self._finished))

    def set_continuable(self, continuable: bool) -> None:
        """Whether it broke off and can be written on."""
        self.continue_button.setVisible(continuable)

    def add_below(self, widget: QWidget) -> None:
        """Put a widget under the reply; it belongs to the reply from then on."""
        self._column.addWidget(widget)
        self.grew.emit()

    # State

    def source_text(self) -> str:
        """The reply exactly as generated."""
        return self.text.source_text()

    def statistics(self) -> ReplyStatistics:
        """The figures so far."""
        return self._statistics

    def is_finished(self) -> bool:
        """True once the reply's last event has been shown."""
        return self._finished is not None

    def copy(self) -> None:
        """Put the reply's source text on the clipboard."""
        QGuiApplication.clipboard().setText(self.source_text())

    def set_old(self, old: bool) -> None:
        """An old reply hides its marks and cycles until it is pointed at, or asked for in its menu."""
        self._details.setChecked(not old)
        self._show_details()

    def set_keep_ghosts(self, keep: bool) -> None:
        """Keep rejected guesses in the text."""
        self._keep.setChecked(keep)

    def _show_details(self) -> None:
        shown = self._details.isChecked()
        self._cycles.setVisible(shown and self._statistics.cycles + (not self.text.isHidden()) > 0)
        self.text.set_tinted(shown or self._hovered)

    def _select_cycle(self, number: int) -> None:
        self.refresh()
        self.text.select_cycle(number)
        self.timeline.select(number)
        self.cycle_chosen.emit(self.timeline.record(number))

    @Slot(str)
    def _on_link(self, address: str) -> None:
        """Nothing that a model wrote is opened unasked."""
        LinkQuestion(address, self.window()).open()

    @Slot(object)
    def _on_reached(self, span: Span) -> None:
        """The keyboard is at a token: its cycle is selected in text and timeline."""
        if span.cycle >= 0:
            self._select_cycle(span.cycle)

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._hovered = True
        self.text.set_tinted(True)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hovered = False
        self.text.set_tinted(self._details.isChecked())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "_actions"):
            self._dress()

    def _dress(self) -> None:
        theme = active()
        for label, role in ((self._progress, "text2"), (self._figures, "text2"), (self._failure, "error")):
            palette = label.palette()
            palette.setColor(label.foregroundRole(), theme.color(role))
            label.setPalette(palette)
