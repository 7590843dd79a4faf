"""The theme: contrast, palette, following; icons in the theme's colours."""

from __future__ import annotations

import gc

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QFontDatabase, QFontMetricsF, QPalette
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app import icons, theme
from app.svg import icon_names, svg_source
from app.widgets.icon_button import IconButton

ALL = list(theme.THEMES.values())


def luminance(color: str) -> float:
    def linear(value: float) -> float:
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    c = QColor(color)
    return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF())


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("look", ALL, ids=lambda look: look.name)
def test_text_contrast_is_at_least_four_and_a_half(look: theme.Theme) -> None:
    for role in ("text", "text2", "text3", "accent", "ok", "warn", "error", "rejected", "correction", "bonus"):
        assert contrast(getattr(look, role), look.canvas) >= 4.5, role
    assert contrast(look.on_accent, look.accent_bg) >= 4.5
    assert contrast(look.error, look.error_bg) >= 4.5
    if look.washes:
        assert contrast(look.text, look.accepted_wash) >= 7


def test_apply_sets_palette_and_active(qapp: QApplication) -> None:
    for name in ("dark", "light"):
        chosen = theme.apply(qapp, name)
        assert theme.active(qapp) is chosen
        assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(chosen.canvas)
        assert chosen.accent_bg in qapp.styleSheet()


def test_apply_twice_keeps_one_follower(qapp: QApplication) -> None:
    theme.apply(qapp, "system")
    theme.apply(qapp, "light")
    assert len(qapp.findChildren(theme._Keeper)) == 1


def test_unknown_theme_is_refused(qapp: QApplication) -> None:
    with pytest.raises(KeyError):
        theme.apply(qapp, "sepia")


def test_every_icon_draws_in_the_colour_asked_for(qapp: QApplication) -> None:
    for name in icon_names():
        image = icons.pixmap(name, "#ff0000", 16, 2.0).toImage()
        pixels = [image.pixelColor(x, y) for x in range(32) for y in range(32)]
        colors = {pixel.name() for pixel in pixels if pixel.alpha() > 250}
        assert colors == {"#ff0000"}, name


def test_unknown_icon_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        svg_source("no-such-icon", "#000000")


def test_icon_button_changes_colour_with_the_theme(qapp: QApplication, qtbot: QtBot) -> None:
    theme.apply(qapp, "light")
    button = IconButton("stop", "Stop")
    qtbot.addWidget(button)

    def colour() -> str:
        return button.icon().pixmap(16, 16).toImage().pixelColor(8, 8).name()

    assert colour() == theme.LIGHT.text2.lower()
    theme.apply(qapp, "dark")
    assert colour() == theme.DARK.text2.lower()
    assert button.accessibleName() == "Stop"


def test_primary_button_is_painted_in_the_accent(qapp: QApplication, qtbot: QtBot) -> None:
    theme.apply(qapp, "light")
    button = QPushButton("Go")
    button.setProperty("kind", "primary")
    button.resize(120, 32)
    qtbot.addWidget(button)
    assert button.grab().toImage().pixelColor(12, 16).name() == theme.LIGHT.accent_bg.lower()


@pytest.mark.parametrize("dark", [False, True])
def test_high_contrast_is_light_or_dark_as_the_desktop_is(
    qapp: QApplication, dark: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        monkeypatch.setattr(theme, "_is_dark", lambda _: not dark)
        theme.apply(qapp, "contrast")
        assert not theme.active().washes and theme.active().dark is not dark
        monkeypatch.setattr(theme, "_is_dark", lambda _: dark)
        qapp.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Unknown)  # the desktop changes
        assert theme.active().name == ("high-contrast-dark" if dark else "high-contrast-light")
        assert contrast(theme.active().text, theme.active().raised) >= 7
    finally:
        theme.apply(qapp, "light")


def test_code_is_set_in_a_font_of_one_width(qapp: QApplication) -> None:
    """Where the system's name for its fixed font is no font, and wide letters of another would stand in."""
    if not any(QFontDatabase.isFixedPitch(family) for family in QFontDatabase.families()):
        pytest.skip("there is no such font here")
    metrics = QFontMetricsF(theme.mono_font(13))
    assert metrics.horizontalAdvance("iiii") == pytest.approx(metrics.horizontalAdvance("MMMM"))


def test_no_widget_is_collected_while_qt_tells_all_of_them(qapp: QApplication, qtbot: QtBot) -> None:
    seen: list[bool] = []

    class Told(QWidget):
        def changeEvent(self, event: QEvent) -> None:
            seen.append(gc.isenabled())
            super().changeEvent(event)

    widget = Told()
    qtbot.addWidget(widget)
    widget.ensurePolished()
    seen.clear()
    theme.apply(qapp, "dark")
    theme.apply(qapp, "light")
    assert seen and not any(seen)
    assert gc.isenabled()
