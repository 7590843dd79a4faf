"""The chats of the history in the side bar: found, named, pinned, copied, deleted, exported and imported."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QPoint, QTimer, Slot
from PySide6.QtWidgets import QMenu, QWidget

from app.chat_controller import ChatController
from app.chat_keeper import TITLE_SHOWN, reading_chats, row_of
from app.conversation import Chat
from app.history.copying import AddWholeChat
from app.history.exports import ChatFileError, export_json, export_markdown, file_name
from app.history.imports import ImportedChat, import_chat
from app.history.operations import ChangeChat, DeleteChat, RemoveChat
from app.history.reader import Reader
from app.history.rows import ChatRow, Hit, Note, one_line
from app.history.search import search
from app.history_service import History
from app.ui.chat_dialogs import ask_export, ask_import
from app.ui.labels import history_words
from app.ui.notices import Notices
from app.ui.side_bar import SideBar
from app.ui.undo_toast import UndoToast

SEARCH_MS = 40  # after the last key


class ChatShelf(QObject):
    """ask_export, ask_import: the dialogs (replaced in tests)."""

    def __init__(
        self, history: History, chat: ChatController, side_bar: SideBar, notices: Notices, window: QWidget
    ) -> None:
        super().__init__(window)
        self._history = history
        self._chat = chat
        self._side_bar = side_bar
        self._notices = notices
        self._window = window
        self.ask_export: Callable[[QWidget, str], str] = ask_export
        self.ask_import: Callable[[QWidget], str] = ask_import
        self.toast = UndoToast(window)
        self._deleted: ChatRow | None = None
        self._menu: QMenu | None = None
        self._words = ""
        self._asked = 0
        self._search_timer = QTimer(self)
        self._search_timer.setSingleShot(True)
        self._search_timer.setInterval(SEARCH_MS)
        self._search_timer.timeout.connect(self._search)
        self._connect()

    def _connect(self) -> None:
        history, chat, side_bar = self._history, self._chat, self._side_bar
        history.opened.connect(self._load)
        history.renewed.connect(self._renew)
        history.told.connect(self._tell)
        chat.chat_changed.connect(self._on_changed)
        chat.chat_gone.connect(self._on_gone)
        side_bar.chat_chosen.connect(self.open)
        side_bar.hit_chosen.connect(self._on_hit)
        side_bar.searched.connect(self._on_searched)
        side_bar.import_wanted.connect(self.choose_import)
        side_bar.list.menu_wanted.connect(self._show_menu)
        side_bar.model.renamed.connect(self.rename)
        self.toast.undone.connect(self._undo_delete)
        self.toast.expired.connect(self._finish_delete)

    # The list

    @Slot()
    def _load(self) -> None:
        self._side_bar.model.load(self._fetch)
        for chat in self._chat.chats.chats:
            self._on_changed(chat)

    def _fetch(self, after: ChatRow | None, most: int) -> list[ChatRow]:
        return self._history.read(reading_chats(after, most)) or []

    @Slot()
    def _renew(self) -> None:
        """Another file took the place of a damaged one."""
        self._load()

    @Slot(object)
    def _tell(self, note: Note) -> None:
        sentence = history_words(note.words)
        self._notices.tell(sentence)
        if note.lasting:
            self._side_bar.show_not_kept(sentence)

    @Slot(object)
    def _on_changed(self, chat: Chat) -> None:
        if chat.turns:
            self._side_bar.model.put(row_of(chat), replay=chat.replay)

    @Slot(object)
    def _on_gone(self, chat_id: int) -> None:
        self._side_bar.model.take(chat_id)

    @Slot(object)
    def open(self, chat_id: int) -> None:
        """Show a chat."""
        if not self._chat.open_chat(chat_id):
            self._notices.tell(self.tr("This chat cannot be read."))

    # Search

    @Slot(str)
    def _on_searched(self, words: str) -> None:
        self._words = words.strip()
        self._history.give_up(self._asked)
        if self._words:
            self._search_timer.start()
        else:
            self._search_timer.stop()

    @Slot()
    def _search(self) -> None:
        words = self._words
        self._asked = self._history.ask(lambda reader: search(reader, words), self._show_hits)

    def _show_hits(self, hits: list[Hit] | None) -> None:
        self._side_bar.show_hits(hits or [])

    @Slot(object)
    def _on_hit(self, hit: Hit) -> None:
        self.open(hit.chat.id)
        if hit.message is not None:
            self._chat.shown.go_to(hit.message)

    # One chat

    @Slot(object, QPoint)
    def _show_menu(self, chat_id: int, place: QPoint) -> None:
        if self._menu is not None:
            self._menu.deleteLater()
        self._menu = self.menu_of(chat_id)
        self._menu.popup(place)

    def menu_of(self, chat_id: int) -> QMenu:
        """What can be done with a chat."""
        menu = QMenu(self._window)
        row = self._side_bar.model.row(chat_id)
        if row is None:
            return menu
        chat, busy = self._chat.chats.known(chat_id), self._chat.busy_chat
        kept = chat is None or chat.kept
        pin = self.tr("Unpin") if row.pinned else self.tr("Pin")
        busy_here = busy is not None and busy.chat_id == chat_id
        entries: tuple[tuple[str, Callable[[], Any], bool], ...] = (
            (self.tr("Rename") + "\tF2", partial(self._side_bar.list.rename, chat_id), kept),
            (pin, partial(self.pin, chat_id, not row.pinned), kept),
            (self.tr("Duplicate"), partial(self.duplicate, chat_id), kept),
            (self.tr("Export as Markdown…"), partial(self.export, chat_id, ".md"), kept),
            (self.tr("Export with cycles (JSON)…"), partial(self.export, chat_id, ".json"), kept),
            (self.tr("Delete"), partial(self.delete, chat_id), not busy_here),
        )
        for number, (words, slot, enabled) in enumerate(entries):
            if number in (3, 5):
                menu.addSeparator()
            action = menu.addAction(words)
            action.setEnabled(enabled)
            action.triggered.connect(slot)
        return menu

    @Slot(object, str)
    def rename(self, chat_id: int, title: str) -> None:
        """Give a chat another title."""
        title = one_line(title, TITLE_SHOWN)
        if title:
            self._change(chat_id, title=title)

    def pin(self, chat_id: int, pinned: bool) -> None:
        """Keep a chat above the others, or no longer."""
        self._change(chat_id, pinned=pinned)

    def _change(self, chat_id: int, **values: Any) -> None:
        chat, row = self._chat.chats.known(chat_id), self._side_bar.model.row(chat_id)
        if row is None or (chat is not None and not chat.kept):
            return
        self._history.put(ChangeChat(chat_id, **values))
        title, pinned = values.get("title", row.title), values.get("pinned", row.pinned)
        if chat is not None:
            chat.given_title, chat.pinned = title if "title" in values else chat.given_title, pinned
        self._side_bar.model.put(ChatRow(row.id, title, pinned, row.created, row.updated))

    def duplicate(self, chat_id: int) -> None:
        """A copy of a chat with all its branches, which is then open."""
        row, now = self._side_bar.model.row(chat_id), time.time()
        if row is not None:
            title = self.tr("{title} (copy)").replace("{title}", row.title)
            copy = ChatRow(self._history.ids.next(), title, False, now, now)
            self._chat.keeper.copy(chat_id, copy, None, partial(self.open_new, copy.id))

    @Slot(object)
    def open_new(self, chat_id: int) -> None:
        """A chat came into the history by another way than a question: list and open it."""
        row = self._history.read(lambda reader: reader.row(chat_id))
        if row is not None:
            self._side_bar.model.put(row)
            self.open(chat_id)

    # Deleting

    def delete(self, chat_id: int) -> None:
        """Put a chat out of sight; for some seconds it can be brought back."""
        self.toast.expire()
        chat = self._chat.chats.known(chat_id)
        row = self._side_bar.model.take(chat_id)
        if row is None or (chat is not None and chat is self._chat.busy_chat):
            return
        if self._chat.chats.current is chat:
            self._chat.new_chat()
        if chat is not None:
            self._chat.chats.forget(chat)
        if chat is None or chat.kept:
            self._history.put(DeleteChat(chat_id, time.time()))
            self._deleted = row
            words = self.tr("Chat “{title}” was deleted").replace("{title}", row.title or self.tr("Untitled"))
            self.toast.offer(words)

    @Slot()
    def _undo_delete(self) -> None:
        row, self._deleted = self._deleted, None
        if row is not None:
            self._history.put(DeleteChat(row.id, None), partial(self.open_new, row.id))

    @Slot()
    def _finish_delete(self) -> None:
        row, self._deleted = self._deleted, None
        if row is not None:
            self._history.put(RemoveChat(row.id))

    # Files

    def export(self, chat_id: int, ending: str) -> None:
        """Ask where to and write a chat, as Markdown or as JSON with its cycles."""
        row = self._side_bar.model.row(chat_id)
        if row is None:
            return
        path = self.ask_export(self._window, file_name(row.title, ending))
        if path:
            write = export_json if path.endswith(".json") else export_markdown

            def question(reader: Reader) -> str:
                try:
                    write(reader, chat_id, Path(path))
                except ChatFileError as error:
                    return str(error)
                return ""

            asked = partial(self._history.ask, question, partial(self._exported, path))
            self._history.after_all(asked)

    def _exported(self, path: str, sentence: str | None) -> None:
        if sentence is None:
            self._notices.tell(self.tr("This chat cannot be read."))
        elif sentence:
            self._notices.tell(sentence)
        else:
            self.toast.say(self.tr("Exported to {file}").replace("{file}", Path(path).name))

    @Slot()
    def choose_import(self) -> None:
        """Ask for an exported chat and take it in."""
        if path := self.ask_import(self._window):
            self.take_in(Path(path))

    def take_in(self, path: Path) -> None:
        """Read a chat file, keep the chat and open it; a file that is none is told above the composer."""
        ids = self._history.ids

        def question(_: Reader) -> ImportedChat | str:
            try:
                return import_chat(path, ids.next, time.time())
            except ChatFileError as error:
                return str(error)

        self._history.ask(question, self._taken_in)

    def _taken_in(self, found: ImportedChat | str | None) -> None:
        if isinstance(found, ImportedChat):
            chat = AddWholeChat(found.chat, found.replies)
            self._history.put(chat, partial(self.open_new, found.chat.row.id))
        elif found:
            self._notices.tell(found)

    def close(self) -> None:
        """The window closes: what was deleted is."""
        self._search_timer.stop()
        self.toast.expire()
