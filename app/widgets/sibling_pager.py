"""Which of several versions of a message is shown, and the way to the others: "‹ 2/3 ›"."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.theme import PX_LABEL, ui_font
from app.widgets.icon_button import HIT_SMALL, IconButton


class SiblingPager(QWidget):
    """Hidden while there is one version only. chosen(step): -1 for the version before, 1 for the one after."""

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.earlier = IconButton("chevron-left", self.tr("Earlier version"), self, HIT_SMALL)
        self.later = IconButton("chevron-right", self.tr("Later version"), self, HIT_SMALL)
        self._place = QLabel(self)
        self._place.setFont(ui_font(PX_LABEL))
        self._place.setAlignment(Qt.AlignmentFlag.AlignCenter)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for widget in (self.earlier, self._place, self.later):
            row.addWidget(widget)
        self.earlier.clicked.connect(self._on_earlier)
        self.later.clicked.connect(self._on_later)
        self.hide()

    def show_place(self, place: int, count: int) -> None:
        """Version number `place`, from 0, of `count`."""
        self._place.setText(f"{place + 1}/{count}")
        words = self.tr("Version {place} of {count}")
        self.setAccessibleName(words.replace("{place}", str(place + 1)).replace("{count}", str(count)))
        self._place.setToolTip(self.accessibleName())
        self._place.setAccessibleName(self.accessibleName())
        self.earlier.setEnabled(place > 0)
        self.later.setEnabled(place < count - 1)
        self.setVisible(count > 1)

    def place(self) -> str:
        """What it says, "" while it is hidden."""
        return "" if self.isHidden() else self._place.text()

    def _on_earlier(self) -> None:
        self.chosen.emit(-1)

    def _on_later(self) -> None:
        self.chosen.emit(1)
