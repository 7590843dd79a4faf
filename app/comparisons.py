"""Comparisons in the window: what "Compare with plain decoding…" in a reply's menu does, and where the outcome goes."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.chat_controller import ChatController
from app.conversation import Reply, Turn
from app.host import EngineHost
from app.states import Command, is_legal
from app.ui.compare_pane import ComparePane
from app.ui.labels import reply_note
from app.ui.notices import Notices
from app.ui.reply_view import ReplyView
from engine.comparison import Comparison


class Comparisons(QObject):
    """One pane for all replies, made when first wanted. The outcome is kept on the reply's turn."""

    def __init__(self, host: EngineHost, chat: ChatController, notices: Notices, window: QWidget) -> None:
        super().__init__(window)
        self._host = host
        self._chat = chat
        self._notices = notices
        self._window = window
        self._pane: ComparePane | None = None
        self._compared: tuple[Turn, Reply] | None = None
        chat.reply_shown.connect(self._on_shown)

    @property
    def pane(self) -> ComparePane:
        """The pane."""
        if self._pane is None:
            self._pane = ComparePane(self._host, self._window)
            self._pane.settled.connect(self._on_settled)
        return self._pane

    @Slot(object, object)
    def _on_shown(self, view: ReplyView, _: Turn) -> None:
        view.compare_requested.connect(self._on_requested)

    @Slot()
    def _on_requested(self) -> None:
        view = self.sender()
        if not isinstance(view, ReplyView):
            return
        turn = self._chat.chats.current.turn(view.property("replyId"))
        reply = turn.reply if turn is not None else None
        if turn is None or reply is None or reply.request is None or reply.finished is None:
            return
        if self._host.info is None:
            self._notices.no_model()
        elif not is_legal(self._host.state, Command.SEND) or self.pane.run.running:
            self._notices.tell(self.tr("A comparison can start when the engine is free."))
        elif self.pane.begin(reply.request, reply.finished.seed):
            self._compared = turn, reply
            self.pane.show()

    @Slot(object)
    def _on_settled(self, outcome: Comparison) -> None:
        """Kept with the chat; a comparison in which nothing was compared says nothing."""
        if self._compared is None or (outcome.compared == 0 and outcome.difference is None):
            return
        turn, reply = self._compared  # nothing can be written anew while the engine is taken
        turn.comparison = outcome
        self._chat.keeper.compared(reply)
        view = self._chat.view_of(reply.reply_id)
        if view is not None:
            view.set_note(reply_note(turn))
