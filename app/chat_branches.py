"""What is said instead: a question put differently, a reply written again or written on, a chat that goes two ways."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, Signal, Slot

from app.chat_controller import ChatController
from app.conversation import Turn
from app.history.rows import ChatRow, Ids
from app.ui.conversation_view import ConversationView
from app.ui.message_editor import MessageEditor
from app.ui.reply_view import ReplyView
from app.widgets.user_bubble import UserBubble
from engine.records import StopReason

TO_BE_CONTINUED = (StopReason.STOPPED, StopReason.LENGTH, StopReason.FAILED)


class ChatBranches(QObject):
    """The buttons of questions and replies. Nothing that was said is lost by any of them: the pager leads back.

    Signals: branched(chat_id) when a copy of a chat is there to be opened.
    """

    branched = Signal(object)

    def __init__(self, chat: ChatController, view: ConversationView, ids: Ids, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._chat = chat
        self._view = view
        self._ids = ids
        self._editor: MessageEditor | None = None
        chat.reply_shown.connect(self._on_reply_shown)
        chat.user_shown.connect(self._on_user_shown)
        chat.reply_moved.connect(self._on_moved)

    # Buttons

    @Slot(object, object)
    def _on_reply_shown(self, view: ReplyView, turn: Turn) -> None:
        view.regenerate_requested.connect(self._on_regenerate)
        view.continue_requested.connect(self._on_continue)
        view.branch_requested.connect(self._on_branch)
        view.page_requested.connect(self._on_reply_paged)
        self._dress(view, turn)

    def _dress(self, view: ReplyView, turn: Turn) -> None:
        """Which of its buttons a reply has now."""
        chat, reply = self._chat.chats.current, turn.reply
        if reply is None:
            return
        siblings = chat.tree.siblings(reply.message_id) if reply.message_id else [0]
        view.pager.show_place(siblings.index(reply.message_id), len(siblings))
        last = bool(chat.turns) and chat.turns[-1] is turn
        end = reply.finished
        view.set_continuable(last and end is not None and end.reason in TO_BE_CONTINUED and reply.reply_id >= 0)

    @Slot(object)
    def _on_moved(self, reply: object) -> None:
        for turn in self._chat.chats.current.turns[-1:]:
            if turn.reply is reply and turn.reply is not None and turn.reply.finished is not None:
                view = self._chat.view_of(turn.reply.reply_id)
                if view is not None:
                    self._dress(view, turn)

    @Slot(object, object)
    def _on_user_shown(self, bubble: UserBubble, turn: Turn) -> None:
        bubble.setProperty("messageId", str(turn.user_id))
        siblings = self._chat.chats.current.tree.siblings(turn.user_id)
        bubble.pager.show_place(siblings.index(turn.user_id), len(siblings))
        bubble.page_requested.connect(self._on_user_paged)
        bubble.edit_requested.connect(self._on_edit)

    # Replies

    @Slot()
    def _on_regenerate(self) -> None:
        if (turn := self._turn_of(self.sender())) is not None and turn.reply is not None:
            self._chat.regenerate_from(turn.reply.reply_id, ())

    @Slot()
    def _on_continue(self) -> None:
        turn = self._turn_of(self.sender())
        if turn is not None and turn is self._chat.chats.current.turns[-1]:
            self._chat.resume(turn)

    @Slot()
    def _on_branch(self) -> None:
        """A chat of its own that begins with what was said up to here."""
        turn = self._turn_of(self.sender())
        if turn is None or turn.reply is None:
            return
        self._chat.keep_open_chat()
        chat, now = self._chat.chats.current, time.time()
        title = self.tr("{title} (branch)").replace("{title}", chat.title)
        row = ChatRow(self._ids.next(), title, False, now, now)
        self._chat.keeper.copy(chat.chat_id, row, turn.reply.message_id, lambda: self.branched.emit(row.id))

    # Questions

    @Slot()
    def _on_edit(self) -> None:
        bubble = self.sender()
        if not isinstance(bubble, UserBubble):
            return
        self._end_edit()
        self._editor = editor = MessageEditor(bubble.text(), self._chat.sends_with_ctrl)
        editor.sent.connect(self._on_edited)
        editor.cancelled.connect(self._end_edit)
        editor.setProperty("messageId", bubble.property("messageId"))
        editor.destroyed.connect(self._on_editor_gone)
        bubble.edit_with(editor)
        editor.input.setFocus()

    @Slot(str)
    def _on_edited(self, text: str) -> None:
        editor = self._editor
        turns = self._chat.chats.current.turns
        number = int(editor.property("messageId")) if editor is not None else 0
        turn = next((turn for turn in turns if turn.user_id == number), None)
        if turn is not None and text != turn.user:
            if not self._chat.can_begin():
                return  # the text stays in the editor
            self._editor = None
            self._chat.ask_instead(turn, text)
        else:
            self._end_edit()

    @Slot()
    def _end_edit(self) -> None:
        editor, self._editor = self._editor, None
        if editor is not None:
            bubble = editor.parent()
            if isinstance(bubble, UserBubble):
                bubble.end_edit()

    @Slot()
    def _on_editor_gone(self) -> None:
        if self._editor is self.sender():
            self._editor = None

    # The pager

    @Slot(int)
    def _on_reply_paged(self, step: int) -> None:
        turn = self._turn_of(self.sender())
        if turn is not None and turn.reply is not None:
            self._page(turn.reply.message_id, step)

    @Slot(int)
    def _on_user_paged(self, step: int) -> None:
        bubble = self.sender()
        if isinstance(bubble, UserBubble):
            self._page(int(bubble.property("messageId")), step)

    def _page(self, message: int, step: int) -> None:
        chat = self._chat.chats.current
        siblings = chat.tree.siblings(message)
        place = siblings.index(message) + step
        if 0 <= place < len(siblings):
            chat.show(chat.tree.end_of(siblings[place]))
            self._chat.keeper.shown(chat)
            self._chat.show_current()
            self._chat.shown.go_to(siblings[place])

    def _turn_of(self, view: QObject | None) -> Turn | None:
        reply_id = view.property("replyId") if view is not None else None
        return self._chat.chats.current.turn(int(reply_id)) if reply_id is not None else None
