"""A file that is there while the program runs. One that is found at a start tells that the run before did not end well.

Python's own fault handler writes into it where every thread stood when the process died; the window writes down what
the engine was doing. Without a folder that can be written the program runs without it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from PySide6.QtCore import QLockFile

from engine.files.paths import data_dir

FILE_NAME = "running.log"
LOCK_NAME = "running.lock"
LOADING = "loading "
KEPT = 5  # reports of earlier crashes
MOST_BYTES = 200_000  # of a report that are read


@dataclass(frozen=True, slots=True)
class Crash:
    """What is left of a run that did not end well."""

    path: Path
    text: str

    @property
    def loading(self) -> str:
        """The model whose load was the last thing noted, or ""."""
        notes = [
            line[line.index("] ") + 2 :] for line in self.text.splitlines() if line.startswith("[") and "] " in line
        ]
        return notes[-1][len(LOADING) :] if notes and notes[-1].startswith(LOADING) else ""


class RunMarker:
    """begin() at the start, end() at the proper end, note() in between. Of several programs over one data folder only
    the first has it."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or data_dir() / "logs"
        self._lock: QLockFile | None = None
        self._file: TextIO | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return self._folder / FILE_NAME

    def begin(self) -> Crash | None:
        """Make the file; what the run before left, if it did not end well."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
        lock = QLockFile(str(self._folder / LOCK_NAME))
        lock.setStaleLockTime(0)  # however long a program runs, its lock holds; that of a dead one does not
        if not lock.tryLock(0):
            return None
        self._lock = lock
        crash = self._left()
        with contextlib.suppress(OSError):
            self._file = self.path.open("w", encoding="utf-8", errors="replace", buffering=1)
            self.note("Specular begins")
            faulthandler.enable(self._file)
        return crash

    def note(self, words: str) -> None:
        """Write down what is being done now."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.write(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {words}\n")

    def abandon(self) -> None:
        """Last resort when the engine thread does not end: write down where every thread stands, then leave at once."""
        for file in (self._file, sys.__stderr__ or sys.stderr):
            if file is not None:
                with contextlib.suppress(OSError, ValueError):
                    faulthandler.dump_traceback(file=file, all_threads=True)
        os._exit(1)

    def end(self) -> None:
        """The run ended well."""
        if self._file is not None:
            faulthandler.disable()
            if sys.__stderr__ is not None:
                with contextlib.suppress(OSError, ValueError):
                    faulthandler.enable(sys.__stderr__)
            with contextlib.suppress(OSError):
                self._file.close()
            with contextlib.suppress(OSError):
                self.path.unlink()
            self._file = None
        if self._lock is not None:
            self._lock.unlock()
            self._lock = None

    def _left(self) -> Crash | None:
        """The file of the run before under another name; older ones go."""
        if not self.path.is_file():
            return None
        kept = self.path.with_name(time.strftime("crash-%Y%m%d-%H%M%S.log"))
        try:
            with self.path.open("rb") as file:
                text = file.read(MOST_BYTES).decode("utf-8", "replace")
            os.replace(self.path, kept)
            for old in sorted(self._folder.glob("crash-*.log"))[:-KEPT]:
                old.unlink()
        except OSError:
            return None
        return Crash(kept, text)
