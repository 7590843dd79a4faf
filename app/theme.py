"""Colours, fonts and the one application stylesheet. Every painted widget reads its colours from `active()`.

A widget that paints itself overrides `changeEvent`, and on `QEvent.Type.PaletteChange` or `StyleChange` repaints
(colours are read at paint time) or sets its icons anew: `is_theme_change(event)` tells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, QTemporaryDir
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication

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

CJK_FAMILIES = ("Noto Sans CJK SC", "Noto Sans SC", "PingFang SC", "Microsoft YaHei")


@dataclass(frozen=True, slots=True)
class Theme:
    """One look. Colours are "#RRGGBB"; `washes` False draws accepted tokens by an underline (high contrast)."""

    name: str
    dark: bool
    washes: bool
    side: str
    canvas: str
    surface: str
    raised: str
    hover: str
    input: str
    line: str
    line2: str
    text: str
    text2: str
    text3: str
    accent: str
    accent_bg: str
    on_accent: str
    ok: str
    warn: str
    error: str
    warn_bg: str
    error_bg: str
    accepted_wash: str
    accepted_dot: str
    rejected: str
    correction: str
    bonus: str
    gpu: str
    draft: str
    verify: str
    wait: str
    cpu: str
    kv_used: str
    kv_mapped: str
    workspace: str
    cache: str
    other: str
    free: str
    grid: str

    def color(self, role: str) -> QColor:
        """The colour of a role by its field name ("text2")."""
        return QColor(getattr(self, role))


DARK = Theme(
    name="dark",
    dark=True,
    washes=True,
    side="#121418",
    canvas="#17191E",
    surface="#1D2026",
    raised="#272B33",
    hover="#22262D",
    input="#1B1E24",
    line="#2A2E37",
    line2="#3C424E",
    text="#E4E7EC",
    text2="#A6ADBA",
    text3="#8E96A4",
    accent="#A5A1FF",
    accent_bg="#5A55D6",
    on_accent="#FFFFFF",
    ok="#5CC8A1",
    warn="#E9B44C",
    error="#F08A7B",
    warn_bg="#332A18",
    error_bg="#3A2023",
    accepted_wash="#1C3A33",
    accepted_dot="#5CC8A1",
    rejected="#929AA8",
    correction="#F0B84E",
    bonus="#6DB5F5",
    gpu="#7F7AF0",
    draft="#C9C7FF",
    verify="#7F7AF0",
    wait="#35AECB",
    cpu="#7C8696",
    kv_used="#E08FB4",
    kv_mapped="#8E5A73",
    workspace="#5E6776",
    cache="#454C59",
    other="#343A45",
    free="#1F232A",
    grid="#272B33",
)

LIGHT = Theme(
    name="light",
    dark=False,
    washes=True,
    side="#F4F5F7",
    canvas="#FFFFFF",
    surface="#F8F9FA",
    raised="#EBEDF1",
    hover="#EBEDF1",
    input="#FFFFFF",
    line="#E2E5EA",
    line2="#C6CBD4",
    text="#1C2027",
    text2="#525A68",
    text3="#5F6775",
    accent="#4F49C8",
    accent_bg="#5550D2",
    on_accent="#FFFFFF",
    ok="#0B7A58",
    warn="#8A5A00",
    error="#B3362A",
    warn_bg="#FBF3E0",
    error_bg="#FBEAE8",
    accepted_wash="#DCF2E9",
    accepted_dot="#12805F",
    rejected="#646B79",
    correction="#9C6300",
    bonus="#1B6DBA",
    gpu="#5B55D6",
    draft="#AAA6F2",
    verify="#5B55D6",
    wait="#1593AE",
    cpu="#646D7C",
    kv_used="#C4588A",
    kv_mapped="#E3AFC7",
    workspace="#9AA3B1",
    cache="#BCC3CD",
    other="#D3D8DF",
    free="#EEF0F3",
    grid="#E9EBEF",
)


def _high_contrast(base: Theme, name: str, canvas: str, text: str, accent: str) -> Theme:
    """`base` on a pure canvas: hairlines become text, secondary text too, no washes."""
    flat: dict[str, Any] = dict.fromkeys(("side", "canvas", "surface", "raised", "input"), canvas)
    strong: dict[str, Any] = dict.fromkeys(("line", "line2", "text", "text2", "text3", "rejected"), text)
    return replace(base, name=name, washes=False, accent=accent, **flat, **strong)


HIGH_CONTRAST_DARK = _high_contrast(DARK, "high-contrast-dark", "#000000", "#FFFFFF", "#B9B6FF")
HIGH_CONTRAST_LIGHT = _high_contrast(LIGHT, "high-contrast-light", "#FFFFFF", "#000000", "#3F39B0")
THEMES = {theme.name: theme for theme in (DARK, LIGHT, HIGH_CONTRAST_DARK, HIGH_CONTRAST_LIGHT)}


def active(app: QApplication | None = None) -> Theme:
    """The theme in force; before `apply`, the one that fits the desktop."""
    app = app or _application()
    name = app.property("specularTheme") if app else None
    return THEMES.get(str(name)) or _of_desktop(app)


def apply(app: QApplication, name: str) -> Theme:
    """Set style, palette, font and stylesheet. name: "system" (follows the desktop), or a name of `THEMES`."""
    schemes = {"system": Qt.ColorScheme.Unknown, "light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}
    wanted = THEMES.get(name)
    if wanted is not None:
        scheme = Qt.ColorScheme.Dark if wanted.dark else Qt.ColorScheme.Light
    else:
        scheme = schemes[name]
    keeper = app.findChild(_Keeper, "themeKeeper", Qt.FindChildOption.FindDirectChildrenOnly) or _Keeper(app)
    keeper.follows = False
    app.styleHints().setColorScheme(scheme)
    keeper.follows = wanted is None
    theme = wanted or _of_desktop(app)
    keeper.dress(theme)
    return theme


class _Keeper(QObject):
    """Belongs to the application; follows the desktop's colour scheme and holds the images the stylesheet names."""

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self.setObjectName("themeKeeper")
        self.follows = False
        self._app = app
        self._images = QTemporaryDir()
        app.styleHints().colorSchemeChanged.connect(self._on_scheme)

    def dress(self, theme: Theme) -> None:
        app = self._app
        app.setProperty("specularTheme", theme.name)
        if app.style().name() != "fusion":
            app.setStyle("Fusion")
        app.setPalette(palette(theme))
        app.setFont(ui_font(PX_CONTROL))
        images = Path(self._images.path()) if self._images.isValid() else None
        app.setStyleSheet(stylesheet(theme, images))

    def _on_scheme(self, _scheme: Qt.ColorScheme) -> None:
        if self.follows:
            self.dress(_of_desktop(self._app))


def _application() -> QApplication | None:
    app = QApplication.instance()
    return app if isinstance(app, QApplication) else None


def _of_desktop(app: QApplication | None) -> Theme:
    if app is None:
        return LIGHT
    dark = app.styleHints().colorScheme() == Qt.ColorScheme.Dark
    accessibility = getattr(app.styleHints(), "accessibility", None)  # Qt 6.10 and newer
    preference = getattr(Qt, "ContrastPreference", None)
    if accessibility and preference and accessibility().contrastPreference() == preference.HighContrast:
        return HIGH_CONTRAST_DARK if dark else HIGH_CONTRAST_LIGHT
    return DARK if dark else LIGHT


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
    font.setFamilies([*first, font.family(), *cjk])
    font.setPointSizeF(points(px))
    font.setStyleHint(QFont.StyleHint.Monospace)
    font.setFeature(QFont.Tag("calt"), 0)
    return font
