"""`specular --install-shortcut` and `--uninstall-shortcut`: which system it is, and what is said of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from app.desktop.launch import command


def install_shortcut(platform: str = sys.platform) -> tuple[bool, str]:
    """Make the shortcut; whether it is there, and a sentence that says where."""
    try:
        made = _installer(platform)(command())
    except OSError as error:
        return False, f"The shortcut could not be made: {_cause(error)}."
    return True, f"Specular is in the menu of your applications: {made[0]}"


def uninstall_shortcut(platform: str = sys.platform) -> tuple[bool, str]:
    """Take the shortcut away; whether that went well, and a sentence."""
    try:
        gone = _uninstaller(platform)()
    except OSError as error:
        return False, f"The shortcut could not be taken away: {_cause(error)}."
    return True, f"The shortcut is gone, {len(gone)} files in all." if gone else "There was no shortcut."


def _installer(platform: str) -> Callable[[Sequence[str]], list[Path]]:
    if platform == "win32":
        from app.desktop import windows

        return windows.install
    if platform == "darwin":
        from app.desktop import mac

        return mac.install
    from app.desktop import linux

    return linux.install


def _uninstaller(platform: str) -> Callable[[], list[Path]]:
    if platform == "win32":
        from app.desktop import windows

        return windows.uninstall
    if platform == "darwin":
        from app.desktop import mac

        return mac.uninstall
    from app.desktop import linux

    return linux.uninstall


def _cause(error: OSError) -> str:
    what = str(error.strerror or error)
    return f"{what} ({error.filename})" if error.filename else what
