"""Collects what a widget and everything in it says: texts, tooltips, placeholders, names for assistive tools."""

from __future__ import annotations

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

ASKED = ("text", "title", "placeholderText", "toolTip", "accessibleName", "accessibleDescription", "windowTitle")


def shown_words(root: QWidget) -> set[str]:
    """Every sentence or word, hidden widgets and actions included."""
    found = set()
    for thing in (root, *root.findChildren(QWidget), *root.findChildren(QAction)):
        for name in ASKED:
            ask = getattr(thing, name, None)
            words = ask() if callable(ask) else ask
            if isinstance(words, str) and words.strip():
                found.add(words)
    return found
