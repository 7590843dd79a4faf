"""A widget that keeps its picture: painted anew when its data change, only copied when it is moved or uncovered."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QWidget

from app.theme import is_theme_change


class PaintedWidget(QWidget):
    """Subclasses paint in `draw`, and call `redraw` when what they show has changed."""

    _picture: QPixmap | None = None

    def draw(self, painter: QPainter) -> None:
        """Paint the whole widget."""

    def redraw(self) -> None:
        """What is shown has changed."""
        self._picture = None
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        widget_painter = QPainter(self)
        scale = widget_painter.deviceTransform().m11()  # finer than the screen's where it is drawn for a still
        size = (self.size().toSizeF() * scale).toSize()
        if self._picture is None or self._picture.size() != size:
            self._picture = QPixmap(size)
            self._picture.setDevicePixelRatio(scale)
            self._picture.fill(Qt.GlobalColor.transparent)
            painter = QPainter(self._picture)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self.draw(painter)
            painter.end()
        widget_painter.drawPixmap(0, 0, self._picture)
        widget_painter.end()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event):
            self.redraw()
