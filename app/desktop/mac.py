"""The shortcut on macOS: a command file in the user's applications, which opens with a double click."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from engine.files.replacing import replace_text

FILE_NAME = "Specular.command"


def command_path() -> Path:
    """The file."""
    return Path.home() / "Applications" / FILE_NAME


def install(command: Sequence[str]) -> list[Path]:
    """Write the file. Raises OSError."""
    path = command_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    path.chmod(0o755)
    return [path]


def uninstall() -> list[Path]:
    """Take the file away; what was there. Raises OSError."""
    path = command_path()
    if not path.exists():
        return []
    path.unlink()
    return [path]
