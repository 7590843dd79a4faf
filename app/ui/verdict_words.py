"""The texts of a verdict in the user's language."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from app.words import Words, fill


def shown(text: Words) -> str:
    """A text of `app.verdict`, translated and with its values."""
    return fill(translated(text.text), text.values)


def translated(text: str) -> str:
    """A text of `app.verdict` without values, translated."""
    return QCoreApplication.translate("Verdict", text)
