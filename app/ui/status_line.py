"""The bottom line: what the engine does, how fast the last reply is or was, and on what it runs."""

from __future__ import annotations

import math
import time

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.engine_words import in_user_words
from app.states import HostState
from app.theme import PX_LABEL, SPACING_PART, SPACING_WIDE
from app.ui.panel import Dot, ElidedLabel, Panel, ToneLabel
from app.ui.verdict_words import times
from app.words import factor
from engine.records import ModelInfo, PrefillProgress
from engine.statistics import ReplyStatistics

HEIGHT = 28
NARROW = 760
MEDIUM = 900
REFRESH_SECONDS = 0.25  # figures that change 30 times a second cannot be read

TONES = {
    HostState.NO_MODEL: "text3",
    HostState.LOADING: "warn",
    HostState.READY: "ok",
    HostState.GENERATING: "accent",
    HostState.STOPPING: "warn",
    HostState.PROVING: "accent",
    HostState.CALIBRATING: "accent",
    HostState.BENCHMARKING: "accent",
    HostState.UNLOADING: "warn",
    HostState.FAILED: "error",
    HostState.CLOSED: "text3",
}


def state_words(state: HostState) -> str:
    """The state for people."""
    words = {
        HostState.NO_MODEL: QCoreApplication.translate("StatusLine", "No model"),
        HostState.LOADING: QCoreApplication.translate("StatusLine", "Loading"),
        HostState.READY: QCoreApplication.translate("StatusLine", "Ready"),
        HostState.GENERATING: QCoreApplication.translate("StatusLine", "Generating"),
        HostState.STOPPING: QCoreApplication.translate("StatusLine", "Stopping"),
        HostState.PROVING: QCoreApplication.translate("StatusLine", "Proving"),
        HostState.CALIBRATING: QCoreApplication.translate("StatusLine", "Calibrating"),
        HostState.BENCHMARKING: QCoreApplication.translate("StatusLine", "Benchmarking"),
        HostState.UNLOADING: QCoreApplication.translate("StatusLine", "Unloading"),
        HostState.FAILED: QCoreApplication.translate("StatusLine", "Failed"),
        HostState.CLOSED: QCoreApplication.translate("StatusLine", "Closing"),
    }
    return words[state]


class Figure(QWidget):
    """A strong figure and the quiet words after it; "n/a" with the reason as tooltip where it was not measured."""

    def __init__(self, words: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self._value = ToneLabel("", "text", PX_LABEL, QFont.Weight.DemiBold)
        self._words = ToneLabel(words, "text2", PX_LABEL)
        row.addWidget(self._value)
        row.addWidget(self._words)

    def show_value(self, value: str | None, reason: str, words: str | None = None) -> None:
        """Show a figure, or "n/a" when it is None; `words` replaces the words after it."""
        self._value.setText(value if value is not None else self.tr("n/a"))
        self._value.set_tone("text" if value is not None else "text3")
        self.setToolTip(reason if value is None else "")
        if words is not None:
            self._words.setText(words)
        self.setAccessibleName(self.text())

    def text(self) -> str:
        """What is shown, as one phrase."""
        return f"{self._value.text()} {self._words.text()}".strip()


class StatusLine(Panel):
    """28 pixels high. Figures appear with the first cycle; nothing unmeasured is ever shown as 0."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("side", "top", parent)
        self.setFixedHeight(HEIGHT)
        self.setAccessibleName(self.tr("Status"))
        self._state = HostState.NO_MODEL
        self._shown_at = -math.inf
        self._have_figures = False
        self._dot = Dot("text3")
        self._words = ToneLabel("", "text2", PX_LABEL)
        self.speed = Figure(self.tr("tok/s"))
        self.acceptance = Figure(self.tr("acceptance"))
        self.per_cycle = Figure(self.tr("tokens per cycle"))
        self.speed_up = Figure(self.tr("plain"))
        self._device = ElidedLabel("", "text2", PX_LABEL)
        self.lossless = ToneLabel(self.tr("lossless"), "ok", PX_LABEL, QFont.Weight.DemiBold)
        self.lossless.setToolTip(
            self.tr(
                "The draft only proposes. The full model checks every token, so a greedy reply is the one that plain\n"
                "decoding gives, token for token, and a sampled reply has exactly the full model's distribution."
            )
        )
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACING_WIDE, 1, SPACING_WIDE, 0)
        row.setSpacing(SPACING_WIDE)
        state = QHBoxLayout()
        state.setSpacing(SPACING_PART)
        state.addWidget(self._dot)
        state.addWidget(self._words)
        row.addLayout(state)
        row.addSpacing(SPACING_PART)
        for figure in self._figures():
            row.addWidget(figure)
        row.addStretch(1)
        row.addWidget(self._device)
        row.addWidget(self.lossless)
        self.show_state(HostState.NO_MODEL)
        self.show_model(None)
        self.clear_figures()

    def _figures(self) -> tuple[Figure, ...]:
        return self.speed, self.acceptance, self.per_cycle, self.speed_up

    @property
    def state_text(self) -> str:
        """The words beside the dot."""
        return self._words.text()

    @property
    def device_text(self) -> str:
        """The words about device and kernels."""
        return self._device.text()

    def show_state(self, state: HostState) -> None:
        """The state in words and colour."""
        self._state = state
        self._dot.set_tone(TONES[state])
        self._words.setText(state_words(state))

    def show_waiting(self, waiting: bool) -> None:
        """A message waits for the model to be loaded."""
        if self._state is HostState.LOADING:
            self._words.setText(self.tr("Loading, then your message is sent") if waiting else state_words(self._state))

    def show_prefill(self, progress: PrefillProgress) -> None:
        """How much of the prompt has been read."""
        if self._state is HostState.GENERATING:
            words = self.tr("Reading the prompt, {done} of {total} tokens")
            self._words.setText(words.format(done=progress.done, total=progress.total))

    def show_model(self, info: ModelInfo | None) -> None:
        """Device and kernels of the loaded model."""
        self._device.setText(f"{in_user_words(info.device)} · {info.kernels}" if info else "")
        self.lossless.setVisible(info is not None)

    def clear_figures(self) -> None:
        """Nothing has been measured yet."""
        self._have_figures = False
        self._shown_at = -math.inf
        self._show_figures()

    def show_statistics(self, statistics: ReplyStatistics, *, final: bool) -> None:
        """Figures of a reply; while it runs they are shown anew four times a second, and at its end once more."""
        if self._state is HostState.GENERATING:
            self._words.setText(state_words(self._state))
        now = time.monotonic()
        if not statistics.cycles or (not final and now - self._shown_at < REFRESH_SECONDS):
            return
        self._shown_at = now
        no_draft = self.tr("Nothing was drafted in this reply.")
        speed, share, per_cycle = statistics.tokens_per_second, statistics.acceptance, statistics.tokens_per_cycle
        self.speed.show_value(_one(speed), self.tr("No time was measured."))
        self.acceptance.show_value(f"{share:.0%}".replace("%", " %") if share is not None else None, no_draft)
        self.per_cycle.show_value(_one(per_cycle), no_draft)
        self._show_speed_up(statistics)
        self._have_figures = True
        self._show_figures()

    def _show_speed_up(self, statistics: ReplyStatistics) -> None:
        gain, plain = statistics.speed_up, statistics.plain_seconds
        if gain is None or not plain:
            self.speed_up.show_value(None, self.tr("Plain decoding has not been measured yet."), self.tr("speed-up"))
            return
        if gain < 1:
            words = self.tr("plain, slower than plain, measured {rate} tok/s")
        else:
            words = self.tr("plain, measured {rate} tok/s")
        self.speed_up.show_value(times(factor(gain)), "", words.format(rate=f"{1 / plain:.1f}"))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_figures()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.LanguageChange:
            self.show_state(self._state)
        super().changeEvent(event)

    def _show_figures(self) -> None:
        """The narrower the window, the fewer figures; speed and speed-up stay."""
        wide, medium = self.width() >= MEDIUM, self.width() >= NARROW
        self.speed.setVisible(self._have_figures)
        self.speed_up.setVisible(self._have_figures)
        self.acceptance.setVisible(self._have_figures and medium)
        self.per_cycle.setVisible(self._have_figures and wide)
        self._device.setVisible(medium)


def _one(value: float | None) -> str | None:
    return f"{value:.1f}" if value is not None else None
