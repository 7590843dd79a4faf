"""Connects the chats, the conversation view, the composer, the engine host and the history.

What is said and answered is here; what is said instead is in `app.chat_branches`, the list in `app.chat_shelf`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.chat_keeper import ChatKeeper
from app.chat_settings import own_names, own_values
from app.conversation import Chat, Chats, Reply, Turn
from app.history_service import History
from app.host import EngineHost
from app.live_settings import LiveSettings
from app.shown_chat import ShownChat
from app.states import Command, HostState, is_legal
from app.ui.composer import Composer
from app.ui.conversation_view import ConversationView
from app.ui.reply_view import ReplyView
from engine.errors import SpecularError
from engine.recording import joined_ids
from engine.records import Event, Finished, Opening, PrefillProgress, StopReason

COMPOSER_STATES = {
    HostState.GENERATING: "generating",
    HostState.STOPPING: "stopping",
    HostState.PROVING: "unavailable",
    HostState.CALIBRATING: "unavailable",
    HostState.BENCHMARKING: "unavailable",
    HostState.UNLOADING: "unavailable",
    HostState.CLOSED: "unavailable",
}
"""In every other state a message can be given: it goes off, waits for the load, or comes back with a reason."""
WITHOUT_MODEL = (HostState.NO_MODEL, HostState.FAILED)
DRAFT_MS = 500  # after the last key, what is written is kept
MOST_OPEN = 6  # chats that stay in memory; others are read again


@dataclass(slots=True)
class _Attempt:
    """A reply that was asked for, until its first event: what to go back to where the engine will not begin.

    asked: the question is new with it. leaf: what was shown before. resumed: the end that was taken away to go on.
    """

    chat: Chat
    turn: Turn
    asked: bool
    leaf: int | None
    resumed: Finished | None = None


class ChatController(QObject):
    """Signals: chats_changed(); reply_moved(Reply) after every batch of its events; prefill(PrefillProgress);
    reply_shown(ReplyView, Turn) for each reply that the conversation begins to show;
    no_model_for(text) when something was sent and no model is loaded or being loaded; waiting_changed(bool) when a
    message begins or ceases to wait for the model; chat_changed(Chat) when the list should show it otherwise;
    chat_gone(chat_id) when its only question was taken back; user_shown(UserBubble, Turn) for each question shown."""

    chats_changed = Signal()
    chat_changed = Signal(object)
    chat_gone = Signal(object)
    user_shown = Signal(object, object)
    reply_moved = Signal(object)
    reply_shown = Signal(object, object)
    prefill = Signal(object)
    no_model_for = Signal(str)
    waiting_changed = Signal(bool)

    def __init__(
        self,
        host: EngineHost,
        settings: LiveSettings,
        view: ConversationView,
        composer: Composer,
        history: History,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._history = history
        self.keeper = ChatKeeper(history, self)
        self.chats = Chats(history.ids.next, self.keeper.read)
        self._writing: tuple[Chat, Reply] | None = None
        self._attempt: _Attempt | None = None
        self._draft_timer = QTimer(self)
        self._draft_timer.setSingleShot(True)
        self._draft_timer.setInterval(DRAFT_MS)
        self._draft_timer.timeout.connect(self.keep_draft)
        self._host = host
        self._settings = settings
        self._view = view
        self._composer = composer
        self.shown = ShownChat(self.chats, self.keeper, settings, view, self)
        self.shown.reply_shown.connect(self.reply_shown)
        self.shown.user_shown.connect(self.user_shown)
        self._waiting = False
        host.events_ready.connect(self._on_events)
        host.reply_refused.connect(self._on_refused)
        host.state_changed.connect(self._on_state)
        history.opened.connect(self._on_history)
        view.suggestion_chosen.connect(self.send)
        composer.input.textChanged.connect(self._draft_timer.start)
        composer.attachments.changed.connect(self._draft_timer.start)
        composer.send_requested.connect(self.send)
        composer.stop_requested.connect(self.stop)
        settings.changed.connect(self._on_setting)
        composer.set_send_with_ctrl(self.sends_with_ctrl)
        self._on_state(host.state)

    @property
    def waiting(self) -> bool:
        """A text was sent during a load and goes off as soon as the model is there."""
        return self._waiting

    @property
    def busy_chat(self) -> Chat | None:
        """The chat in which a reply is being written."""
        writing = self._host.state in (HostState.GENERATING, HostState.STOPPING)
        return self._writing[0] if writing and self._writing is not None else None

    @Slot(str)
    def send(self, text: str) -> None:
        """Ask `text` in the open chat. Where that is not possible now the text stays in the composer."""
        if not text.strip():
            return
        if is_legal(self._host.state, Command.SEND):
            self._ask(text)
            return
        if self._composer.text() != text:
            self._composer.set_text(text)
        if self._host.state is HostState.LOADING:
            self._composer.set_state("unavailable")
            self._set_waiting(True)
        elif self._host.state in WITHOUT_MODEL:
            self.no_model_for.emit(text)

    @Slot()
    def stop(self) -> None:
        """Stop the reply that is being written, or take back a message that waits for the model."""
        if self._waiting:
            self._composer.set_state("idle")
            self._set_waiting(False)
        self._host.stop()

    def _set_waiting(self, waiting: bool) -> None:
        if waiting != self._waiting:
            self._waiting = waiting
            self.waiting_changed.emit(waiting)

    @Slot()
    def new_chat(self) -> None:
        """Open the empty chat; a running reply goes on in its own."""
        self._leave()
        self.chats.new()
        self.show_current()

    @Slot(object)
    def open_chat(self, chat_id: int) -> bool:
        """Show a chat of this run or of the history; False where it cannot be read."""
        if chat_id == self.chats.current.chat_id:
            return True
        self._leave()
        try:
            self.chats.open(chat_id)
        except KeyError:
            return False
        self.show_current()
        self._forget_some()
        return True

    def _leave(self) -> None:
        """Before another chat is shown."""
        self.keep_draft()

    @Slot()
    def keep_draft(self) -> None:
        """Keep what is written and not sent."""
        self._draft_timer.stop()
        self.keeper.keep_draft(self.chats.current, self._composer.text())

    def _forget_some(self) -> None:
        """Chats opened long ago are read again when they are next wanted."""
        if not self._history.idle:
            return
        spare = [chat for chat in self.chats.chats if chat.kept and chat not in (self.chats.current, self.busy_chat)]
        for chat in spare[MOST_OPEN:]:
            self.chats.forget(chat)

    def close(self) -> None:
        """Before the history closes: keep the draft, and the reply that is being written as a stopped one."""
        self.keep_draft()
        if self._writing is not None:
            self.keeper.broken_off(self._writing[1])
            self._writing = None
        self.keeper.closed()

    def _ask(self, text: str) -> None:
        self.chats.adopt(self.chats.current)
        leaf = self.chats.current.leaf
        turn = self.chats.ask(text)
        self._view.hide_banner()
        self.shown.show_user(turn)
        self._composer.clear_text()
        self.begin(turn, asked=True, leaf=leaf)

    def begin(self, turn: Turn, prefix: tuple[int, ...] = (), *, asked: bool, leaf: int | None) -> None:
        """Have a reply to the last turn written; `asked` where the question is new too, `leaf`: what was shown before.

        The question is on the disk before the engine sees it.
        """
        chat, info = self.chats.current, self._host.info
        self._attempt = _Attempt(chat, turn, asked, leaf)
        try:
            request = replace(chat.request(self._settings.current, info), reply_prefix_ids=prefix)
        except SpecularError as error:
            self._take_back(str(error))
            return
        self.keep_open_chat()
        stored = self.keeper.asked(chat, turn) if asked else None
        reply_id = self._host.send(request, stored)
        if reply_id is not None:
            reply = Reply(reply_id, request, info)
            self.chats.begin_reply(turn, reply)
            self.keeper.begun(chat, turn, reply)
            self._writing = chat, reply
            self.shown.show_reply(turn, reply)
        self.chat_changed.emit(chat)
        self.chats_changed.emit()

    def keep_open_chat(self) -> None:
        """From now on the open chat is in the history, with what came into it in files, and has its own settings."""
        chat = self.chats.current
        if not chat.kept:
            self.chats.adopt(chat)
            chat.own = own_values(self._settings.current)
            self.keeper.keep(chat)
            self.keeper.opened(chat)
            self._settings.lend(chat.own)

    def regenerate_from(self, reply_id: int, prefix: tuple[int, ...]) -> None:
        """Write a reply of the open chat anew beside the earlier one, beginning with these token ids."""
        chat = self.chats.current
        place = next((i for i, turn in enumerate(chat.turns) if turn.reply and turn.reply.reply_id == reply_id), None)
        if place is None or not self.can_begin():
            return
        self.keep_open_chat()
        leaf, before = chat.leaf, chat.turns[place]
        turn = Turn(before.user, user_id=before.user_id)
        chat.turns[place:] = [turn]
        self.show_current()
        self.begin(turn, prefix, asked=False, leaf=leaf)

    def ask_instead(self, turn: Turn, text: str) -> None:
        """Put a question of the open chat differently; what came of the earlier one is a branch beside it."""
        chat = self.chats.current
        if not text.strip() or not self.can_begin():
            return
        self.keep_open_chat()
        leaf = chat.leaf
        del chat.turns[chat.turns.index(turn) :]
        self.show_current()
        new = self.chats.ask(text)
        self._composer.focus_input()
        self.shown.show_user(new)
        self.begin(new, asked=True, leaf=leaf)

    @property
    def sends_with_ctrl(self) -> bool:
        """Whether Enter makes a new line, and Ctrl+Enter sends."""
        return self._settings.current.send_key != "enter"

    def resume(self, turn: Turn) -> None:
        """Have the reply of the last turn written on where it stopped."""
        chat, reply = self.chats.current, turn.reply
        if reply is None or reply.finished is None or reply.request is None or not self.can_begin():
            return
        ids = tuple(joined_ids(reply.events))
        end = reply.finished
        sampling = reply.request.sampling
        if sampling.seed is None and end.reason in (StopReason.STOPPED, StopReason.LENGTH):
            sampling = replace(sampling, seed=end.seed)  # the reply that it would have been without the stop
        request = replace(reply.request, sampling=sampling, reply_prefix_ids=ids, conversation=chat.chat_id)
        reply_id = self._host.send(request)
        if reply_id is None:
            return
        self._attempt = _Attempt(chat, turn, False, chat.leaf, reply.reopen())
        reply.reply_id, reply.interrupted, reply.info = reply_id, False, self._host.info
        self.keeper.resumed(reply)
        self._writing = chat, reply
        self.show_current()

    def can_begin(self) -> bool:
        """Whether the engine can begin a reply now; where it has no model, that is said."""
        if is_legal(self._host.state, Command.SEND):
            return True
        if self._host.state in WITHOUT_MODEL:
            self.no_model_for.emit("")
        return False

    @property
    def last_finished(self) -> Turn | None:
        """The last turn of the open chat whose reply is over."""
        turns = reversed(self.chats.current.turns)
        return next((turn for turn in turns if turn.reply is not None and turn.reply.finished is not None), None)

    def view_of(self, reply_id: int) -> ReplyView | None:
        """The view of a reply of the open chat."""
        return self.shown.view_of(reply_id)

    def open_replay(self, turn: Turn) -> None:
        """Show a turn out of a replay file, in a chat of its own."""
        self._leave()
        chat = self.chats.add_replay(turn)
        self.show_current()
        self.chat_changed.emit(chat)

    def show_current(self) -> None:
        """Draw the open chat anew: its end, and what comes before that when it is scrolled to."""
        chat = self.chats.current
        self._settings.lend(chat.own)
        if self._composer.text() != chat.draft:
            self._composer.set_text(chat.draft)
            self._draft_timer.stop()
        self.shown.show()
        self.keeper.opened(chat)
        self.show_gauge()
        self.chats_changed.emit()

    @Slot(int, object)
    def _on_events(self, reply_id: int, events: list[Event]) -> None:
        if self._writing is None or self._writing[1].reply_id != reply_id:
            return
        chat, reply = self._writing
        resumed = self._attempt is not None and self._attempt.resumed is not None
        self._attempt = None
        if resumed:  # what it begins with is there already
            events = [event for event in events if not isinstance(event, Opening)]
        view = self.shown.view_of(reply_id)
        for event in events:
            reply.append(event)
        if view is not None:
            view.append_many(events)
        if not events:
            return
        self.keeper.came(reply, events)
        if isinstance(events[-1], PrefillProgress):
            self.prefill.emit(events[-1])
        if reply.finished is not None:
            self._writing = None
        if chat is self.chats.current:
            self.show_gauge()
        self.reply_moved.emit(reply)

    @Slot(int, str)
    def _on_refused(self, reply_id: int, sentence: str) -> None:
        if self._writing is not None and self._writing[1].reply_id == reply_id:
            self._take_back(sentence)

    def _take_back(self, sentence: str) -> None:
        """The engine would not begin: all is as before, a new question back in the composer, with the reason above."""
        attempt, writing = self._attempt, self._writing
        self._attempt = self._writing = None
        if attempt is None:
            return
        chat, turn = attempt.chat, attempt.turn
        message = turn.user_id if attempt.asked else 0
        if attempt.resumed is not None and turn.reply is not None:
            turn.reply.append(attempt.resumed)
            self.keeper.came(turn.reply, [attempt.resumed])
        elif writing is not None and not message:
            message = writing[1].message_id
        if message:
            chat.tree.remove(message)
        chat.show(attempt.leaf)
        if message and chat.kept:
            self.keeper.taken_back(chat, message)
        self.chats.drop_if_empty(chat)
        if chat is self.chats.current:
            self.show_current()
        if attempt.asked and not self._composer.text().strip():
            self._composer.set_text(turn.user)
        self._view.show_banner(sentence)
        if not len(chat.tree):
            self.chat_gone.emit(chat.chat_id)
        self.chats_changed.emit()

    @Slot(object)
    def _on_state(self, _: HostState) -> None:
        state = self._host.state  # an earlier listener may already have given the next command
        if not (self._waiting and state is HostState.LOADING):
            self._composer.set_state(COMPOSER_STATES.get(state, "idle"))
        if self._waiting and not state.under_way:
            self._set_waiting(False)
            if state is HostState.READY:
                self.send(self._composer.text())
        self.chats_changed.emit()

    @Slot(str, object)
    def _on_setting(self, name: str, value: object) -> None:
        if name == "send_key":
            self._composer.set_send_with_ctrl(value != "enter")
        chat = self.chats.current
        if chat.kept and name in own_names() and chat.own.get(name) != value:
            chat.own[name] = value
            self.keeper.keep_settings(chat)

    @Slot(object)
    def _on_history(self, interrupted: list[int]) -> None:
        """The history can be read: what was written last and not sent is back, unless something is written already."""
        current = self.chats.current
        if current.turns or current.kept or self._composer.text():
            return
        if interrupted:
            self.open_chat(interrupted[0])
            return
        current.draft = self.keeper.fresh_draft()
        self._composer.set_text(current.draft)
        self._draft_timer.stop()

    def reopen(self) -> bool:
        """Open the chat that was open when the run before ended, unless something has been done already; whether it is
        open."""
        current, before = self.chats.current, self.keeper.open_before()
        untouched = not current.turns and not current.kept and self._composer.text() == current.draft
        return bool(before) and untouched and self.open_chat(before)

    def show_gauge(self) -> None:
        """Tokens of the open chat in the context, after the last reply."""
        info = self._host.info
        used = 0
        for turn in reversed(self.chats.current.turns):
            if turn.reply is not None and turn.reply.context_tokens is not None:
                used = turn.reply.context_tokens
                break
        self._composer.set_gauge(used, info.context if info else 0)
