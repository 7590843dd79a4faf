"""The SVG drawings of `assets/icons`, in any colour."""

from __future__ import annotations

from functools import cache
from pathlib import Path

ICON_FOLDER = Path(__file__).resolve().parent.parent / "assets" / "icons"


@cache
def _drawing(name: str) -> str:
    return (ICON_FOLDER / f"{name}.svg").read_text(encoding="utf-8")


def icon_names() -> list[str]:
    """Every icon there is."""
    return sorted(path.stem for path in ICON_FOLDER.glob("*.svg"))


def svg_source(name: str, color: str) -> bytes:
    """The SVG of an icon with its stroke and fill in `color`. Raises FileNotFoundError for an unknown name."""
    return _drawing(name).replace("currentColor", color).encode()
