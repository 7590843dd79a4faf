"""Colours, fonts and the one application stylesheet. Every painted widget reads its colours from `active()`.

A widget that paints itself overrides `changeEvent`, and on `QEvent.Type.PaletteChange` or `StyleChange` repaints
(colours are read at paint time) or sets its icons anew: `is_theme_change(event)` tells.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt, QTemporaryDir
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication

from app.colours import DARK, HIGH_CONTRAST_DARK, HIGH_CONTRAST_LIGHT, LIGHT, THEMES, Theme
from app.stylesheet import stylesheet

SPACING_INNER = 4
SPACING_PART = 8
SPACING_BLOCK = 12
SPACING_WIDE = 16
SPACING_TURN = 24

RADIUS_BAR = 2
RADIUS_WASH = 4
RADIUS_CONTROL = 6
RADIUS_CARD = 8
RADIUS_BUBBLE = 12

PX_TICK = 10
PX_CAPTION = 11
PX_LABEL = 12
PX_CONTROL = 13
PX_TEXT = 15

MONO_FAMILIES = ("DejaVu Sans Mono", "Liberation Mono", "Noto Sans Mono", "Menlo", "Consolas")
CJK_FAMILIES = ("Noto Sans CJK SC", "Noto Sans SC", "PingFang SC", "Microsoft YaHei")


FOLLOWING = ("system", "contrast")


def active(app: QApplication | None = None) -> Theme:
    """The theme in force; before `apply`, the one that fits the desktop."""
    app = app or _application()
    name = app.property("specularTheme") if app else None
    return THEMES.get(str(name)) or _of_desktop(app)


def apply(app: QApplication, name: str) -> Theme:
    """Set style, palette, font and stylesheet.

    name: "system" (follows the desktop), "contrast" (follows it too, in high contrast), or a name of `THEMES`. Raises
    KeyError for any other.
    """
    wanted = None if name in FOLLOWING else THEMES[name]
    scheme = Qt.ColorScheme.Unknown
    if wanted is not None:
        scheme = Qt.ColorScheme.Dark if wanted.dark else Qt.ColorScheme.Light
    keeper = app.findChild(_Keeper, "themeKeeper", Qt.FindChildOption.FindDirectChildrenOnly) or _Keeper(app)
    keeper.follows = False
    app.styleHints().setColorScheme(scheme)
    keeper.follows = wanted is None
    keeper.contrast = name == "contrast"
    theme = wanted or _of_desktop(app, contrast=keeper.contrast)
    keeper.dress(theme)
    return theme


@contextmanager
def _collector_held() -> Iterator[None]:
    """Inside, Python collects no garbage. Qt walks a list of all widgets and tells each of its new looks; a collection
    in one of their handlers can destroy a widget of that list, which Qt then comes to."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _Keeper(QObject):
    """Belongs to the application; follows the desktop's colour scheme and holds the images the stylesheet names."""

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self.setObjectName("themeKeeper")
        self.follows = self.contrast = False
        self._app = app
        self._images = QTemporaryDir()
        app.styleHints().colorSchemeChanged.connect(self._on_scheme)

    def dress(self, theme: Theme) -> None:
        app = self._app
        app.setProperty("specularTheme", theme.name)
        images = Path(self._images.path()) if self._images.isValid() else None
        with _collector_held():
            if app.style().name() != "fusion":
                app.setStyle("Fusion")
            app.setPalette(palette(theme))
            app.setFont(ui_font(PX_CONTROL))
            app.setStyleSheet(stylesheet(theme, images))

    def _on_scheme(self, _scheme: Qt.ColorScheme) -> None:
        if self.follows:
            self.dress(_of_desktop(self._app, contrast=self.contrast))


def _application() -> QApplication | None:
    app = QApplication.instance()
    return app if isinstance(app, QApplication) else None


def _of_desktop(app: QApplication | None, *, contrast: bool = False) -> Theme:
    if app is None:
        return LIGHT
    dark = _is_dark(app)
    accessibility = getattr(app.styleHints(), "accessibility", None)  # Qt 6.10 and newer
    preference = getattr(Qt, "ContrastPreference", None)
    if accessibility and preference and accessibility().contrastPreference() == preference.HighContrast:
        contrast = True
    if contrast:
        return HIGH_CONTRAST_DARK if dark else HIGH_CONTRAST_LIGHT
    return DARK if dark else LIGHT


def _is_dark(app: QApplication) -> bool:
    """Whether the desktop's windows are dark."""
    return app.styleHints().colorScheme() == Qt.ColorScheme.Dark


def palette(theme: Theme) -> QPalette:
    """The Qt palette of a theme."""
    roles = {
        QPalette.ColorRole.Window: theme.canvas,
        QPalette.ColorRole.WindowText: theme.text,
        QPalette.ColorRole.Base: theme.input,
        QPalette.ColorRole.AlternateBase: theme.surface,
        QPalette.ColorRole.Text: theme.text,
        QPalette.ColorRole.PlaceholderText: theme.text3,
        QPalette.ColorRole.Button: theme.surface,
        QPalette.ColorRole.ButtonText: theme.text,
        QPalette.ColorRole.BrightText: theme.error,
        QPalette.ColorRole.ToolTipBase: theme.input,
        QPalette.ColorRole.ToolTipText: theme.text,
        QPalette.ColorRole.Highlight: theme.accent_bg,
        QPalette.ColorRole.HighlightedText: theme.on_accent,
        QPalette.ColorRole.Accent: theme.accent_bg,
        QPalette.ColorRole.Link: theme.accent,
        QPalette.ColorRole.LinkVisited: theme.accent,
        QPalette.ColorRole.Light: theme.raised,
        QPalette.ColorRole.Midlight: theme.line,
        QPalette.ColorRole.Mid: theme.line2,
        QPalette.ColorRole.Dark: theme.line2,
    }
    result = QPalette()
    for role, value in roles.items():
        result.setColor(role, QColor(value))
    faded = (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText)
    for role in faded:
        result.setColor(QPalette.ColorGroup.Disabled, role, QColor(theme.text3))
    return result


def is_theme_change(event: QEvent) -> bool:
    """True for the events after which colours and fonts must be read anew."""
    return event.type() in (QEvent.Type.PaletteChange, QEvent.Type.StyleChange)


def points(px: float) -> float:
    """Size in points of a design size given in pixels at 96 dpi."""
    return px * 0.75


def ui_font(px: float = PX_CONTROL, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """The interface font, figures of equal width. px: size in the design, at 96 dpi."""
    system = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()
    installed = set(QFontDatabase.families())
    first = [family for family in ("Inter", "Inter Variable") if family in installed][:1]
    cjk = [family for family in CJK_FAMILIES if family in installed]
    font = QFont()
    font.setFamilies([*first, system, *cjk])
    font.setPointSizeF(points(px))
    font.setWeight(weight)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def mono_font(px: float = PX_CONTROL) -> QFont:
    """The font of code: JetBrains Mono where installed, else the system's fixed font; ligatures off."""
    installed = set(QFontDatabase.families())
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    cjk = [family for family in CJK_FAMILIES if family in installed]
    first = ["JetBrains Mono"] if "JetBrains Mono" in installed else []
    usual = [] if font.family() in installed else [name for name in MONO_FAMILIES if name in installed]
    font.setFamilies([*first, *usual, font.family(), *cjk])
    font.setPointSizeF(points(px))
    font.setStyleHint(QFont.StyleHint.Monospace)
    font.setFeature(QFont.Tag("calt"), 0)
    return font
