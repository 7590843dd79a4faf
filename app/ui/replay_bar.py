"""The bar under a reply that is being replayed: what it is, play and pause, the position, the speed, the way out."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QSlider, QStyle, QWidget

from app.replay import SPEEDS, Replay
from app.theme import PX_LABEL, RADIUS_CARD, SPACING_INNER, SPACING_PART, active, is_theme_change
from app.ui.panel import Tag, ToneLabel
from app.ui.wheel_guard import WheelGuard
from app.widgets.icon_button import HIT_SMALL, IconButton

MILLI = 1000
CYCLES_A_PAGE = 10


class ReplayBar(QWidget):
    """Drives a `Replay` and follows it. closed() when the user wants the whole reply back."""

    closed = Signal()

    def __init__(self, replay: Replay, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._replay = replay
        self.setAccessibleName(self.tr("Replay of a stored reply"))
        self.tag = Tag(self.tr("Replay"))
        self.tag.setToolTip(self.tr("A stored reply shown again from its record. No model is running."))
        self.play_button = IconButton("pause", self.tr("Pause"), self, HIT_SMALL)
        self.play_button.clicked.connect(replay.toggle)
        self.slider = _PositionSlider(self)
        self.slider.setRange(0, max(1, round(replay.duration * MILLI)))
        self.slider.setAccessibleName(self.tr("Position in the replay"))
        self.slider.valueChanged.connect(self._on_slider)
        self.slider.stepped.connect(self._on_stepped)
        self.time = ToneLabel("", "text2", PX_LABEL)
        self.time.setText(self._time_text(replay.duration))
        self.time.setMinimumWidth(self.time.sizeHint().width())
        self.speed = self._speed_box()
        self.close_button = IconButton("close", self.tr("End the replay"), self, HIT_SMALL)
        self.close_button.clicked.connect(self.closed)
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACING_PART, SPACING_INNER, SPACING_INNER, SPACING_INNER)
        row.setSpacing(SPACING_PART)
        for part in (self.tag, self.play_button, self.slider, self.time, self.speed, self.close_button):
            row.addWidget(part, int(part is self.slider))
        replay.moved.connect(self._on_moved)
        replay.playing_changed.connect(self._on_playing)
        self._on_moved(replay.position)
        self._on_playing(replay.playing)

    def _speed_box(self) -> QComboBox:
        box = QComboBox()
        for speed in SPEEDS:
            box.addItem(f"{speed:g}×", speed)
        box.setCurrentIndex(SPEEDS.index(self._replay.speed))
        box.setAccessibleName(self.tr("Speed of the replay"))
        box.setToolTip(self.tr("Times the speed at which the reply was written"))
        box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        box.installEventFilter(WheelGuard(box))
        box.currentIndexChanged.connect(self._on_speed)
        return box

    def set_speed(self, speed: float) -> None:
        """Choose a speed of `SPEEDS`. Raises ValueError for another."""
        self.speed.setCurrentIndex(SPEEDS.index(speed))

    @Slot(int)
    def _on_speed(self, number: int) -> None:
        self._replay.set_speed(SPEEDS[number])

    @Slot(int)
    def _on_slider(self, value: int) -> None:
        at_end = value == self.slider.maximum()  # which a rounded position may miss
        self._replay.seek(self._replay.duration if at_end else value / MILLI)

    @Slot(int)
    def _on_stepped(self, cycles: int) -> None:
        self._replay.step(cycles)

    @Slot(float)
    def _on_moved(self, seconds: float) -> None:
        with QSignalBlocker(self.slider):
            self.slider.setValue(round(seconds * MILLI))
        self.time.setText(self._time_text(seconds))
        if not self._replay.playing:  # read out where it came to rest, not all along
            self.slider.setAccessibleDescription(self.time.text())

    @Slot(bool)
    def _on_playing(self, playing: bool) -> None:
        words = self.tr("Pause") if playing else self.tr("Play")
        self.play_button.set_icon_name("pause" if playing else "play")
        self.play_button.setToolTip(words)
        self.play_button.setAccessibleName(words)
        self.slider.setAccessibleDescription(self.time.text())

    def _time_text(self, seconds: float) -> str:
        words = self.tr("{now} of {all} s")
        return words.replace("{now}", f"{seconds:.1f}").replace("{all}", f"{self._replay.duration:.1f}")

    def paintEvent(self, _: QPaintEvent) -> None:
        theme = active()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("line"), 1))
        painter.setBrush(theme.color("surface"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS_CARD, RADIUS_CARD)

    def changeEvent(self, event: QEvent) -> None:
        if is_theme_change(event):
            self.update()
        super().changeEvent(event)


class _PositionSlider(QSlider):
    """Goes where it is clicked; arrow keys ask for the next cycle, Page keys for the tenth: stepped(cycles)."""

    stepped = Signal(int)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setMinimumWidth(60)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.installEventFilter(WheelGuard(self))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            handle = self.style().pixelMetric(QStyle.PixelMetric.PM_SliderLength, None, self)
            place, room = round(event.position().x() - handle / 2), self.width() - handle
            self.setValue(QStyle.sliderValueFromPosition(self.minimum(), self.maximum(), place, room))
        super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Down: -1,
            Qt.Key.Key_Up: 1,
            Qt.Key.Key_PageDown: -CYCLES_A_PAGE,
            Qt.Key.Key_PageUp: CYCLES_A_PAGE,
        }
        step = steps.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self.stepped.emit(step)
