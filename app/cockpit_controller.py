"""Makes the cockpit when it is first seen, feeds it, and has the machine watched only while that is of use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.chat_controller import ChatController
from app.conversation import Reply, Turn
from app.host import EngineHost
from app.live_settings import LiveSettings
from app.monitor import Monitor, Watch
from app.replays import Replays
from app.states import HostState
from app.ui.cockpit_place import CockpitPlace
from app.ui.reply_view import ReplyView
from engine.records import CycleRecord

if TYPE_CHECKING:
    from app.ui.cockpit import Cockpit

LINGER_MS = 5000  # readings go on so long after the last thing that happened: memory settles by then


class CockpitController(QObject):
    """shown_changed(bool) as it is shown and hidden; calibration_asked() by the button of the verdict."""

    calibration_asked = Signal()
    shown_changed = Signal(bool)

    def __init__(
        self,
        host: EngineHost,
        settings: LiveSettings,
        chat: ChatController,
        replays: Replays,
        place: CockpitPlace,
        window: QWidget,
        monitor: Monitor | None = None,
    ) -> None:
        super().__init__(window)
        self._host, self._settings, self._chat, self._replays = host, settings, chat, replays
        self._place, self._window = place, window
        self._wide = True
        self._ready = False
        self.monitor = monitor or Monitor(host, self)
        self.cockpit: Cockpit | None = None
        self._linger = QTimer(self)
        self._linger.setSingleShot(True)
        self._linger.setInterval(LINGER_MS)
        self._linger.timeout.connect(self._watch)
        chat.reply_moved.connect(self._on_reply)
        chat.reply_shown.connect(self._on_shown)
        chat.chats_changed.connect(self._follow_open_chat)
        replays.moved.connect(self._on_replay)
        replays.ended.connect(self._follow_open_chat)
        host.state_changed.connect(self._on_state)
        host.model_loaded.connect(self._on_model)
        host.model_gone.connect(self._on_model)
        window.installEventFilter(self)

    # Shown or hidden

    @Slot()
    def begin(self) -> None:
        """The window has been painted: once all that waited for that has begun, the cockpit may be made."""
        QTimer.singleShot(0, self, self._on_begun)

    @Slot()
    def _on_begun(self) -> None:
        self._ready = True
        self._make_if_shown()

    def set_wide(self, wide: bool) -> None:
        """Wide windows have the cockpit beside the conversation, as the user left it; others as a drawer, closed."""
        if wide:
            self._arrange(self._settings.current.cockpit_visible)
        elif self._wide:
            self._arrange(False, docked=False)
        self._wide = wide

    @property
    def shown(self) -> bool:
        """Whether it is to be seen, as soon as the chat is."""
        return self._place.shown

    @Slot()
    def toggle(self) -> None:
        """Show or hide it; in a wide window the choice is kept."""
        shown = not self._place.shown
        if self._wide:
            self._settings.set("cockpit_visible", shown)
        self._arrange(shown, docked=self._wide)

    def close_drawer(self) -> bool:
        """Hide the drawer; False where there is none."""
        if self._wide or not self._place.shown:
            return False
        self._arrange(False, docked=False)
        return True

    def _arrange(self, shown: bool, *, docked: bool = True) -> None:
        self._place.arrange(docked=docked, shown=shown)
        self._make_if_shown()
        self.shown_changed.emit(shown)

    def _make_if_shown(self) -> None:
        closed = self._host.state is HostState.CLOSED
        if self.cockpit is not None or closed or not (self._ready and self._place.shown):
            return
        from app.ui.cockpit import Cockpit  # imports pyqtgraph and numpy
        from app.verdict_controller import VerdictController

        cockpit = self.cockpit = Cockpit()
        cockpit.set_folded(self._settings.current.cockpit_folded)
        cockpit.set_model(self._host.info, self._host.offload())
        cockpit.closed.connect(self.toggle)
        cockpit.folded.connect(self._on_folded)
        cockpit.watch_changed.connect(self._on_watch_changed)
        self.monitor.sampled.connect(cockpit.show_sample)
        cockpit.close_button.setVisible(not self._place.docked)
        self._place.set_content(cockpit)
        verdicts = self.verdicts = VerdictController(
            cockpit.verdict, cockpit.figures, self._host, self._settings, self._chat.chats, cockpit
        )
        cockpit.refreshed.connect(verdicts.follow)
        self.monitor.sampled.connect(verdicts.show_sample)
        verdicts.calibration_asked.connect(self.calibration_asked)
        self._follow_open_chat()
        self._stir()

    @Slot(str, bool)
    def _on_folded(self, key: str, folded: bool) -> None:
        keys = [old for old in self._settings.current.cockpit_folded if old != key]
        self._settings.set("cockpit_folded", tuple([*keys, key] if folded else keys))

    # What is shown

    @Slot(object)
    def _on_reply(self, reply: Reply) -> None:
        if self.cockpit is not None and self._chat.chats.current.reply(reply.reply_id) is reply:
            self.cockpit.follow(reply)

    @Slot(object, object)
    def _on_shown(self, view: ReplyView, _: Turn) -> None:
        view.cycle_chosen.connect(self.show_cycle)

    @Slot(object)
    def show_cycle(self, record: CycleRecord | None) -> None:
        """A cycle was selected in a reply, or one of its tokens pointed at: its layers are shown until another is."""
        if self.cockpit is not None:
            self.cockpit.choose_cycle(record)

    @Slot(object)
    def _on_replay(self, reply: Reply) -> None:
        if self.cockpit is not None:
            self.cockpit.follow(reply, replay=True)

    @Slot()
    def _follow_open_chat(self) -> None:
        """The last reply of the open chat, unless a replay is being played."""
        if self.cockpit is None or self._replays.replay is not None:
            return
        replies = [turn.reply for turn in self._chat.chats.current.turns if turn.reply is not None]
        self.cockpit.follow(replies[-1] if replies else None)

    @Slot()
    def _on_model(self) -> None:
        if self.cockpit is not None:
            self.cockpit.set_model(self._host.info, self._host.offload())
            self.verdicts.judge()
        self._stir()

    @Slot(object)
    def _on_state(self, state: HostState) -> None:
        if state is HostState.CLOSED:
            self._linger.stop()
            self.monitor.close()
        else:
            self._stir()

    # Watching the machine

    @Slot()
    def _on_watch_changed(self) -> None:
        self._stir()

    def _stir(self) -> None:
        """Something happened that may change what there is to read."""
        if self._host.state is not HostState.CLOSED:
            self._linger.start()
            self._watch()

    @Slot()
    def _watch(self) -> None:
        """Read while a section needs it and something is under way, or was a moment ago; else let the card sleep."""
        cockpit, host = self.cockpit, self._host
        active = host.state.under_way or self._linger.isActive()
        if cockpit is None or not active or not cockpit.wants_machine:
            self.monitor.rest()
            return
        card = host.info.card if host.info is not None else None
        self.monitor.watch(Watch(card, cockpit.wants_bus))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.WindowStateChange:
            QTimer.singleShot(0, self, self._on_window_state)
        return super().eventFilter(watched, event)

    @Slot()
    def _on_window_state(self) -> None:
        if self.cockpit is not None:
            self.cockpit.wake()
        self._stir()
