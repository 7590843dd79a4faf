"""Replays in the window: of a reply in its own place, of the recorded demo, and of a file that someone sent."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.chat_controller import ChatController
from app.conversation import Reply, Turn
from app.recorded import DEMO, recording_of, turn_of
from app.replay import Replay
from app.ui.notices import Notices
from app.ui.replay_bar import ReplayBar
from app.ui.reply_view import ReplyView
from engine.errors import RecordingError
from engine.recording import read_recording
from engine.records import Event

DEMO_SPEED = 0.25  # at its own speed it is over before one has begun to look


class Replays(QObject):
    """One replay at a time, under its reply. moved(Reply) tells what has been replayed so far; ended() its end."""

    moved = Signal(object)
    ended = Signal()

    def __init__(self, chat: ChatController, notices: Notices, window: QWidget) -> None:
        super().__init__(window)
        self._chat = chat
        self._notices = notices
        self._last_id = 0
        self._running: _Running | None = None
        chat.reply_shown.connect(self._on_shown)

    @property
    def replay(self) -> Replay | None:
        """The replay that is open."""
        return self._running.replay if self._running is not None else None

    @property
    def bar(self) -> ReplayBar | None:
        """Its bar."""
        return self._running.bar if self._running is not None else None

    @Slot()
    def open_demo(self) -> bool:
        """Play the recorded demo in a chat of its own; False where it cannot be read."""
        return self.open_file(DEMO, DEMO_SPEED)

    def open_file(self, path: Path, speed: float = 1.0) -> bool:
        """Play a replay file in a chat of its own; a file that cannot be read is told above the composer."""
        try:
            recording = read_recording(path)
        except RecordingError as error:
            self._notices.tell(str(error))
            return False
        self._last_id -= 1
        self._chat.open_replay(turn_of(recording, self._last_id))
        return self.start(self._last_id, speed)

    def start(self, reply_id: int, speed: float = 1.0) -> bool:
        """Play a reply of the open chat from its beginning; False where it is not there or not over."""
        turn, view = self._chat.chats.current.turn(reply_id), self._chat.view_of(reply_id)
        if turn is None or turn.reply is None or view is None or turn.reply.finished is None:
            return False
        self.close()
        view.set_old(False)  # its marks are what there is to see
        running = self._running = _Running(self, view, turn.reply, turn)
        running.bar.set_speed(speed)
        running.bar.closed.connect(self.close)
        view.destroyed.connect(self._on_gone)
        running.replay.play()
        return True

    @Slot()
    def start_last(self) -> bool:
        """Play the last finished reply of the open chat; False where there is none."""
        turn = self._chat.last_finished
        return turn is not None and turn.reply is not None and self.start(turn.reply.reply_id)

    @Slot()
    def pause(self) -> None:
        """Stop its clock."""
        if self._running is not None:
            self._running.replay.pause()

    @Slot()
    def close(self) -> None:
        """End the replay: its reply is whole again."""
        running, self._running = self._running, None
        if running is not None:
            running.view.destroyed.disconnect(self._on_gone)
            running.replay.show_all()
            running.bar.hide()
            running.bar.deleteLater()
            running.replay.deleteLater()
            self.ended.emit()

    @Slot()
    def _on_gone(self) -> None:
        """The chat is no longer shown, and bar and replay have gone with the reply's view."""
        self._running = None
        self.ended.emit()

    @Slot(object, object)
    def _on_shown(self, view: ReplyView, _: Turn) -> None:
        view.replay_requested.connect(self._on_requested)

    @Slot()
    def _on_requested(self) -> None:
        view = self.sender()
        if view is not None:
            self.start(view.property("replyId"))


class _Running:
    """A replay with its bar; both are children of the reply's view and go with it."""

    def __init__(self, owner: Replays, view: ReplyView, reply: Reply, turn: Turn) -> None:
        recording = recording_of(turn)
        self.view = view
        self._owner = owner
        self._whole = reply
        self._so_far = reply
        self.replay = Replay(recording.events, recording.times, self, view)
        self.bar = ReplayBar(self.replay, view)
        view.add_below(self.bar)

    # What a replay plays into: the reply's view, and whoever listens to `Replays.moved`

    def restart(self) -> None:
        """Begin anew."""
        self._so_far = Reply(self._whole.reply_id, self._whole.request, self._whole.info)
        self.view.restart()

    def append_many(self, events: list[Event]) -> None:
        """Show these events, and tell."""
        self.view.append_many(events)
        for event in events:
            self._so_far.append(event)
        self._owner.moved.emit(self._so_far)

    def hurry(self) -> None:
        """What comes until `settle` happened before."""
        self.view.hurry()

    def settle(self) -> None:
        """All is shown for now."""
        self.view.settle()
