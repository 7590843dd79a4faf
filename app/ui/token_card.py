"""The card of one token: what it is, how it came about, and its rivals, each a button that regenerates with it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QGraphicsDropShadowEffect, QHBoxLayout, QVBoxLayout, QWidget

from app.theme import (
    PX_CAPTION,
    PX_CONTROL,
    PX_LABEL,
    RADIUS_CARD,
    SPACING_BLOCK,
    SPACING_INNER,
    SPACING_PART,
    active,
    mono_font,
)
from app.token_facts import TokenFacts
from app.ui.panel import ToneLabel
from app.widgets.candidate_row import CandidateRow, visible_piece
from app.widgets.icon_button import TextButton
from app.widgets.state_word import Legend, StateWord
from engine.candidates import Candidate, Candidates

WIDTH = 348
GAP = 6  # between the card and the line it belongs to
ARROWS = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down)
LONGEST_PIECE = 16  # characters of a token on the button


class TokenCard(QFrame):
    """Stands over its window. chosen(token id) asks to regenerate with a token; moved(QKeyEvent) has Alt and arrows."""

    chosen = Signal(int)
    moved = Signal(object)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setAccessibleName(self.tr("Token"))
        self._facts: TokenFacts | None = None
        self.piece = ToneLabel("", "text", PX_CONTROL)
        self.state = StateWord()
        self.id_label = ToneLabel("", "text2", PX_LABEL)
        self.sentence = ToneLabel("", "text2", PX_LABEL)
        self.ranks = ToneLabel("", "text2", PX_LABEL)
        self.rows: list[CandidateRow] = []
        self._rows = QVBoxLayout()
        self._rows.setSpacing(0)
        self.legend = Legend()
        self.again_button = TextButton("", "secondary", "regenerate")
        self.again_button.clicked.connect(self._on_again)
        for part in (self, self.again_button):
            part.installEventFilter(self)
        self.hint = ToneLabel("Alt ← → ↑ ↓", "text3", PX_CAPTION)
        self.hint.setToolTip(self.tr("Alt and the arrows go from token to token, and from cycle to cycle"))
        self._lay_out()
        shadow = QGraphicsDropShadowEffect(self)
        shadow.setBlurRadius(32)
        shadow.setOffset(0, 8)
        shadow.setColor(QColor(0, 0, 0, 61))
        self.setGraphicsEffect(shadow)
        self.hide()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(SPACING_BLOCK)
        for part in (self.piece, self.state):
            head.addWidget(part)
        head.addStretch(1)
        head.addWidget(self.id_label)
        foot = QHBoxLayout()
        foot.addWidget(self.again_button)
        foot.addStretch(1)
        foot.addWidget(self.hint)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACING_BLOCK, SPACING_BLOCK, SPACING_BLOCK, SPACING_BLOCK)
        column.setSpacing(SPACING_PART)
        column.addLayout(head)
        for label in (self.sentence, self.ranks):
            label.setWordWrap(True)
            column.addWidget(label)
        column.addLayout(self._rows)
        column.addWidget(self.legend)
        column.addSpacing(SPACING_INNER)
        column.addLayout(foot)

    # Content

    def show_token(self, facts: TokenFacts, sentence: str, *, can_choose: bool) -> None:
        """Show what the record tells. can_choose: whether a reply can be begun from here."""
        self._facts = facts
        self.piece.setFont(mono_font(PX_CONTROL))
        self.piece.setText(_cut(visible_piece(facts.text)) or f"<{facts.id}>")
        self.piece.setToolTip(repr(facts.text))
        self.state.show_kind(facts.kind)
        self.id_label.setText(self.tr("id {id}").replace("{id}", str(facts.id)))
        self.sentence.setText(sentence)
        self.setAccessibleDescription(sentence)
        self._show_rows(())
        self.again_button.setVisible(can_choose)
        words = self.tr("Regenerate with “{piece}”").replace("{piece}", _cut(facts.text.strip()) or str(facts.id))
        self.again_button.setText(words)
        self.again_button.setAccessibleName(words)

    def show_note(self, note: str) -> None:
        """Say why there are no rivals, or that they are being computed."""
        self._show_rows(())
        self.ranks.setText("\n".join(filter(None, (self._time(), note))))

    def show_candidates(self, found: Candidates, *, other_recipe: bool) -> None:
        """Show the rivals. other_recipe: the draft that is in force now is not the one that wrote the reply."""
        parts = [self._time(), self._ranks(found)]
        if found.accept is not None:
            chance = self.tr("Chance that the draft agrees here: {share} %.")
            parts.append(chance.replace("{share}", f"{found.accept * 100:.0f}"))
        if other_recipe:
            parts.append(self.tr("The draft's figures are of the recipe in force now."))
        self.ranks.setText("\n".join(filter(None, parts)))
        shown = {candidate.id: candidate for candidate in (*found.full, *found.draft)}
        self._show_rows(tuple(shown.values()))

    def _ranks(self, found: Candidates) -> str:
        words = self.tr("Rank {full} for the full model, {draft} for the draft.")
        none = self.tr("n/a")
        for name, rank in (("full", found.full_rank), ("draft", found.draft_rank)):
            words = words.replace("{" + name + "}", f"{rank:,}" if rank is not None else none)
        return words

    def _time(self) -> str:
        if self._facts is None or self._facts.seconds is None or self._facts.cycle is None:
            return ""
        words = self.tr("{share} ms, its share of a cycle of {cycle} ms.")
        share, cycle = self._facts.seconds * 1000, self._facts.cycle.seconds * 1000
        return words.replace("{share}", f"{share:.1f}").replace("{cycle}", f"{cycle:.1f}")

    def _show_rows(self, candidates: tuple[Candidate, ...]) -> None:
        while len(self.rows) < len(candidates):
            row = CandidateRow(self)
            row.clicked.connect(self._on_row)
            row.installEventFilter(self)
            self._rows.addWidget(row)
            self.rows.append(row)
        for number, row in enumerate(self.rows):
            row.setVisible(number < len(candidates))
            if number < len(candidates):
                own = self._facts is not None and candidates[number].id == self._facts.id
                row.show_candidate(candidates[number], own=own)
        self.legend.setVisible(bool(candidates))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The rivals that are shown, in order."""
        return tuple(row.candidate for row in self.rows if not row.isHidden() and row.candidate is not None)

    # Place

    def place(self, line: QRect, room: QRect, live: QRect) -> None:
        """Stand above a token's line, else below it, else beside the token; never over the line that is written if any
        of these will do. All in the window's coordinates; live is empty where nothing is written.
        """
        layout = self.layout()
        if layout is not None:
            layout.activate()
        width = min(WIDTH, room.width() - 2 * SPACING_PART)
        height = self.heightForWidth(width) if self.hasHeightForWidth() else self.sizeHint().height()
        window = self.window().rect()
        x = _within(line.center().x() - width // 2, room.left() + SPACING_PART, room.right() - width - SPACING_PART)
        y = _within(line.center().y() - height // 2, room.top(), window.bottom() - height - SPACING_PART)
        places = [
            QRect(x, line.top() - GAP - height, width, height),
            QRect(x, line.bottom() + GAP, width, height),
            QRect(x, max(live.bottom(), line.bottom()) + GAP, width, height),
            QRect(line.left() - GAP - width, y, width, height),
            QRect(line.right() + GAP, y, width, height),
        ]
        first = QRect(room.left(), room.top(), room.width(), window.height())  # above, it may not cover the top bar
        inside = [place for place in places if first.contains(place) and window.contains(place)]
        free = [place for place in inside if not place.intersects(live)]
        self.setGeometry((free or inside or [QRect(x, y, width, height)])[0])
        self.raise_()

    def focus_first(self) -> None:
        """Give the keyboard to the first thing that can be pressed."""
        for widget in (*self.rows, self.again_button):
            if not widget.isHidden():
                widget.setFocus(Qt.FocusReason.TabFocusReason)
                return
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFocus(Qt.FocusReason.TabFocusReason)

    # Events

    @Slot()
    def _on_row(self) -> None:
        row = self.sender()
        if isinstance(row, CandidateRow) and row.candidate is not None and not self.again_button.isHidden():
            self.chosen.emit(row.candidate.id)

    @Slot()
    def _on_again(self) -> None:
        if self._facts is not None:
            self.chosen.emit(self._facts.id)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Buttons would take the arrows for themselves."""
        if (
            event.type() == QEvent.Type.KeyPress
            and isinstance(event, QKeyEvent)
            and event.modifiers() & Qt.KeyboardModifier.AltModifier
            and event.key() in ARROWS
        ):
            self.moved.emit(event)
            return True
        return super().eventFilter(watched, event)

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease, QEvent.Type.Wheel):
            event.accept()  # nothing below the card is meant
            return True
        return super().event(event)

    def paintEvent(self, _: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(active().color("line2"), 1))
        painter.setBrush(active().color("input"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS_CARD, RADIUS_CARD)


def _within(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_PIECE else text[: LONGEST_PIECE - 1] + "…"
