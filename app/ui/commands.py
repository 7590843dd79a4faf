"""Every command of the window as an action: what the shortcuts sheet lists and the command palette runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.declaration import QT_TRANSLATE_NOOP

CHATS = QT_TRANSLATE_NOOP("Commands", "Chats")
REPLY = QT_TRANSLATE_NOOP("Commands", "Reply")
MODEL = QT_TRANSLATE_NOOP("Commands", "Model")
WINDOW = QT_TRANSLATE_NOOP("Commands", "Window")
TOKENS = QT_TRANSLATE_NOOP("Commands", "Tokens of a reply")
GROUPS = (CHATS, REPLY, MODEL, WINDOW, TOKENS)

KEYS_OF_TOKENS = (
    ("Alt+Left", QT_TRANSLATE_NOOP("Commands", "The token before")),
    ("Alt+Right", QT_TRANSLATE_NOOP("Commands", "The token after")),
    ("Alt+Up", QT_TRANSLATE_NOOP("Commands", "The cycle before")),
    ("Alt+Down", QT_TRANSLATE_NOOP("Commands", "The cycle after")),
    ("Return", QT_TRANSLATE_NOOP("Commands", "Open the token's card")),
)
"""Keys that a reply with the focus takes itself: `app.widgets.token_pointer`."""


def always() -> bool:
    """Of a command that is possible at any time."""
    return True


def native(keys: str) -> str:
    """A shortcut as this system writes it."""
    return QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText)


@dataclass(frozen=True, slots=True)
class Command:
    """An action, the group it is listed in, and whether it can be done now."""

    action: QAction
    group: str
    possible: Callable[[], bool]


class Commands(QObject):
    """Makes the window's actions and keeps them in order. Actions work wherever the focus is."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._all: list[Command] = []

    def add(
        self,
        group: str,
        words: str,
        slot: Callable[[], object],
        keys: str = "",
        possible: Callable[[], bool] = always,
    ) -> QAction:
        """A command, with a shortcut perhaps."""
        action = QAction(words, self._window)
        if keys:
            action.setShortcut(QKeySequence(keys))
            action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        action.triggered.connect(slot)
        self._window.addAction(action)
        self._all.append(Command(action, group, possible))
        return action

    def possible(self) -> list[Command]:
        """Those that can be done now."""
        return [command for command in self._all if command.action.isEnabled() and command.possible()]

    def shortcuts(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Group by group, in the user's language: what it does, and its keys as this system writes them."""
        found: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for command in self._all:
            if not command.action.shortcut().isEmpty():
                keys = command.action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
                found[command.group].append((command.action.text(), keys))
        found[TOKENS] = [(group_name(words), native(keys)) for keys, words in KEYS_OF_TOKENS]
        return [(group_name(group), rows) for group, rows in found.items() if rows]


def group_name(text: str) -> str:
    """A group's name, or a key's words, in the user's language."""
    return QCoreApplication.translate("Commands", text)
