"""Where the application keeps its files: data (starter model, history), cache (converted models), settings.

`SPECULAR_DATA_DIR` puts all three below one folder. The functions only name folders; `ensure_folder` makes one, and
is called where something is about to be written, so that a home that cannot be written never stops a start.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import platformdirs

from engine.errors import SpecularError

APP_NAME = "specular"
OVERRIDE = "SPECULAR_DATA_DIR"


def _override(part: str) -> Path | None:
    base = os.environ.get(OVERRIDE)
    return Path(base).expanduser().absolute() / part if base else None


def data_dir() -> Path:
    """The folder of what the user would miss: the starter model, chats."""
    return _override("data") or platformdirs.user_data_path(APP_NAME, appauthor=False)


def cache_dir() -> Path:
    """The folder of what can be made again: converted models, tuning results."""
    return _override("cache") or platformdirs.user_cache_path(APP_NAME, appauthor=False)


def kernel_cache_dir() -> Path:
    """The folder of compiled kernels. They belong to the machine, not to the data, so the override does not move it.

    Falls back to the temporary folder where the user's cache cannot be written: compiled again, never refused.
    """
    try:
        return ensure_folder(platformdirs.user_cache_path(APP_NAME, appauthor=False) / "kernels")
    except SpecularError:
        return Path(tempfile.gettempdir()) / f"{APP_NAME}-kernels"


def config_dir() -> Path:
    """The folder of the settings."""
    return _override("config") or platformdirs.user_config_path(APP_NAME, appauthor=False)


def ensure_folder(folder: Path) -> Path:
    """Make `folder` and its parents; returns it. Raises SpecularError when it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecularError(f"The folder {folder} cannot be made: {error.strerror or error}.") from error
    return folder
