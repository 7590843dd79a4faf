"""The curves of a plot by colour and name, with their last figures."""

from __future__ import annotations

import html
from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QLabel, QWidget

from app.theme import PX_CAPTION, active, is_theme_change, ui_font


class CurveLegend(QLabel):
    """One line, or more where it does not fit; the words say all that the colours do."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setFont(ui_font(PX_CAPTION))
        self._entries: tuple[tuple[str, str], ...] = ()

    def show_entries(self, entries: Sequence[tuple[str, str]]) -> None:
        """Colour role and words of each curve."""
        if tuple(entries) != self._entries:
            self._entries = tuple(entries)
            self.setAccessibleName(", ".join(words for _, words in entries))
            self._dress()

    @property
    def words(self) -> list[str]:
        """The words of each curve."""
        return [words for _, words in self._entries]

    def _dress(self) -> None:
        theme = active()
        parts = [
            f'<span style="color:{theme.color(role).name()}">■</span>&nbsp;'
            f'<span style="color:{theme.text2}">{html.escape(words).replace(" ", "&nbsp;")}</span>'
            for role, words in self._entries
        ]
        self.setText(" &nbsp; ".join(parts))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "_entries"):
            self._dress()
