"""The one application stylesheet: shape of the standard controls in the colours of a theme.

Kept small: Fusion and the palette do the rest. A button's look is its dynamic property `kind`: "primary" (one a
view), "secondary" (the default) or "ghost" (no frame until hovered).
"""

from __future__ import annotations

from pathlib import Path
from string import Template

from app.colours import Theme
from app.svg import svg_source

_CONTROLS = Template("""
QPushButton, QToolButton { border: 1px solid $line2; border-radius: 6px; padding: 5px 12px; background: $input;
  color: $text; }
QPushButton:hover, QToolButton:hover { background: $hover; }
QPushButton:pressed, QToolButton:pressed { background: $raised; }
QPushButton:focus, QToolButton:focus { border: 2px solid $accent; padding: 4px 11px; }
QPushButton:disabled, QToolButton:disabled { color: $text3; border-color: $line; }
QPushButton[kind="primary"] { background: $accent_bg; color: $on_accent; border: 1px solid $accent_bg;
  font-weight: 500; }
QPushButton[kind="primary"]:hover { background: $primary_hover; border-color: $primary_hover; }
QPushButton[kind="primary"]:focus { border: 2px solid $text; }
QPushButton[kind="primary"]:disabled { background: $raised; color: $text3; border-color: $raised; }
QPushButton[kind="ghost"], QToolButton { background: transparent; border: 1px solid transparent; color: $text2; }
QToolButton { padding: 5px; }
QToolButton:disabled { border-color: transparent; }
QToolButton:focus { padding: 4px; border: 2px solid $accent; }
QToolButton[square="true"], QToolButton[square="true"]:focus { padding: 0; }
QPushButton[kind="ghost"]:hover, QToolButton:hover { background: $hover; color: $text; }
QToolButton:checked { background: $raised; color: $text; }
QPushButton[kind="ghost"] { padding: 5px 8px; }
QPushButton[kind="ghost"]:focus { border: 2px solid $accent; padding: 4px 7px; }
QToolButton::menu-indicator, QPushButton::menu-indicator { image: none; width: 0; }
QLineEdit { background: $input; border: 1px solid $line2; border-radius: 6px;
  padding: 5px 8px; selection-background-color: $accent_bg; selection-color: $on_accent; }
QPlainTextEdit[kind="field"] { background: $input; border: 1px solid $line2; border-radius: 6px; padding: 4px; }
QLineEdit:focus { border: 2px solid $accent; padding: 4px 7px; }
QPlainTextEdit[kind="field"]:focus { border: 2px solid $accent; padding: 3px; }
QSlider:horizontal { min-height: 20px; }
QSlider::groove:horizontal { height: 4px; border-radius: 2px; background: $line2; }
QSlider::sub-page:horizontal { height: 4px; border-radius: 2px; background: $accent_bg; }
QSlider::handle:horizontal { width: 14px; height: 14px; margin: -6px 0; border-radius: 8px; background: $on_accent;
  border: 1px solid $line2; }
QSlider::handle:horizontal:focus { border: 2px solid $accent; width: 12px; height: 12px; }
QSlider::sub-page:horizontal:disabled { background: $line2; }
QScrollBar:vertical { width: 10px; background: transparent; margin: 0; }
QScrollBar:horizontal { height: 10px; background: transparent; margin: 0; }
QScrollBar::handle { background: $line2; border-radius: 3px; margin: 2px; }
QScrollBar::handle:vertical { min-height: 32px; }
QScrollBar::handle:horizontal { min-width: 32px; }
QScrollBar::handle:hover { background: $text3; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QToolTip { background: $input; color: $text; border: 1px solid $line2; padding: 4px 6px; }
QMenu { background: $input; color: $text; border: 1px solid $line2; border-radius: 8px; padding: 4px; }
QMenu::item { padding: 6px 12px; border-radius: 6px; }
QMenu::item:selected { background: $hover; }
QMenu::item:disabled { color: $text3; }
QMenu::separator { height: 1px; background: $line; margin: 4px 8px; }
QProgressBar { background: $line; border: none; border-radius: 2px; max-height: 4px; text-align: center; }
QProgressBar::chunk { background: $accent_bg; border-radius: 2px; }
QSplitter::handle { background: $line; }
""")

_WITH_IMAGES = Template("""
QComboBox, QAbstractSpinBox { background: $input; border: 1px solid $line2; border-radius: 6px; padding: 5px 8px; }
QComboBox:hover { background: $hover; }
QComboBox:focus, QAbstractSpinBox:focus { border: 2px solid $accent; padding: 4px 7px; }
QComboBox:disabled, QAbstractSpinBox:disabled { color: $text3; border-color: $line; }
QComboBox::drop-down { border: none; width: 24px; }
QComboBox::down-arrow { image: url("$down"); width: 16px; height: 16px; }
QComboBox QAbstractItemView { background: $input; border: 1px solid $line2; border-radius: 6px; padding: 4px;
  outline: 0; selection-background-color: $hover; selection-color: $text; }
QAbstractSpinBox QLineEdit, QComboBox QLineEdit { border: none; padding: 0; background: transparent; }
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { border: none; width: 20px; background: transparent; }
QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover { background: $hover; }
QAbstractSpinBox::up-arrow { image: url("$up"); width: 12px; height: 12px; }
QAbstractSpinBox::down-arrow { image: url("$down"); width: 12px; height: 12px; }
QCheckBox { spacing: 8px; }
QCheckBox::indicator { width: 14px; height: 14px; border: 1px solid $text3; border-radius: 4px; background: $input; }
QCheckBox::indicator:checked { background: $accent_bg; border-color: $accent_bg; image: url("$check"); }
QCheckBox::indicator:focus { border: 2px solid $accent; width: 12px; height: 12px; }
QCheckBox::indicator:checked:focus { border: 2px solid $text; }
QCheckBox::indicator:disabled { border-color: $line2; background: $surface; }
""")


def stylesheet(theme: Theme, images: Path | None) -> str:
    """The stylesheet of a theme. images: a folder for arrows and ticks; None leaves combos and the like to Fusion."""
    colors = {name: value for name in theme.__slots__ if isinstance(value := getattr(theme, name), str)}
    colors["primary_hover"] = theme.color("accent_bg").lighter(112).name()
    text = _CONTROLS.substitute(colors)
    if images is not None:
        drawings = {
            "down": ("chevron-down", theme.text2),
            "up": ("chevron-up", theme.text2),
            "check": ("check", theme.on_accent),
        }
        paths = {key: _write(images, theme, name, color) for key, (name, color) in drawings.items()}
        text += _WITH_IMAGES.substitute(colors, **paths)
    return text


def _write(folder: Path, theme: Theme, name: str, color: str) -> str:
    path = folder / f"{name}-{theme.name}.svg"
    path.write_bytes(svg_source(name, color))
    return path.as_posix()
