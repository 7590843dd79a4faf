"""Shows the card of the token that is pointed at, has the engine look at it, and regenerates from there."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from app.chat_controller import ChatController
from app.conversation import Reply, Turn
from app.host import EngineHost
from app.states import Command, HostState, is_legal
from app.token_facts import TokenFacts, token_facts
from app.ui.conversation_view import ConversationView
from app.ui.reply_view import ReplyView
from app.ui.token_card import TokenCard
from app.widgets.token_pointer import TokenPointer
from app.widgets.token_spans import Span
from app.widgets.token_text import TokenText
from app.worker import Look
from engine.candidates import Candidates
from engine.recording import joined_ids

LINGER_MS = 300  # the way from the token to its card
MOST_KEPT = 32  # looks whose answers are kept


@dataclass(frozen=True, slots=True, eq=False)
class _Target:
    """What the card is about."""

    view: ReplyView
    reply: Reply | None
    span: Span
    facts: TokenFacts

    @property
    def key(self) -> tuple[int, int, int]:
        return self.reply.reply_id if self.reply is not None else 0, self.facts.before, self.facts.id


class TokenCards(QObject):
    """One card for the window, made when it is first wanted. pointed(CycleRecord or None): of the token it is about,
    and when it goes, of the cycle that is selected there."""

    pointed = Signal(object)

    def __init__(self, host: EngineHost, chat: ChatController, conversation: ConversationView, window: QWidget) -> None:
        super().__init__(window)
        self._host, self._chat, self._conversation, self._window = host, chat, conversation, window
        self._card: TokenCard | None = None
        self._target: _Target | None = None
        self._ringed: TokenText | None = None
        self._look: int | None = None
        self._answers: OrderedDict[tuple[int, int, int], Candidates] = OrderedDict()
        self._linger = QTimer(self)
        self._linger.setSingleShot(True)
        self._linger.setInterval(LINGER_MS)
        self._linger.timeout.connect(self._on_lingered)
        chat.reply_shown.connect(self._on_reply_shown)
        host.seen.connect(self._on_seen)
        host.state_changed.connect(self._on_state)
        host.model_loaded.connect(self._forget)
        conversation.scrolled.connect(self._follow)

    @property
    def card(self) -> TokenCard:
        """The card."""
        if self._card is None:
            self._card = TokenCard(self._window)
            self._card.chosen.connect(self._on_chosen)
            self._card.moved.connect(self._on_moved)
            self._card.installEventFilter(self)
        return self._card

    @property
    def shown(self) -> bool:
        """Whether the card is to be seen."""
        return self._target is not None

    @Slot()
    def close(self) -> bool:
        """Take the card away; False where there is none. The keyboard goes back to the text."""
        target, self._target = self._target, None
        self._linger.stop()
        if target is None:
            return self._unring()
        if self.card.isAncestorOf(self._window.focusWidget() or self._window) or self.card.hasFocus():
            target.view.text.setFocus(Qt.FocusReason.OtherFocusReason)
        self.card.hide()
        selected = target.view.text.selected_cycle
        self.pointed.emit(None if selected is None else target.view.text.cycles[selected].record)
        return True

    def _unring(self) -> bool:
        """Take the keyboard's ring off the token that has it; False where none has."""
        ringed, self._ringed = self._ringed, None
        if ringed is None:
            return False
        ringed.set_current(None)
        return True

    # Pointing

    @Slot(object, object)
    def _on_reply_shown(self, view: ReplyView, _: Turn) -> None:
        view.pointer.hovered.connect(self._on_hovered)
        view.pointer.left.connect(self._on_left)
        view.pointer.reached.connect(self._on_reached)
        view.pointer.entered.connect(self._on_entered)
        view.restarted.connect(self._on_gone)
        view.destroyed.connect(self._on_gone)

    @Slot(object)
    def _on_hovered(self, span: Span) -> None:
        self._show(self.sender(), span)

    @Slot(object)
    def _on_reached(self, span: Span) -> None:
        """The keyboard moves: a card that is open goes along, and the ring that was in another reply is gone."""
        pointer = self.sender()
        text = pointer.parent() if pointer is not None else None
        if isinstance(text, TokenText) and text is not self._ringed:
            self._unring()
            self._ringed = text
        if self.shown:
            self._show(self.sender(), span)

    @Slot(object)
    def _on_entered(self, span: Span) -> None:
        self._show(self.sender(), span)
        if self.shown:
            self.card.focus_first()

    @Slot()
    def _on_left(self) -> None:
        if self.shown and not self._has_focus():
            self._linger.start()

    @Slot()
    def _on_lingered(self) -> None:
        if self._card is not None and not self._card.underMouse() and not self._has_focus():
            self.close()

    def _has_focus(self) -> bool:
        focus = self._window.focusWidget()
        return self._card is not None and focus is not None and (focus is self._card or self._card.isAncestorOf(focus))

    @Slot(object)
    def _on_moved(self, event: QKeyEvent) -> None:
        """Alt and an arrow on the card itself."""
        if self._target is not None:
            self._target.view.pointer.press(event)
            if self.shown:
                self.card.focus_first()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self._on_left()
        return super().eventFilter(watched, event)

    # The card

    def _show(self, pointer: QObject | None, span: Span) -> None:
        text = pointer.parent() if isinstance(pointer, TokenPointer) else None
        view = text.parent() if text is not None else None
        if not isinstance(view, ReplyView):
            return
        facts = token_facts(span, view.text.cycles, view.text.opening)
        if facts is None:
            return
        self._linger.stop()
        reply = self._chat.chats.current.reply(int(view.property("replyId")))
        self._target = target = _Target(view, reply, span, facts)
        can_choose = self._obstacle(reply) == ""
        self.card.show_token(facts, view.text.description(span), can_choose=can_choose)
        self._fill(target)
        self._follow()
        if self.shown:
            self.card.show()
            self.pointed.emit(facts.cycle)

    def _fill(self, target: _Target) -> None:
        """Rivals that are known, or a look at them, or why there are none."""
        obstacle = self._obstacle(target.reply)
        known = self._answers.get(target.key)
        if known is not None:
            self._show_answer(target, known)
        elif obstacle:
            self.card.show_note(obstacle)
        elif not is_legal(self._host.state, Command.INSPECT) or not self._is_over(target.reply):
            self.card.show_note(self.tr("Rivals and ranks are computed when the engine is free."))
        else:
            assert target.reply is not None and target.reply.request is not None
            ids = tuple(joined_ids(target.reply.events)[: target.facts.before])
            request = replace(target.reply.request, reply_prefix_ids=ids)
            self.card.show_note(self.tr("Looking at rivals and ranks…"))
            self._look = self._host.look(Look(request, target.facts.id, target.facts.own))

    def _obstacle(self, reply: Reply | None) -> str:
        """Why neither a look nor a new reply is possible from here, whatever the engine does; "" where they are."""
        if reply is None or reply.reply_id < 0 or reply.request is None:
            return self.tr("A stored reply shows what was recorded; rivals need the model that wrote it.")
        if not reply.made_by(self._host.info):
            return self.tr("Rivals need the model that wrote this reply.")
        return ""

    def _is_over(self, reply: Reply | None) -> bool:
        return reply is not None and reply.finished is not None

    def _show_answer(self, target: _Target, found: Candidates) -> None:
        record = target.facts.cycle
        self.card.show_candidates(found, other_recipe=record is not None and record.recipe != found.recipe)

    @Slot(int, object, str)
    def _on_seen(self, look: int, found: Candidates | None, sentence: str) -> None:
        if look != self._look or self._target is None:
            return
        self._look = None
        if found is None:
            self.card.show_note(sentence)
        else:
            self._answers[self._target.key] = found
            while len(self._answers) > MOST_KEPT:
                self._answers.popitem(last=False)
            self._show_answer(self._target, found)
        focused = self._has_focus()
        self._follow()
        if focused:
            self.card.focus_first()

    @Slot(object)
    def _on_state(self, _: HostState) -> None:
        """The engine is free, or not any more."""
        if self._target is not None:
            self._fill(self._target)
            self._follow()

    @Slot()
    def _forget(self) -> None:
        """Another model has other rivals."""
        self._answers.clear()

    @Slot()
    def _on_gone(self) -> None:
        """A reply is shown no more, or from its beginning."""
        self._target = self._ringed = None
        self._linger.stop()
        if self._card is not None:
            self._card.hide()
        self.pointed.emit(None)

    @Slot()
    def _follow(self) -> None:
        """Keep the card at its token; without the token in view there is no card."""
        if self._target is None:
            return
        text = self._target.view.text
        if self._target.span.index >= len(text.spans):
            self.close()
            return
        line = text.token_rect(self._target.span.index)
        line.moveTopLeft(text.viewport().mapTo(self._window, line.topLeft()))
        live = text.live_line()
        live.moveTopLeft(text.viewport().mapTo(self._window, live.topLeft()))
        room = QRect(self._conversation.mapTo(self._window, QPoint()), self._conversation.size())
        if not room.intersects(line):
            self.close()
            return
        self.card.place(line, room, live)

    @Slot(int)
    def _on_chosen(self, token: int) -> None:
        target = self._target
        if target is None or target.reply is None:
            return
        ids = (*joined_ids(target.reply.events)[: target.facts.before], token)
        self.close()
        self._chat.regenerate_from(target.reply.reply_id, ids)
