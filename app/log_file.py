"""The log of the program: one small file in the data folder, with the one before it, and how to read its end."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

from engine.files.paths import data_dir

FILE_NAME = "specular.log"
MOST_BYTES = 512 * 1024
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_path() -> Path:
    """The file."""
    return data_dir() / "logs" / FILE_NAME


@contextmanager
def logging_to_file(path: Path | None = None) -> Iterator[None]:
    """While entered, what is logged goes to the file too. Where it cannot be written the program does without."""
    path = path or log_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(path, maxBytes=MOST_BYTES, backupCount=1, encoding="utf-8", delay=True)
        handler.stream = handler._open()
    except OSError:
        yield
        return
    handler.setFormatter(logging.Formatter(FORMAT))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(min(level, logging.INFO))
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        handler.close()


def end_of_log(path: Path | None = None, most: int = 200_000) -> str:
    """The last `most` bytes of the log, from the beginning of a line; a sentence in brackets where there is none."""
    path = path or log_path()
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - most))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"({error.strerror or error})"
    return text if size <= most else text.partition("\n")[2]
