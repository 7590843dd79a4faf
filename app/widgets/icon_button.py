"""Buttons that carry an icon of ours and take its colour anew when the theme changes."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QIcon, QPaintEvent
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from app.icons import BOX, icon
from app.theme import active, is_theme_change

HIT = 28
HIT_SMALL = 24


class IconButton(QToolButton):
    """A square button with an icon only. `text` is its accessible name and tooltip."""

    def __init__(self, icon_name: str, text: str, parent: QWidget | None = None, hit: int = HIT) -> None:
        super().__init__(parent)
        self._icon_name = icon_name
        self._drawn = ""
        self.setText(text)
        self.setToolTip(text)
        self.setAccessibleName(text)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        self.setIconSize(QSize(BOX, BOX))
        self.setFixedSize(hit, hit)
        self.setProperty("square", True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # the focus ring is for the keyboard
        self._set_icon()

    def set_icon_name(self, name: str) -> None:
        """Show another icon."""
        self._icon_name = name
        self._set_icon()

    def _set_icon(self) -> None:
        """Draw the icon unless it is drawn already: a new parent sends the events of a theme change too."""
        wanted = f"{self._icon_name} {active().name}"
        if wanted != self._drawn:
            self._drawn = wanted
            self.setIcon(icon(self._icon_name))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "_drawn"):
            self._set_icon()


class QuietButton(IconButton):
    """One that is seen only while the widget it belongs to is pointed at, or while it has the keyboard itself."""

    def __init__(self, icon_name: str, text: str, parent: QWidget | None = None, hit: int = HIT_SMALL) -> None:
        super().__init__(icon_name, text, parent, hit)
        self._revealed = False

    def set_revealed(self, revealed: bool) -> None:
        """Whether it is seen; it can be reached by Tab all the same."""
        if revealed != self._revealed:
            self._revealed = revealed
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._revealed or self.hasFocus():
            super().paintEvent(event)


class TextButton(QPushButton):
    """A button with text and perhaps an icon. kind: "primary", "secondary" or "ghost"."""

    def __init__(self, text: str, kind: str = "secondary", icon_name: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setProperty("kind", kind)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # the focus ring is for the keyboard
        self._icon_role = {"primary": "on_accent"}.get(kind, "text2")
        self._icon_name = icon_name
        self._drawn = ""
        self.setIconSize(QSize(BOX, BOX))
        self._set_icon()

    def set_icon_name(self, name: str) -> None:
        """Show another icon; an empty name shows none."""
        self._icon_name = name
        self._set_icon()

    def _set_icon(self) -> None:
        wanted = f"{self._icon_name} {active().name}" if self._icon_name else ""
        if wanted != self._drawn:
            self._drawn = wanted
            self.setIcon(icon(self._icon_name, self._icon_role) if wanted else QIcon())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "_drawn"):
            self._set_icon()
