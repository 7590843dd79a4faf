"""`specular-cli models add OWNER/NAME`: a download with its progress, stopped by Ctrl+C, gone on with by itself."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path

from engine.cli.session import StatusLine
from engine.errors import LoadCancelled
from engine.library.hub import find_remote
from engine.library.remote import RemoteModel
from engine.library.shelf import Entry
from engine.library.staging import download, resumable
from engine.records import LoadProgress

REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
EVERY = 0.2  # seconds between two lines of progress


def is_repository(model: str) -> bool:
    """Whether it names a repository of the hub: OWNER/NAME, where nothing of that path is here."""
    return REPOSITORY.fullmatch(model) is not None and not Path(model).expanduser().exists()


def add_from_hub(options: argparse.Namespace) -> Entry:
    """Download the model that the options name, or go on with it; returns its entry.

    Raises SpecularError with a sentence, LoadCancelled after Ctrl+C: what arrived stays.
    """
    model = None if options.revision else resumable(options.model, options.file)
    going_on = model is not None
    if model is None:
        model = find_remote(options.model, options.file, options.revision)
    show = _Lines(model) if options.json else _Status(model, going_on)
    try:
        return download(model, show.step, lambda: False)
    except KeyboardInterrupt:
        again = f"specular-cli models add {model.repo}" + (f" --file {model.file}" if model.file else "")
        print(f"{again} goes on with the download.", file=sys.stderr)
        raise LoadCancelled("The download was stopped.") from None
    finally:
        show.end()


class _Status:
    """Progress on one line of a terminal, with the speed."""

    def __init__(self, model: RemoteModel, going_on: bool) -> None:
        self._line = StatusLine()
        self._began = time.monotonic()
        self._first: int | None = None
        verb = "Going on with" if going_on else "Downloading"
        print(f"{verb} {model.name}: {len(model.files)} files, {model.nbytes / 1e6:,.1f} MB.", file=sys.stderr)

    def step(self, progress: LoadProgress) -> None:
        """Show how far it is."""
        if self._first is None:
            self._first = progress.done_bytes
        rate = (progress.done_bytes - self._first) / max(time.monotonic() - self._began, 1e-6)
        done, total = progress.done_bytes / 1e6, progress.total_bytes / 1e6
        self._line.show(f"{progress.what}: {done:,.1f} of {total:,.1f} MB, {rate / 1e6:.1f} MB/s")

    def end(self) -> None:
        """Leave the terminal's line clean."""
        self._line.clear()


class _Lines:
    """Progress as lines of JSON, a few a second."""

    def __init__(self, model: RemoteModel) -> None:
        self._next = 0.0
        self._print({"download": model.name, "files": len(model.files), "bytes": model.nbytes})

    def step(self, progress: LoadProgress) -> None:
        """Print how far it is, unless that was done just now."""
        now = time.monotonic()
        if now >= self._next or progress.done == progress.total:
            self._next = now + EVERY
            self._print({"what": progress.what, "done_bytes": progress.done_bytes, "bytes": progress.total_bytes})

    def end(self) -> None:
        """Nothing is left to tidy."""

    def _print(self, values: dict[str, object]) -> None:
        print(json.dumps(values), flush=True)
