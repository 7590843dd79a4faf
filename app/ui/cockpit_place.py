"""Where the cockpit is: a column beside the conversation, or in a narrow window a drawer over it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QFontMetricsF, QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.theme import PX_CONTROL, ui_font
from app.ui.panel import Panel

WIDTH, WIDEST = 376, 480
DESIGNED_HEIGHT = 16.0  # of a line in the font of controls, at the design's size


def cockpit_width() -> int:
    """376, more where the user's font is larger."""
    scale = QFontMetricsF(ui_font(PX_CONTROL)).height() / DESIGNED_HEIGHT
    return round(min(max(WIDTH * scale, WIDTH), WIDEST))


class CockpitPlace(QWidget):
    """`main` fills it; the side is beside it, over it or hidden. The side is there, empty, before the cockpit is made,
    so that nothing moves when it comes."""

    def __init__(self, main: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._main = main
        main.setParent(self)
        self.side = Panel("surface", "left", self)
        self._column = QVBoxLayout(self.side)
        self._column.setContentsMargins(1, 0, 0, 0)
        self._docked = True
        self.side.hide()

    def set_content(self, widget: QWidget) -> None:
        """What the side holds."""
        self._column.addWidget(widget)
        widget.show()

    def arrange(self, *, docked: bool, shown: bool) -> None:
        """Beside `main` or over it, to be seen or not."""
        self._docked = docked
        self.side.setVisible(shown)
        self._place()

    @property
    def docked(self) -> bool:
        """Whether the side is a column of its own rather than a drawer."""
        return self._docked

    @property
    def shown(self) -> bool:
        """Whether the side is to be seen."""
        return not self.side.isHidden()

    def minimumSizeHint(self) -> QSize:
        return self._main.minimumSizeHint()

    def sizeHint(self) -> QSize:
        return self._main.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().event(event)

    def _place(self) -> None:
        width = min(cockpit_width(), self.width())
        beside = width if self._docked and self.shown else 0
        self._main.setGeometry(0, 0, self.width() - beside, self.height())
        self.side.setGeometry(self.width() - width, 0, width, self.height())
        self.side.raise_()
