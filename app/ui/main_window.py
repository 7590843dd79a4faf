"""The window: chat list, conversation and composer, or the settings page, above one status line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QStackedWidget

from app.attaching import Attaching
from app.budget_controller import BudgetController
from app.chat_branches import ChatBranches
from app.chat_controller import ChatController
from app.chat_shelf import ChatShelf
from app.cockpit_controller import CockpitController
from app.comparisons import Comparisons
from app.conversation import Reply
from app.engine_words import in_user_words
from app.history_service import History
from app.host import EngineHost
from app.live_settings import LiveSettings
from app.model_controller import ModelController
from app.model_management import ModelManagement
from app.profile_store import ProfileStore
from app.profiles import Profiles
from app.replays import Replays
from app.reports import Reports
from app.starter_fetch import StarterFetch
from app.states import Command, HostState, is_legal
from app.theme import SPACING_WIDE, active, apply
from app.token_cards import TokenCards
from app.ui.cockpit_place import CockpitPlace
from app.ui.commands import CHATS, REPLY, WINDOW, Commands
from app.ui.composer import Composer
from app.ui.conversation_view import ConversationView, centred
from app.ui.job_panes import JobPanes
from app.ui.labels import sampling_label, speculation_label
from app.ui.model_dialogs import ask_file, ask_folder, ask_replay
from app.ui.model_drop import ModelDrop
from app.ui.notices import Notices
from app.ui.panel import beside, stacked
from app.ui.side_bar import SideBar
from app.ui.status_line import StatusLine
from app.ui.top_bar import TopBar
from app.window_commands import WindowCommands
from engine.files import starter
from engine.files.paths import data_dir
from engine.records import ModelInfo

if TYPE_CHECKING:
    from app.ui.settings_page import SettingsPage

SIDEBAR_FROM = 1000
COCKPIT_FROM = 1280
MINIMUM = (640, 480)
DEFAULT = (1440, 900)


class MainWindow(QMainWindow):
    """Lays out the parts and connects them; what a chat or a load does is in the two controllers.

    Closing the window closes the host, in every state. painted() is emitted once, after the first
    paint; closed() when it has been closed.
    """

    painted = Signal()
    closed = Signal()

    def __init__(
        self,
        host: EngineHost,
        settings: LiveSettings,
        notes: tuple[str, ...] = (),
        *,
        starter_installed: Callable[[], bool] = starter.is_installed,
        history_folder: Path | None = None,
    ) -> None:
        super().__init__()
        self.setWindowTitle("Specular")
        self.setMinimumSize(*MINIMUM)
        self._host = host
        self._settings = settings
        self._painted = False
        self._wide = True
        self.commands = Commands(self)
        self.side_bar = SideBar()
        self.top_bar = TopBar()
        self.view = ConversationView()
        self.composer = Composer()
        self.status = StatusLine()
        self.fetch = StarterFetch(self)
        self.notices = Notices(self.view, self.fetch, self)
        self.models = ModelController(host, settings, starter_installed, self)
        self.model_management = ModelManagement(host, self.models, settings, self)
        self.budget = BudgetController(host, settings, self.models, self)
        self.history = History(history_folder or data_dir(), self)
        self.chat = ChatController(host, settings, self.view, self.composer, self.history, self)
        self.shelf = ChatShelf(self.history, self.chat, self.side_bar, self.notices, self)
        self.branches = ChatBranches(self.chat, self.view, self.history.ids, self)
        self.replays = Replays(self.chat, self.notices, self)
        below = centred(self.composer, bottom=SPACING_WIDE)
        place = CockpitPlace(stacked(self.view, below))
        self.cockpit = CockpitController(host, settings, self.chat, self.replays, place, self)
        self.cards = TokenCards(host, self.chat, self.view, self)
        self.reports = Reports(self.chat, settings, self.notices, self)
        self.profiles = Profiles(settings, ProfileStore(settings.store_folder), self)
        self.comparisons = Comparisons(host, self.chat, self.notices, self)
        self._settings_page: SettingsPage | None = None
        self.jobs = JobPanes(host, self)
        self._stack = QStackedWidget()
        self._stack.addWidget(beside(self.side_bar, stacked(self.top_bar, place, grows=1)))
        self.setCentralWidget(stacked(self._stack, self.status))
        self._make_actions()
        self._connect()
        self._restore()
        if notes:
            self.notices.tell(" ".join(in_user_words(note) for note in notes))

    def _make_actions(self) -> None:
        """Every command with a key is an action of the window, so that it works wherever the focus is."""
        add = self.commands.add
        self.new_action = add(CHATS, self.tr("New chat"), self.new_chat, "Ctrl+N")
        self.search_action = add(CHATS, self.tr("Search chats"), self.begin_search, "Ctrl+K")
        self.sidebar_action = add(WINDOW, self.tr("Show or hide the chats"), self.toggle_sidebar, "Ctrl+B")
        self.cockpit_action = add(WINDOW, self.tr("Show or hide the cockpit"), self.toggle_cockpit, "Ctrl+J")
        self.settings_action = add(WINDOW, self.tr("Settings"), self.toggle_settings, "Ctrl+,")
        self.escape_action = add(REPLY, self.tr("Stop, or back to the chat"), self._on_escape, "Esc")
        self.quit_action = add(WINDOW, self.tr("Quit"), self.close, "Ctrl+Q")
        self.more_commands = WindowCommands(self, self._host, self._settings)

    def _connect(self) -> None:
        host, chip = self._host, self.top_bar.chip
        host.state_changed.connect(self._on_state)
        host.load_progress.connect(chip.show_progress)
        host.model_loaded.connect(self._on_model)
        host.model_gone.connect(self._on_model_gone)
        host.failed.connect(self._on_failed)
        host.calibration_ended.connect(self._show_draft)
        self.models.loading.connect(chip.show_loading)
        self.models.recent_changed.connect(chip.set_recent)
        self.models.starter_missing.connect(self.notices.starter_missing)
        self.fetch.fetched.connect(self.load_starter)
        self.notices.load_starter.connect(self.load_starter)
        chip.chosen.connect(self.models.load)
        chip.cancel.connect(self.models.cancel)
        chip.unload.connect(self.models.unload)
        chip.manage.connect(self.model_management.show)
        chip.open_folder.connect(self.choose_folder)
        chip.open_file.connect(self.choose_file)
        chip.demo.connect(self.show_demo)
        chip.open_replay.connect(self.choose_replay)
        self.view.demo_chosen.connect(self.show_demo)
        self.closed.connect(self.replays.pause)
        self.chat.chats_changed.connect(self._show_chats)
        self.chat.reply_moved.connect(self._on_reply)
        self.chat.prefill.connect(self.status.show_prefill)
        self.chat.waiting_changed.connect(self.status.show_waiting)
        self.chat.no_model_for.connect(self.notices.no_model)
        self.side_bar.new_chat.connect(self.new_chat)
        self.branches.branched.connect(self.shelf.open_new)
        self.painted.connect(self.history.begin, Qt.ConnectionType.QueuedConnection)
        self.side_bar.settings.connect(self.show_settings)
        self.top_bar.toggle_sidebar.connect(self.toggle_sidebar)
        self.top_bar.prove.connect(self.jobs.prove)
        self.top_bar.replay.connect(self.replays.start_last)
        self.top_bar.report.connect(self.reports.export_last)
        self.top_bar.toggle_theme.connect(self.toggle_theme)
        self.top_bar.settings.connect(self.show_settings)
        self.top_bar.toggle_cockpit.connect(self.toggle_cockpit)
        self.cockpit.shown_changed.connect(self.top_bar.show_cockpit)
        self.cards.pointed.connect(self.cockpit.show_cycle)
        self.cockpit.calibration_asked.connect(self.jobs.calibrate)
        self.painted.connect(self.cockpit.begin, Qt.ConnectionType.QueuedConnection)
        ModelDrop(self).dropped.connect(self.models.load)
        self.attaching = Attaching(host, self.composer, self.view, self)
        self.composer.sampling_clicked.connect(self._on_sampling_clicked)
        self.composer.speculation_clicked.connect(self._on_speculation_clicked)
        self._settings.changed.connect(self._on_setting)
        self._settings.not_kept.connect(self.notices.tell)
        self.profiles.not_kept.connect(self.notices.tell)
        self.budget.told.connect(self.notices.budget_refused)
        self.notices.load_again.connect(self.models.load_again)
        self.notices.restart_wanted.connect(self.models.restart)

    def _restore(self) -> None:
        """Everything the window shows of what was there before it."""
        settings = self._settings.current
        geometry = QByteArray.fromBase64(QByteArray(settings.window_geometry.encode()))
        if geometry.isEmpty() or not self.restoreGeometry(geometry):
            self.resize(*DEFAULT)
        self.top_bar.chip.set_recent(settings.recent_models)
        self._show_setting_labels()
        self._show_sidebar()
        self._on_state(self._host.state)
        self._show_chats()
        self.composer.focus_input()

    @property
    def settings_page(self) -> SettingsPage:
        """The settings page, made when it is first wanted: the first paint does not wait for it."""
        if self._settings_page is None:
            from app.ui.settings_page import SettingsPage  # imports numpy

            page = self._settings_page = SettingsPage(self._settings)
            page.set_wide(self._wide)
            page.back.connect(self.show_chat)
            page.open_folder.connect(self.choose_folder)
            page.open_file.connect(self.choose_file)
            page.load_starter.connect(self.load_starter)
            page.pane.calibrate.connect(self.jobs.calibrate)
            self.budget.serve(page.pane.budget)
            page.pane.show_model(self._host.info)
            page.pane.show_state(self._host.state)
            self._stack.addWidget(page)
        return self._settings_page

    @Slot()
    def toggle_settings(self) -> None:
        """Between the chat and the settings page."""
        if self.in_settings:
            self.show_chat()
        else:
            self.show_settings()

    @property
    def in_settings(self) -> bool:
        """Whether the settings are shown in place of the chat."""
        return self._stack.currentIndex() > 0

    @Slot()
    def show_settings(self) -> None:
        """The settings page in place of the chat."""
        self.cards.close()
        self._stack.setCurrentWidget(self.settings_page)
        self.settings_page.side.list.setFocus()

    @Slot()
    def show_chat(self) -> None:
        """The chat in place of the settings page."""
        self._stack.setCurrentIndex(0)
        self.composer.focus_input()

    @Slot()
    def toggle_sidebar(self) -> None:
        """Show or hide the chat list; in a wide window the choice is kept."""
        visible = self.side_bar.isHidden()
        self.side_bar.setVisible(visible)
        if self._wide:
            self._settings.set("sidebar_visible", visible)

    @Slot()
    def toggle_cockpit(self) -> None:
        """Show or hide the cockpit, coming back to the chat for it."""
        if self.in_settings:
            self.show_chat()
            if self.cockpit.shown:
                return
        self.cockpit.toggle()

    @Slot()
    def toggle_theme(self) -> None:
        """The other of light and dark."""
        self._settings.set("theme", "light" if active().dark else "dark")

    @Slot()
    def choose_folder(self) -> None:
        """Ask for a model folder and load it."""
        if path := ask_folder(self):
            self.models.load(path)

    @Slot()
    def choose_file(self) -> None:
        """Ask for a GGUF file and load it."""
        if path := ask_file(self):
            self.models.load(path)

    @Slot()
    def show_demo(self) -> None:
        """Play the recorded demo; no model is needed."""
        self.show_chat()
        self.replays.open_demo()

    @Slot()
    def choose_replay(self) -> None:
        """Ask for a replay file and play it."""
        if path := ask_replay(self):
            self.show_chat()
            self.replays.open_file(Path(path))

    @Slot()
    def load_starter(self) -> None:
        """Load the starter model, or offer to fetch it."""
        self.models.load("starter")

    @Slot()
    def new_chat(self) -> None:
        """An empty chat, with the cursor in the composer."""
        self.chat.new_chat()
        self.show_chat()

    @Slot()
    def begin_search(self) -> None:
        """The cursor in the search field, with the chats shown for it."""
        self.show_chat()
        self.side_bar.show()
        self.side_bar.begin_search()

    @Slot(object)
    def _on_state(self, _: HostState) -> None:
        state = self._host.state
        self.status.show_state(state)
        self.top_bar.show_state(state)
        self.view.offer_demo(self._host.info is None)
        if self._settings_page is not None:
            self._settings_page.pane.show_state(state)
        self._show_chats()

    @Slot(object)
    def _on_model(self, info: ModelInfo) -> None:
        self.top_bar.chip.show_model(info)
        self.status.show_model(info)
        self.status.clear_figures()
        self.chat.show_gauge()
        self._show_draft()
        if info.notes:
            self.notices.tell(" ".join(info.notes))

    @Slot()
    def _on_model_gone(self) -> None:
        self.top_bar.chip.show_model(None)
        self.status.show_model(None)
        self.chat.show_gauge()
        self._show_draft()

    @Slot()
    def _show_draft(self) -> None:
        """The settings page, where it has been made, tells the draft of the loaded model."""
        if self._settings_page is not None:
            self._settings_page.pane.show_model(self._host.info)

    @Slot(str, str)
    def _on_failed(self, sentence: str, details: str) -> None:
        self.notices.failed(sentence, details, offer_starter=self._host.info is None, of_engine=True)

    @Slot(object)
    def _on_reply(self, reply: Reply) -> None:
        self.status.show_statistics(reply.statistics, final=reply.finished is not None)

    @Slot()
    def _show_chats(self) -> None:
        self.top_bar.show_finished(self.chat.last_finished is not None)
        chats, busy = self.chat.chats, self.chat.busy_chat
        self.side_bar.show_state(chats.current.chat_id, busy.chat_id if busy else None)

    @Slot()
    def _on_escape(self) -> None:
        """Stop comes first: a running reply is the more urgent thing to leave."""
        if is_legal(self._host.state, Command.STOP) or self.chat.waiting:
            self.chat.stop()
        elif self.cards.close():
            pass
        elif self.in_settings:
            self.show_chat()
        elif not self.cockpit.close_drawer():
            self.replays.close()

    @Slot()
    def _on_sampling_clicked(self) -> None:
        self.show_settings()
        self.settings_page.pane.show_group("sampling")

    @Slot()
    def _on_speculation_clicked(self) -> None:
        self.show_settings()
        self.settings_page.pane.show_group("recipe")

    @Slot(str, object)
    def _on_setting(self, name: str, value: object) -> None:
        if name == "theme":
            app = QApplication.instance()
            if isinstance(app, QApplication):
                apply(app, str(value))
        self._show_setting_labels()

    def _show_setting_labels(self) -> None:
        self.composer.set_sampling_label(sampling_label(self._settings.current))
        self.composer.set_speculation_label(speculation_label(self._settings.current))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_sidebar()

    def _show_sidebar(self) -> None:
        """Below `SIDEBAR_FROM` the list hides by itself; when the window widens the user's choice is back."""
        wide = self.width() >= SIDEBAR_FROM
        if self._settings_page is not None:
            self._settings_page.set_wide(wide)
        if wide:
            self.side_bar.setVisible(self._settings.current.sidebar_visible)
        elif self._wide:
            self.side_bar.hide()
        self._wide = wide
        self.cockpit.set_wide(self.width() >= COCKPIT_FROM)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            self.painted.emit()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop, cancel, close the engine, keep the settings: in this order, whatever is under way."""
        geometry = bytes(self.saveGeometry().toBase64().data()).decode()
        self._settings.set("window_geometry", geometry)
        self._settings.flush()
        self.fetch.give_up()
        self.model_management.close()
        event.accept()
        if self._host.close():
            self.shelf.close()
            self.chat.close()
            self.history.close()
            self.closed.emit()
