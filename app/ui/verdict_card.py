"""The verdict: one sentence on the speed, one button that changes something, and the figures behind it on demand."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.icons import icon
from app.theme import PX_CONTROL, PX_LABEL, RADIUS_CARD, SPACING_BLOCK, SPACING_PART, active, is_theme_change
from app.ui.panel import ToneLabel
from app.ui.verdict_words import shown, translated
from app.verdict import Action, Verdict
from app.verdict_facts import UNMEASURED, Fact
from app.widgets.icon_button import TextButton

HOLD_MS = 5000  # a sentence stays at least so long: it is meant to be read
ICON = 16


class VerdictCard(QWidget):
    """applied(Action) when the button is pressed; what it does is the receiver's business."""

    applied = Signal(object)

    def __init__(self, parent: QWidget | None = None, *, hold_ms: int = HOLD_MS) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Why this speed"))
        self._verdict: Verdict | None = None
        self._next: Verdict | None = None
        self._hold = QTimer(self)
        self._hold.setSingleShot(True)
        self._hold.setInterval(hold_ms)
        self._hold.timeout.connect(self._on_held)
        self._icon = QLabel(self)
        self.sentence = ToneLabel("", "text", PX_CONTROL)
        self.sentence.setWordWrap(True)
        self.button = TextButton("", "primary")
        self.button.clicked.connect(self._on_clicked)
        self.explain_button = TextButton(self.tr("Explain"), "ghost")
        self.explain_button.setToolTip(self.tr("The figures behind this sentence"))
        self.explain_button.clicked.connect(self.explain)
        self.explanation = Explanation(self)
        self._lay_out()
        self._dress()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(SPACING_PART)
        head.addWidget(self._icon)
        head.addWidget(ToneLabel(self.tr("Why this speed"), "text2", PX_LABEL, QFont.Weight.Medium), 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACING_PART)
        buttons.addWidget(self.button)
        buttons.addWidget(self.explain_button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACING_BLOCK, SPACING_BLOCK - 2, SPACING_BLOCK, SPACING_BLOCK - 2)
        column.setSpacing(SPACING_PART)
        column.addLayout(head)
        column.addWidget(self.sentence)
        column.addLayout(buttons)
        self.button.hide()
        self.explain_button.hide()

    @property
    def verdict(self) -> Verdict | None:
        """What is shown now."""
        return self._verdict

    @property
    def holding(self) -> bool:
        """Whether the sentence is new, so that a newer one waits."""
        return self._hold.isActive()

    def show_verdict(self, verdict: Verdict) -> None:
        """Show a verdict; within five seconds of the last new sentence it waits, and only the newest is kept."""
        if self.holding:
            self._next = verdict
        else:
            self._show(verdict)

    def settle(self) -> None:
        """Show at once what waits, for a still picture."""
        self._hold.stop()
        self._on_held()

    @Slot()
    def _on_held(self) -> None:
        verdict, self._next = self._next, None
        if verdict is not None:
            self._show(verdict)

    def _show(self, verdict: Verdict) -> None:
        if verdict == self._verdict:
            return
        text = shown(verdict.sentence)
        if text != self.sentence.text():
            self.sentence.setText(text)
            self.setAccessibleDescription(text)
            if verdict.facts:  # that there is no reply yet need not be read to its end
                self._hold.start()
        self._verdict = verdict
        self._show_action(verdict.action)
        self.explain_button.setVisible(bool(verdict.facts))
        self.explanation.show_facts(verdict.facts)
        if (layout := self.layout()) is not None:
            layout.activate()  # or the next picture would still have the room of the words before

    def _show_action(self, action: Action | None) -> None:
        if action is not None:
            self.button.setText(shown(action.label))
            self.button.setAccessibleName(shown(action.label))
        self.button.setVisible(action is not None)  # last, so that it is never laid out for other words

    @Slot()
    def _on_clicked(self) -> None:
        """The change is made once; the sentence stays until the next one says what came of it."""
        if self._verdict is not None and self._verdict.action is not None:
            action = self._verdict.action
            self.button.hide()
            self.applied.emit(action)

    @Slot()
    def explain(self) -> None:
        """Open the figures behind the sentence."""
        self.explanation.adjustSize()
        place = self.explain_button.mapToGlobal(QPoint(0, self.explain_button.height() + SPACING_PART // 2))
        screen = self.screen().availableGeometry()
        x = min(place.x(), screen.right() - self.explanation.width())
        self.explanation.move(max(screen.left(), x), place.y())
        self.explanation.show()

    def paintEvent(self, _: QPaintEvent) -> None:
        painter = QPainter(self)
        _paint_card(painter, QRectF(self.rect()), "canvas")

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "explanation"):
            self._dress()

    def _dress(self) -> None:
        self._icon.setPixmap(icon("bolt", "accent").pixmap(ICON, ICON))
        self.update()


class Explanation(QFrame):
    """The figures of a verdict in a small window that closes with a click beside it or Esc."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self.setAccessibleName(self.tr("The figures behind the verdict"))
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(SPACING_BLOCK, SPACING_BLOCK, SPACING_BLOCK, SPACING_BLOCK)
        self._grid.setHorizontalSpacing(SPACING_BLOCK)
        self._grid.setVerticalSpacing(SPACING_PART)
        self._rows: list[tuple[ToneLabel, ToneLabel, ToneLabel]] = []

    def show_facts(self, facts: tuple[Fact, ...]) -> None:
        """Show these lines."""
        while len(self._rows) < len(facts):
            row = (
                ToneLabel("", "text2", PX_LABEL),
                ToneLabel("", "text", PX_LABEL, QFont.Weight.Medium),
                ToneLabel("", "text3", PX_LABEL),
            )
            row[1].setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            for column, label in enumerate(row):
                self._grid.addWidget(label, len(self._rows), column)
            self._rows.append(row)
        for number, row in enumerate(self._rows):
            for label in row:
                label.setVisible(number < len(facts))
            if number < len(facts):
                self._fill(row, facts[number])

    def _fill(self, row: tuple[ToneLabel, ToneLabel, ToneLabel], fact: Fact) -> None:
        name, value, help = row
        name.setText(translated(fact.label))
        help.setText(translated(fact.help))
        value.setText(shown(fact.value) if fact.value is not None else self.tr("n/a"))
        value.set_tone("text" if fact.value is not None else "text3")
        value.setToolTip("" if fact.value is not None else translated(UNMEASURED))

    def lines(self) -> list[str]:
        """What is shown, line by line."""
        return [" ".join(label.text() for label in row) for row in self._rows if not row[0].isHidden()]

    def paintEvent(self, _: QPaintEvent) -> None:
        painter = QPainter(self)
        _paint_card(painter, QRectF(self.rect()), "input")


def _paint_card(painter: QPainter, rect: QRectF, role: str) -> None:
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(active().color("line"), 1))
    painter.setBrush(active().color(role))
    painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), RADIUS_CARD, RADIUS_CARD)
