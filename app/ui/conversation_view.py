"""The conversation: bubbles and replies in a centred column that follows its end, unless the user scrolled up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFont, QPalette, QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QLabel, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app.engine_words import in_user_words
from app.theme import SPACING_TURN, active, is_theme_change, ui_font
from app.ui.reply_view import ReplyView
from app.widgets.banner import Banner
from app.widgets.icon_button import TextButton
from app.widgets.user_bubble import UserBubble

COLUMN_WIDTH = 720
COLUMN_PADDING = 16
EARLIER_MS = 50
_NEAR_END = 4  # pixels from the end that still count as being there


class ConversationView(QWidget):
    """See the module."""

    suggestion_chosen = Signal(str)
    demo_chosen = Signal()
    banner_action_clicked = Signal()
    scrolled = Signal()
    earlier_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._following = True
        self._has_earlier = False
        self._placing = False
        self._earlier = QTimer(self)  # what is seen is painted before what is not is built
        self._earlier.setSingleShot(True)
        self._earlier.setInterval(EARLIER_MS)
        self._earlier.timeout.connect(self._want_earlier)
        self._turns: list[UserBubble | ReplyView] = []
        self._empty = _EmptyState(self)
        self._empty.suggestion_chosen.connect(self.suggestion_chosen)
        self.demo_button = TextButton(self.tr("Watch a recorded demo"), "ghost", "play")
        self.demo_button.setToolTip(self.tr("A reply recorded earlier is replayed; no model is needed"))
        self.demo_button.clicked.connect(self.demo_chosen)
        self._column = _Column(self)
        self._area = self._make_area()
        self._jump = TextButton(self.tr("Jump to latest"), "secondary", "arrow-down", self)
        self._jump.clicked.connect(self.jump_to_latest)
        self._jump.hide()
        self.banner = Banner(self)
        self.banner.action_clicked.connect(self.banner_action_clicked)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(self._area, 1)
        outer.addWidget(centred(self.banner, bottom=8))
        bar = self._area.verticalScrollBar()
        bar.rangeChanged.connect(self._on_range)
        bar.valueChanged.connect(self._on_scroll)
        self._dress()

    def _make_area(self) -> QScrollArea:
        area = QScrollArea(self)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setAccessibleName(self.tr("Conversation"))
        self._page = page = QWidget(area)
        page.setObjectName("page")
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        empty = QWidget()
        rows = QVBoxLayout(empty)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.addWidget(self._empty, 3)
        rows.addWidget(self.demo_button, 0, Qt.AlignmentFlag.AlignHCenter)
        rows.addStretch(2)
        self._empty_strip = centred(empty)
        column.addWidget(self._empty_strip, 1)
        self._column_strip = centred(self._column, bottom=SPACING_TURN)
        self._column_strip.hide()
        column.addWidget(self._column_strip)
        column.addStretch(0)
        area.setWidget(page)
        area.viewport().setAutoFillBackground(False)
        page.setAutoFillBackground(True)  # opaque, so that scrolling moves pixels instead of painting them again
        return area

    # Content

    def add_user(self, text: str, at: int | None = None) -> UserBubble:
        """Add a message of the user and follow the end again; or put it in as number `at` of what is shown."""
        bubble = UserBubble(text, self._column)
        self._add(bubble, at)
        if at is None:
            self.jump_to_latest()
        return bubble

    def begin_reply(self, at: int | None = None) -> ReplyView:
        """Add an empty reply; the replies before it become old. Or put an old one in as number `at`."""
        reply = ReplyView(self._column)
        if at is None:
            for turn in self._turns:
                if isinstance(turn, ReplyView):
                    turn.set_old(True)
        else:
            reply.set_old(True)
        reply.grew.connect(self._settle)
        self._add(reply, at)
        return reply

    def remove_last_reply(self) -> None:
        """Take away the newest turn if it is a reply (before it is made again)."""
        if self._turns and isinstance(self._turns[-1], ReplyView):
            turn = self._turns.pop()
            self._column.remove(turn)

    def turns(self) -> list[UserBubble | ReplyView]:
        """What is shown, in order."""
        return list(self._turns)

    def clear(self) -> None:
        """Back to the empty state."""
        self._has_earlier = False
        self._earlier.stop()
        for turn in self._turns:
            self._column.remove(turn)
        self._turns.clear()
        self._column_strip.hide()
        self._empty_strip.show()
        self._following = True
        self._show_jump()

    def _add(self, turn: UserBubble | ReplyView, at: int | None) -> None:
        turn.resize(min(COLUMN_WIDTH, self._area.viewport().width() - 2 * COLUMN_PADDING), turn.height())
        at = len(self._turns) if at is None else at
        self._turns.insert(at, turn)
        self._column.insert(at, turn)
        turn.show()  # now rather than when Qt comes to it: a hidden part has no height
        self._empty_strip.hide()
        self._column_strip.show()

    def offer_demo(self, offered: bool) -> None:
        """Whether the empty conversation has a button for the recorded demo."""
        self.demo_button.setVisible(offered)

    # Long chats

    def set_has_earlier(self, has: bool) -> None:
        """Whether there is more above what is shown; `earlier_wanted` asks for it when it is nearly scrolled to."""
        self._has_earlier = has
        self._look_above()

    def likely_height(self, text: str) -> float:
        """About how high a message will be, without laying it out."""
        width = max(200, min(COLUMN_WIDTH, self._area.viewport().width() - 2 * COLUMN_PADDING))
        metrics = self.fontMetrics()
        signs = max(20, width // max(1, metrics.averageCharWidth()))
        lines = len(text) / signs + text.count("\n")
        return float(lines * 1.4 * metrics.height() + 3 * SPACING_TURN)

    @contextmanager
    def keeping_place(self) -> Iterator[None]:
        """What is put in above inside the block does not move what is seen."""
        bar = self._area.verticalScrollBar()
        below, following = bar.maximum() - bar.value(), self._following
        self._placing = True
        try:
            yield
            self._settle()
        finally:
            self._placing = False
        bar.setValue(bar.maximum() - below)
        self._following = following
        self._look_above()
        self._show_jump()

    def scroll_to(self, number: int) -> None:
        """Show the beginning of part number `number` of what is shown."""
        self._settle()
        bar = self._area.verticalScrollBar()
        place = self._turns[number].mapTo(self._page, QPoint(0, 0)).y()
        bar.setValue(place - SPACING_TURN)
        self._following = bar.value() >= bar.maximum() - _NEAR_END
        self._show_jump()

    # Following

    def is_following(self) -> bool:
        """True while the view stays at the end as the reply grows."""
        return self._following

    def jump_to_latest(self) -> None:
        """Go to the end and follow it."""
        self._following = True
        bar = self._area.verticalScrollBar()
        bar.setValue(bar.maximum())
        self._show_jump()

    def _on_range(self, _minimum: int, maximum: int) -> None:
        if self._following and not self._placing:
            self._area.verticalScrollBar().setValue(maximum)
        self._show_jump()

    def _on_scroll(self, value: int) -> None:
        if self._placing:
            return
        self._following = value >= self._area.verticalScrollBar().maximum() - _NEAR_END
        self._show_jump()
        self.scrolled.emit()
        self._look_above()

    def _look_above(self) -> None:
        near = self._area.verticalScrollBar().value() < self._area.viewport().height()
        if near and self._has_earlier and self._turns and not self._earlier.isActive():
            self._earlier.start()

    def _want_earlier(self) -> None:
        if self._has_earlier:
            self.earlier_wanted.emit()

    def _show_jump(self) -> None:
        self._jump.setVisible(not self._following and bool(self._turns))
        if self._jump.isVisible():
            self._place_jump()

    def _place_jump(self) -> None:
        size = self._jump.sizeHint().expandedTo(QSize(0, 28))
        x = (self.width() - size.width()) // 2
        self._jump.setGeometry(x, self._area.geometry().bottom() - size.height() - 8, size.width(), size.height())
        self._jump.raise_()

    def _settle(self) -> None:
        """Let the column take its new height now: posted layout requests would need a pass a level, seen as a jerk."""
        if not self.isVisible():
            return
        widgets: list[QWidget] = [
            *(self._turns if self._placing else self._turns[-1:]),
            self._column,
            self._column_strip,
            self._page,
        ]
        for widget in widgets:
            layout = widget.layout()
            if layout is not None:
                layout.activate()
        QApplication.sendEvent(self._area, QEvent(QEvent.Type.LayoutRequest))

    # Banner

    def show_banner(self, sentence: str, action_text: str | None = None) -> None:
        """Show an error above the composer; the button, if any, emits `banner_action_clicked`."""
        self.banner.show_message(in_user_words(sentence), action_text)

    def hide_banner(self) -> None:
        """Take the banner away."""
        self.banner.hide()

    # Looks

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_jump()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "banner"):
            self._dress()

    def _dress(self) -> None:
        palette = self.palette()
        palette.setColor(self.backgroundRole(), active().color("canvas"))
        palette.setColor(QPalette.ColorRole.Window, active().color("canvas"))
        self.setPalette(palette)
        self.setAutoFillBackground(True)


def centred(widget: QWidget, bottom: int = 0) -> QWidget:
    """The widget in a strip of its own: at most the column's width, in the middle, with the column's padding."""
    strip = QWidget()
    row = QHBoxLayout(strip)
    row.setContentsMargins(COLUMN_PADDING, 0, COLUMN_PADDING, bottom)
    widget.setMaximumWidth(COLUMN_WIDTH)
    row.addStretch(1)
    row.addWidget(widget, 1000)
    row.addStretch(1)
    return strip


class _Column(QWidget):
    """The turns, one below the other."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._rows = QVBoxLayout(self)
        self._rows.setContentsMargins(0, SPACING_TURN, 0, 0)
        self._rows.setSpacing(SPACING_TURN)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def insert(self, at: int, turn: QWidget) -> None:
        self._rows.insertWidget(at, turn)

    def remove(self, turn: QWidget) -> None:
        self._rows.removeWidget(turn)
        turn.hide()
        turn.deleteLater()


class _EmptyState(QWidget):
    """One sentence and three prompts to start from."""

    suggestion_chosen = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        title = QLabel(self.tr("Ask anything and watch the draft being checked, token by token."), self)
        title.setFont(ui_font(18, QFont.Weight.DemiBold))
        title.setWordWrap(True)
        title.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        column = QVBoxLayout(self)
        column.setSpacing(8)
        column.addStretch(1)
        column.addWidget(title)
        column.addSpacing(12)
        for text in self.suggestions():
            button = TextButton(text, "secondary", parent=self)
            button.setAccessibleName(self.tr("Suggestion: {text}").replace("{text}", text))
            button.clicked.connect(self._on_clicked)
            column.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)

    def suggestions(self) -> list[str]:
        return [
            self.tr("Why is the sky blue?"),
            self.tr("Write a short story about a lighthouse."),
            self.tr("Write a Python function that reverses a string."),
        ]

    def _on_clicked(self) -> None:
        button = self.sender()
        if isinstance(button, TextButton):
            self.suggestion_chosen.emit(button.text())
