"""The open chat in the conversation view: its end is built at once, what comes before it when it is scrolled to."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.chat_keeper import ChatKeeper
from app.conversation import Chats, Reply, Turn
from app.live_settings import LiveSettings
from app.ui.conversation_view import ConversationView
from app.ui.labels import reply_note
from app.ui.reply_view import ReplyView

SCREENS = 1.1  # of a chat that are built when it is opened
PIECE = 0.4  # of a screen, that is built above when it is scrolled to
MOST_AT_ONCE = 12  # turns


class ShownChat(QObject):
    """Signals: reply_shown(ReplyView, Turn), user_shown(UserBubble, Turn) for each that begins to be shown."""

    reply_shown = Signal(object, object)
    user_shown = Signal(object, object)

    def __init__(
        self, chats: Chats, keeper: ChatKeeper, settings: LiveSettings, view: ConversationView, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._chats = chats
        self._keeper = keeper
        self._settings = settings
        self._view = view
        self._replies: dict[int, ReplyView] = {}
        self._first = 0
        view.earlier_wanted.connect(self.show_earlier)
        settings.changed.connect(self._on_setting)

    def view_of(self, reply_id: int) -> ReplyView | None:
        """The view of a reply, if it is shown."""
        return self._replies.get(reply_id)

    def show(self) -> None:
        """Draw the open chat anew."""
        self._view.clear()
        self._view.hide_banner()
        self._replies.clear()
        turns = self._chats.current.turns
        self._first = first = self._first_that_fills(turns, SCREENS)
        for turn in turns[first:]:
            self._show_turn(turn)
        self._view.set_has_earlier(first > 0)

    def show_user(self, turn: Turn, at: int | None = None) -> None:
        """Show a question, at the end or as the part number `at` of the view."""
        if turn.user or turn.user_id:
            self.user_shown.emit(self._view.add_user(turn.user, at), turn)

    def show_reply(self, turn: Turn, reply: Reply, at: int | None = None) -> None:
        """Show a reply, as far as it has come."""
        self._keeper.fill(self._chats.current, turn)
        view = self._view.begin_reply(at)
        view.setProperty("replyId", reply.reply_id)
        view.set_keep_ghosts(self._settings.current.keep_ghosts)
        self._replies[reply.reply_id] = view
        if reply.finished is not None:
            view.hurry()  # its guesses were rejected long ago
        view.append_many(reply.events)
        if reply.finished is not None:
            view.settle()
        view.set_note(reply_note(turn))
        self.reply_shown.emit(view, turn)

    def _show_turn(self, turn: Turn, at: int | None = None) -> None:
        before = len(self._view.turns())
        self.show_user(turn, at)
        if turn.reply is not None:
            self.show_reply(turn, turn.reply, None if at is None else at + len(self._view.turns()) - before)

    def _first_that_fills(self, turns: list[Turn], screens: float) -> int:
        """The first of the last turns that fill so many screens, so far as can be told from their lengths."""
        room = screens * self._view.height()
        first = len(turns)
        while first > 0 and room > 0 and len(turns) - first < MOST_AT_ONCE:
            first -= 1
            room -= self._view.likely_height(turns[first].user)
            if (reply := turns[first].reply) is not None:
                room -= self._view.likely_height(reply.text)
        return first

    @Slot()
    def show_earlier(self) -> None:
        """Show some more of the chat above what is shown of it."""
        turns = self._chats.current.turns[: self._first]
        first = self._first_that_fills(turns, PIECE)
        if first == len(turns):
            return
        with self._view.keeping_place():
            shown = len(self._view.turns())
            for turn in turns[first:]:
                self._show_turn(turn, len(self._view.turns()) - shown)
            self._first = first
        self._view.set_has_earlier(first > 0)

    def go_to(self, message_id: int) -> None:
        """Scroll to a message of the open chat; first to the branch that it is in."""
        chat = self._chats.current
        if message_id not in chat.tree:
            return
        if all(message_id not in _numbers(turn) for turn in chat.turns):
            chat.show(chat.tree.end_of(message_id))
            self.show()
        place = next(i for i, turn in enumerate(chat.turns) if message_id in _numbers(turn))
        while place < self._first:
            self.show_earlier()
        shown = sum(1 + (turn.reply is not None) for turn in chat.turns[self._first : place])
        reply = chat.turns[place].reply
        self._view.scroll_to(shown + (reply is not None and reply.message_id == message_id))

    @Slot(str, object)
    def _on_setting(self, name: str, value: object) -> None:
        if name == "keep_ghosts":
            for view in self._replies.values():
                view.set_keep_ghosts(bool(value))


def _numbers(turn: Turn) -> tuple[int, ...]:
    """The numbers of a turn's messages in the tree."""
    return (turn.user_id, turn.reply.message_id) if turn.reply is not None else (turn.user_id,)
