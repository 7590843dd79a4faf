"""Icons from `assets/icons/*.svg`: one colourless drawing each, painted in a colour of the active theme.

A `QIcon` keeps the colour it was made with; set icons anew on a theme change (`app.widgets.icon_button` does).
"""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPixmap, QPixmapCache
from PySide6.QtSvg import QSvgRenderer

from app.svg import svg_source
from app.theme import active

BOX = 16


def _scales() -> list[float]:
    """The device pixel ratios of the screens that are there: drawing for more costs most of a window's start."""
    return sorted({1.0, *(screen.devicePixelRatio() for screen in QGuiApplication.screens())})


def pixmap(name: str, color: str, size: int = BOX, scale: float = 1.0) -> QPixmap:
    """An icon drawn for `size` logical pixels at device pixel ratio `scale`."""
    pixels = round(size * scale)
    key = f"icon {name} {color} {pixels} {scale}"
    kept = QPixmap()
    if QPixmapCache.find(key, kept):  # a long chat has hundreds of each
        return kept
    result = QPixmap(QSize(pixels, pixels))
    result.fill(Qt.GlobalColor.transparent)
    painter = QPainter(result)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    QSvgRenderer(QByteArray(svg_source(name, color))).render(painter)
    painter.end()
    result.setDevicePixelRatio(scale)
    QPixmapCache.insert(key, result)
    return result


def icon(name: str, color_role: str = "text2", size: int = BOX) -> QIcon:
    """The icon in a colour role of the active theme ("text2"), sharp on every screen that is attached."""
    theme = active()
    result = QIcon()
    for scale in _scales():
        result.addPixmap(pixmap(name, getattr(theme, color_role), size, scale))
        disabled = pixmap(name, theme.text3, size, scale)
        result.addPixmap(disabled, QIcon.Mode.Disabled)
    return result
