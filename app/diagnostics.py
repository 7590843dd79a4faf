"""What helps whoever looks into a fault: versions, machine, model, settings, the log's end. No personal path in it."""

from __future__ import annotations

import getpass
import os
import platform
import re
import socket
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import PySide6

from app.settings import AppSettings, default_of, names
from engine.records import ModelInfo

PACKAGES = ("specular", "PySide6-Essentials", "torch", "numpy", "numba", "triton", "pyqtgraph", "tokenizers")
PRIVATE = ("model", "recent_models", "system_prompt", "window_geometry")
LOG_LINES = 80
KEPT = ("site-packages", "dist-packages", "app", "engine", "assets", "tests")  # a path from here on names no one
ABSOLUTE = re.compile(r"(?<![\w./\\])(?:~|[A-Za-z]:)?[\\/](?:[^\s\\/:*?\"'<>|]+[\\/])+[^\s\\/:*?\"'<>|,;)]*")


def diagnostics(settings: AppSettings, info: ModelInfo | None, log: str, *, lines: int | None = None) -> str:
    """All of it as text, with so many of the log's last lines, `LOG_LINES` by default."""
    parts = [*_machine(), "", *_model(info), "", *_changed(settings), "", "Log:"]
    parts += log.splitlines()[-(lines or LOG_LINES) :] or ["(empty)"]
    return scrubbed("\n".join(parts)) + "\n"


def scrubbed(text: str) -> str:
    """The text without home folder, user and computer names, and with the last part only of other paths."""
    home = str(Path.home())
    if len(home) > 1:
        text = text.replace(home, "~").replace(home.replace("\\", "/"), "~")
    text = ABSOLUTE.sub(_short, text)
    for name, word in ((_user(), "<user>"), (socket.gethostname(), "<computer>")):
        if len(name) > 2:
            text = re.sub(rf"\b{re.escape(name)}\b", word, text)
    return text


def _short(found: re.Match[str]) -> str:
    parts = re.split(r"[\\/]", found.group(0))
    kept = [number for number, part in enumerate(parts) if part in KEPT]
    return "…/" + "/".join(parts[kept[-1] if kept else -1 :])


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name in the environment, and none for the number
        return ""


def _machine() -> Iterable[str]:
    yield f"System: {platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores"
    yield f"Python: {platform.python_version()}, Qt: {PySide6.__version__}"
    yield "Packages: " + ", ".join(f"{name} {_version(name)}" for name in PACKAGES)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _model(info: ModelInfo | None) -> Iterable[str]:
    if info is None:
        yield "Model: none"
        return
    yield f"Model: {info.name}, {info.family}, {info.layers} layers × {info.hidden_size}, {info.weights_dtype}"
    yield f"Device: {info.device}, kernels {info.kernels}, context {info.context:,}"
    yield f"Weights: {info.weights_bytes:,} bytes, draft {info.draft_bytes:,} bytes, recipe {info.recipe}"
    for note in info.notes:
        yield f"Note: {note}"


def _changed(settings: AppSettings) -> Iterable[str]:
    """Settings that are not the default; of what is personal only that it was set."""
    changed = [name for name in names() if getattr(settings, name) != default_of(name)]
    shown = (f"{name} (set)" if name in PRIVATE else f"{name} = {getattr(settings, name)!r}" for name in changed)
    yield "Changed settings: " + (", ".join(shown) or "none")
