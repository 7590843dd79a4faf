"""Controls on a page that scrolls: the wheel belongs to the page until a control has the focus."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QWidget


class WheelGuard(QObject):
    """Lets the wheel scroll the page over a control that has no focus, instead of changing a value by accident."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget) and not watched.hasFocus():
            event.ignore()
            return True
        return False


def guard(control: QWidget) -> None:
    """Let the wheel pass while `control` has no focus."""
    control.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    control.installEventFilter(WheelGuard(control))
