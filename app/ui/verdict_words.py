"""The texts of a verdict in the user's language."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from app.words import Words, fill


def shown(text: Words) -> str:
    """A text of `app.verdict`, translated and with its values."""
    return fill(translated(text.text), ((name, times(value)) for name, value in text.values))


def times(figure: str) -> str:
    """A factor ("2.1×") as the user's language writes it; any other figure as it is."""
    if not figure.endswith("×"):
        return figure
    return QCoreApplication.translate("Verdict", "{value}×").replace("{value}", figure[:-1])


def translated(text: str) -> str:
    """A text of `app.verdict` without values, translated."""
    return QCoreApplication.translate("Verdict", text)
