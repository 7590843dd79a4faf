"""The command that starts the window from wherever the desktop calls it, and the icon that stands for it."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

ROOT = Path(__file__).resolve().parents[2]
DRAWING = ROOT / "assets" / "app.svg"
SIZES = (16, 24, 32, 48, 64, 128, 256)


def command() -> list[str]:
    """Program and arguments, without a file to open.

    `run.py` where the program lies in its own folder: it renews the environment when what it needs has changed, so it
    is run by the Python that the environment was made from. Else the command that the package installed.
    """
    script = ROOT / "run.py"
    if script.is_file():
        return [_windowless(Path(getattr(sys, "_base_executable", "") or sys.executable)), str(script)]
    name = "specular.exe" if sys.platform == "win32" else "specular"
    installed = Path(sys.executable).with_name(name)
    if installed.is_file():
        return [str(installed)]
    return [_windowless(Path(sys.executable)), "-m", "app.main"]


def _windowless(python: Path) -> str:
    """The Python that opens no console, where there are two."""
    quiet = python.with_name("pythonw.exe")
    return str(quiet if sys.platform == "win32" and quiet.is_file() else python)


def icon_image(size: int) -> QImage:
    """The program's icon."""
    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(0)
    painter = QPainter(image)
    QSvgRenderer(QByteArray(DRAWING.read_bytes())).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return image
