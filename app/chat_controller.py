"""Connects the chats, the conversation view, the composer and the engine host. All of a chat's behaviour is here."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

from app.conversation import Chat, Chats, Reply, Turn
from app.host import EngineHost
from app.live_settings import LiveSettings
from app.states import Command, HostState, is_legal
from app.ui.composer import Composer
from app.ui.conversation_view import ConversationView
from app.ui.labels import reply_note
from app.ui.reply_view import ReplyView
from engine.errors import SpecularError
from engine.records import Event, PrefillProgress

COMPOSER_STATES = {
    HostState.GENERATING: "generating",
    HostState.STOPPING: "stopping",
    HostState.PROVING: "unavailable",
    HostState.CALIBRATING: "unavailable",
    HostState.UNLOADING: "unavailable",
    HostState.CLOSED: "unavailable",
}
"""In every other state a message can be given: it goes off, waits for the load, or comes back with a reason."""
WITHOUT_MODEL = (HostState.NO_MODEL, HostState.FAILED)


class ChatController(QObject):
    """Signals: chats_changed(); reply_moved(Reply) after every batch of its events; prefill(PrefillProgress);
    reply_shown(ReplyView, Turn) for each reply that the conversation begins to show;
    no_model_for(text) when something was sent and no model is loaded or being loaded; waiting_changed(bool) when a
    message begins or ceases to wait for the model."""

    chats_changed = Signal()
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
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.chats = Chats()
        self._host = host
        self._settings = settings
        self._view = view
        self._composer = composer
        self._shown: dict[int, ReplyView] = {}
        self._waiting = False
        host.events_ready.connect(self._on_events)
        host.reply_refused.connect(self._on_refused)
        host.state_changed.connect(self._on_state)
        view.suggestion_chosen.connect(self.send)
        composer.send_requested.connect(self.send)
        composer.stop_requested.connect(self.stop)
        settings.changed.connect(self._on_setting)
        composer.set_send_with_ctrl(settings.current.send_key != "enter")
        self._on_state(host.state)

    @property
    def waiting(self) -> bool:
        """A text was sent during a load and goes off as soon as the model is there."""
        return self._waiting

    @property
    def busy_chat(self) -> Chat | None:
        """The chat in which a reply is being written."""
        if self._host.state not in (HostState.GENERATING, HostState.STOPPING):
            return None
        for chat in self.chats.chats:
            last = chat.turns[-1].reply if chat.turns else None
            if last is not None and last.finished is None:
                return chat
        return None

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
        """Open an empty chat; a running reply goes on in its own."""
        self.chats.new()
        self._show_current()

    @Slot(int)
    def open_chat(self, chat_id: int) -> None:
        """Show a chat of this run."""
        if chat_id != self.chats.current.chat_id:
            self.chats.open(chat_id)
            self._show_current()

    def _ask(self, text: str) -> None:
        turn = self.chats.ask(text)
        self._view.hide_banner()
        self._view.add_user(text)
        self._composer.clear_text()
        self._begin(turn)

    def _begin(self, turn: Turn, prefix: tuple[int, ...] = ()) -> None:
        info = self._host.info
        try:
            request = self.chats.current.request(self._settings.current, info)
            request = replace(request, reply_prefix_ids=prefix)
            reply_id = self._host.send(request)
        except SpecularError as error:
            self._take_back(self.chats.current, str(error))
            return
        if reply_id is not None:
            turn.reply = Reply(reply_id, request, info)
            self._show_reply(turn, turn.reply)
        self.chats_changed.emit()

    @property
    def last_finished(self) -> Turn | None:
        """The last turn of the open chat whose reply is over."""
        turns = reversed(self.chats.current.turns)
        return next((turn for turn in turns if turn.reply is not None and turn.reply.finished is not None), None)

    def view_of(self, reply_id: int) -> ReplyView | None:
        """The view of a reply of the open chat."""
        return self._shown.get(reply_id)

    def open_replay(self, turn: Turn) -> None:
        """Show a turn out of a replay file, in a chat of its own."""
        self.chats.add_replay(turn)
        self._show_current()

    def _show_reply(self, turn: Turn, reply: Reply) -> None:
        view = self._view.begin_reply()
        view.setProperty("replyId", reply.reply_id)
        view.set_keep_ghosts(self._settings.current.keep_ghosts)
        view.regenerate_requested.connect(self._on_regenerate)
        self._shown[reply.reply_id] = view
        view.append_many(reply.events)
        view.set_note(reply_note(turn))
        self.reply_shown.emit(view, turn)

    def _show_current(self) -> None:
        """Draw the open chat anew from its own records."""
        self._view.clear()
        self._view.hide_banner()
        self._shown.clear()
        for turn in self.chats.current.turns:
            self._view.add_user(turn.user)
            if turn.reply is not None:
                self._show_reply(turn, turn.reply)
        self.show_gauge()
        self.chats_changed.emit()

    @Slot(int, object)
    def _on_events(self, reply_id: int, events: list[Event]) -> None:
        chat = self.chats.owner(reply_id)
        reply = chat.reply(reply_id) if chat else None
        if chat is None or reply is None:
            return
        view = self._shown.get(reply_id)
        for event in events:
            reply.append(event)
        if view is not None:
            view.append_many(events)
        if isinstance(events[-1], PrefillProgress):
            self.prefill.emit(events[-1])
        if chat is self.chats.current:
            self.show_gauge()
        self.reply_moved.emit(reply)

    @Slot(int, str)
    def _on_refused(self, reply_id: int, sentence: str) -> None:
        chat = self.chats.owner(reply_id)
        if chat is not None:
            self._take_back(chat, sentence)

    def _take_back(self, chat: Chat, sentence: str) -> None:
        """The engine would not begin: the question goes back to the composer, with the reason above it."""
        text = chat.take_back()
        self.chats.drop_if_empty(chat)
        if chat is self.chats.current:
            self._show_current()
        if not self._composer.text().strip():
            self._composer.set_text(text)
        self._view.show_banner(sentence)
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
        if name == "keep_ghosts":
            for view in self._shown.values():
                view.set_keep_ghosts(bool(value))
        elif name == "send_key":
            self._composer.set_send_with_ctrl(value != "enter")

    @Slot()
    def _on_regenerate(self) -> None:
        """Write a reply again: the last in place, an earlier one in a copy of the chat, so that nothing is lost."""
        view = self.sender()
        if view is not None:
            self.regenerate_from(int(view.property("replyId")), ())

    def regenerate_from(self, reply_id: int, prefix: tuple[int, ...]) -> None:
        """Write a reply of the open chat again, beginning with these token ids. Nothing where the engine is busy."""
        if not is_legal(self._host.state, Command.SEND):
            if self._host.state in WITHOUT_MODEL:
                self.no_model_for.emit("")
            return
        turns = self.chats.current.turns
        place = next((i for i, turn in enumerate(turns) if turn.reply and turn.reply.reply_id == reply_id), None)
        if place is None:
            return
        if place < len(turns) - 1:
            text = turns[place].user
            earlier = turns[:place]
            self.chats.new().turns.extend(earlier)
            turn = self.chats.ask(text)
        else:
            turn = turns[place]
            turn.reply = turn.comparison = None
        self._show_current()
        self._begin(turn, prefix)

    def show_gauge(self) -> None:
        """Tokens of the open chat in the context, after the last reply."""
        info = self._host.info
        used = 0
        for turn in reversed(self.chats.current.turns):
            if turn.reply is not None and turn.reply.context_tokens is not None:
                used = turn.reply.context_tokens
                break
        self._composer.set_gauge(used, info.context if info else 0)
