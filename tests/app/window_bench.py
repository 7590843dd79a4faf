"""A real window over a fake engine, and the few things that every window test does with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fake_engine import FakeEngine
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.host import EngineHost
from app.live_settings import LiveSettings
from app.settings import AppSettings
from app.settings_store import SettingsStore
from app.states import HostState
from app.ui.conversation_view import ConversationView
from app.ui.main_window import MainWindow
from app.ui.reply_view import ReplyView
from app.widgets.user_bubble import UserBubble


@dataclass
class Bench:
    """The window and all that it was made of."""

    qtbot: QtBot
    engine: FakeEngine
    host: EngineHost
    settings: LiveSettings
    window: MainWindow
    restored: tuple[int, int]

    @property
    def chat_waits(self) -> bool:
        """Whether a message waits for the model."""
        return self.window.chat.waiting

    def reach(self, state: HostState) -> None:
        """Wait until the host is in `state`."""
        self.qtbot.waitUntil(lambda: self.host.state is state, timeout=10_000)

    def ready(self) -> None:
        """Load the starter model."""
        self.window.load_starter()
        self.reach(HostState.READY)

    def type_and_send(self, text: str) -> None:
        """As a user does: type into the composer and press Enter."""
        self.qtbot.keyClicks(self.window.composer.input, text)
        self.qtbot.keyClick(self.window.composer.input, Qt.Key.Key_Return)

    def ask(self, text: str) -> None:
        """Send `text` and wait for the end of the reply."""
        self.type_and_send(text)
        assert self.host.state is HostState.GENERATING
        self.reach(HostState.READY)

    def held(self) -> None:
        """Wait until the engine holds where it was told to."""
        self.qtbot.waitUntil(self.engine.held.is_set, timeout=10_000)

    @property
    def view(self) -> ConversationView:
        return self.window.view

    @property
    def said(self) -> list[str]:
        """What the conversation shows, turn by turn."""
        return [
            turn.source_text() if isinstance(turn, ReplyView) else text_of_bubble(turn) for turn in self.view.turns()
        ]

    @property
    def titles(self) -> list[str]:
        """The titles of the chats in the side bar."""
        return self.window.side_bar.model.titles()

    def listed(self, place: int) -> int:
        """The number of a chat in the side bar."""
        return self.window.side_bar.model.ids()[place]

    @property
    def banner(self) -> str:
        """The banner's sentence, empty while it is hidden."""
        return self.view.banner.sentence() if not self.view.banner.isHidden() else ""


def text_of_bubble(bubble: UserBubble) -> str:
    """What a user bubble says."""
    return bubble.text()


BenchMaker = Callable[..., Bench]


def make_bench(
    qtbot: QtBot,
    folder: Path,
    engine: FakeEngine | None = None,
    *,
    starter: Callable[[], bool] = lambda: True,
    settings: AppSettings | None = None,
    notes: tuple[str, ...] = (),
) -> Bench:
    """A shown window; the caller closes it."""
    fake = engine or FakeEngine()
    host = EngineHost(lambda: fake)
    live = LiveSettings(SettingsStore(folder), settings or AppSettings())
    window = MainWindow(host, live, notes, starter_installed=starter)
    restored = window.width(), window.height()
    window.resize(1440, 900)
    window.show()
    return Bench(qtbot, fake, host, live, window, restored)
