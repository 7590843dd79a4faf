"""Plain decoding and speculation side by side: two clocks, the tokens compared as they come, and the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QFont
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from app.compare_run import CompareRun
from app.host import EngineHost
from app.recorded import first_token_at
from app.replay import Replay
from app.states import HostState
from app.theme import PX_LABEL, PX_TEXT, SPACING_BLOCK, SPACING_PART, SPACING_TURN
from app.ui.compare_side import CompareSide
from app.ui.panel import ToneLabel
from app.widgets.icon_button import TextButton
from engine.comparison import Comparison
from engine.recording import event_times
from engine.records import CycleEvent, Event
from engine.settings import GenerateRequest

TICK_MS = 50
SIZE = (860, 560)


class ComparePane(QDialog):
    """`begin` starts; closing the pane stops. settled(Comparison) when both replies are there, or it was stopped.

    There is one engine, so the plain reply is made first. While the second is made, the first is replayed beside it
    from its recorded times, so that both clocks run together from the first token on.
    """

    settled = Signal(object)

    def __init__(
        self, host: EngineHost, parent: QWidget | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Compare with plain decoding"))
        self._host = host
        self._clock = clock
        self._request: tuple[GenerateRequest, int] | None = None
        self._began: float | None = None  # when the first token of the running reply came
        self.replay: Replay | None = None
        self.run = CompareRun(host, self)
        about = self.tr(
            "The same prompt twice on the one engine, one after the other: first by plain decoding, then with "
            "speculation. During the second run the first is replayed beside it. Clocks start when the prompt is read."
        )
        self._about = ToneLabel(about, "text2", PX_LABEL)
        self.plain = CompareSide(self.tr("Plain decoding"))
        self.fast = CompareSide(self.tr("With speculation"))
        self.progress = ToneLabel("", "text2", PX_LABEL)
        self.outcome = ToneLabel("", "text", PX_TEXT, QFont.Weight.DemiBold)
        self.outcome.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.stop_button = TextButton(self.tr("Stop"), "secondary", "stop")
        self.stop_button.clicked.connect(self.run.stop)
        self.again_button = TextButton(self.tr("Compare again"), "secondary")
        self.again_button.clicked.connect(self._again)
        self.close_button = TextButton(self.tr("Close"), "primary")
        self.close_button.clicked.connect(self.reject)
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self.tick)
        self._lay_out()
        self.run.plain_came.connect(self._on_plain)
        self.run.fast_came.connect(self._on_fast)
        self.run.second_began.connect(self._on_second)
        self.run.settled.connect(self._on_settled)
        self.run.failed.connect(self._on_failed)
        host.state_changed.connect(self._on_state)

    def begin(self, request: GenerateRequest, seed: int) -> bool:
        """Start a comparison; False where the engine is not ready for one."""
        if not self.run.begin(request, seed):
            return False
        self._request = request, seed
        self._drop_replay()
        self._began = None
        self.plain.restart()
        self.fast.restart()
        self.outcome.setText("")
        self._set_running(True)
        self.progress.setText(self.tr("1 of 2: plain decoding…"))
        return True

    @Slot()
    def _again(self) -> None:
        if self._request is not None:
            self.begin(*self._request)

    def reject(self) -> None:
        """Close; a running comparison is stopped."""
        self._leave()
        super().reject()

    def closeEvent(self, event: QCloseEvent) -> None:
        self._leave()
        super().closeEvent(event)

    def _leave(self) -> None:
        self.run.stop()
        if self.replay is not None:
            self.replay.show_all()

    # As it runs

    @Slot(object)
    def _on_plain(self, events: list[Event]) -> None:
        self._start_clock(events)
        self.plain.append_many(events)

    @Slot()
    def _on_second(self) -> None:
        plain = self.run.plain
        assert plain is not None and plain.finished is not None
        self.plain.show_clock(plain.finished.decode_seconds)
        self._began = None
        self.progress.setText(self.tr("2 of 2: with speculation…"))

    @Slot(object)
    def _on_fast(self, events: list[Event]) -> None:
        if self._start_clock(events):
            self._start_replay()
        self.fast.append_many(events)
        self._show_compared(self.run.outcome())

    def _start_clock(self, events: list[Event]) -> bool:
        """Whether the first token is among these events."""
        first = next((event for event in events if isinstance(event, CycleEvent)), None)
        if self._began is not None or first is None:
            return False
        self._began = self._clock() - first.record.seconds  # it was being made before it came
        self._timer.start()
        return True

    def _start_replay(self) -> None:
        """The plain reply once more, from the time its first token was begun."""
        plain = self.run.plain
        assert plain is not None
        times = event_times(plain.events)
        start = first_token_at(plain.events, times)
        self.replay = Replay(plain.events, [max(0.0, at - start) for at in times], self.plain, self, clock=self._clock)
        self.replay.moved.connect(self.plain.show_clock)
        self.replay.playing_changed.connect(self._on_playing)
        self.plain.title.setText(self.tr("Plain decoding, replayed"))
        self.replay.play()

    @Slot()
    def tick(self) -> None:
        """The clock of the reply that is being made."""
        if self._began is not None and self.run.running:
            side = self.plain if self.run.fast is None else self.fast
            side.show_clock(self._clock() - self._began)

    @Slot(bool)
    def _on_playing(self, playing: bool) -> None:
        """At the end of the replay its clock says what the engine measured."""
        at_end = not playing and self.replay is not None and self.replay.position >= self.replay.duration
        if at_end and self.run.plain is not None and self.run.plain.finished is not None:
            self.plain.show_clock(self.run.plain.finished.decode_seconds)

    def _show_compared(self, outcome: Comparison) -> None:
        if outcome.difference is None:
            words = self.tr("2 of 2: with speculation. Identical so far: {count} tokens")
            self.progress.setText(words.replace("{count}", f"{outcome.compared:,}"))

    # Outcome

    @Slot(object)
    def _on_settled(self, outcome: Comparison) -> None:
        for side, seconds in ((self.plain, outcome.plain_seconds), (self.fast, outcome.speculative_seconds)):
            if side is self.fast or self.replay is None:
                side.show_clock(seconds)
        if outcome.difference is not None:
            if self.replay is not None:
                self.replay.show_all()
            self.plain.mark_token(outcome.difference)
            self.fast.mark_token(outcome.difference)
        sentence, tone = self._sentence(outcome)
        self._show_outcome(sentence, tone)
        self.settled.emit(outcome)

    def _sentence(self, outcome: Comparison) -> tuple[str, str]:
        if outcome.difference is not None:
            words = self.tr("Different from token {place} on. This must not happen: please export a report of it.")
            return words.replace("{place}", f"{outcome.difference + 1:,}"), "error"
        count = f"{outcome.compared:,}"
        if outcome.stopped and not outcome.compared:
            return self.tr("Stopped before anything could be compared."), "text"
        if outcome.stopped:
            return self.tr("Stopped. Identical so far: {count} tokens.").replace("{count}", count), "text"
        if outcome.speed_up is None:
            return self.tr("Identical: {count} tokens.").replace("{count}", count), "ok"
        if outcome.speed_up < 1:
            words = self.tr("Slower than plain: {factor}× as fast. Identical: {count} tokens.")
        else:
            words = self.tr("Identical: {count} tokens, {factor}× as fast as plain.")
        words = words.replace("{count}", count).replace("{factor}", f"{outcome.speed_up:.1f}")
        return words, "ok" if outcome.speed_up >= 1 else "warn"

    @Slot(str)
    def _on_failed(self, sentence: str) -> None:
        self._show_outcome(sentence, "error")

    def _show_outcome(self, sentence: str, tone: str) -> None:
        self.outcome.set_tone(tone)
        self.outcome.setText(sentence)
        self._timer.stop()
        self._set_running(False)

    @Slot(object)
    def _on_state(self, _: HostState) -> None:
        state = self._host.state
        self.stop_button.setEnabled(state is HostState.GENERATING)
        self.again_button.setEnabled(state is HostState.READY)
        if state is HostState.CLOSED:
            self._drop_replay()
            self._timer.stop()
            self.hide()

    def _drop_replay(self) -> None:
        if self.replay is not None:
            self.replay.pause()
            self.replay.deleteLater()
            self.replay = None
        self.plain.title.setText(self.tr("Plain decoding"))

    def _set_running(self, running: bool) -> None:
        for part in (self.progress, self.stop_button):
            part.setVisible(running)
        for part in (self.outcome, self.again_button, self.close_button):
            part.setVisible(not running)

    def _lay_out(self) -> None:
        for label in (self._about, self.outcome):
            label.setWordWrap(True)
        sides = QHBoxLayout()
        sides.setSpacing(SPACING_TURN)
        sides.addWidget(self.plain, 1)
        sides.addWidget(self.fast, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACING_PART)
        buttons.addWidget(self.progress, 1)
        buttons.addWidget(self.outcome, 1)
        for button in (self.stop_button, self.again_button, self.close_button):
            buttons.addWidget(button, 0, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACING_TURN, SPACING_TURN, SPACING_TURN, SPACING_TURN)
        column.setSpacing(SPACING_BLOCK)
        column.addWidget(self._about)
        column.addLayout(sides, 1)
        column.addLayout(buttons)
        self.resize(*SIZE)
