"""What the window knows of the models of this computer, and what it has done with them: list, add, remove, download."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from app.known_model import HubName, KnownModel, known_model
from app.models_process import ModelsProcess

RATE_SECONDS = 5.0  # over which a download's speed is told


class Phase(Enum):
    """Where a download stands."""

    IDLE = "idle"
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Download:
    """The download that is shown. what: its step. rate: bytes a second, None until it can be told. sentence: why it
    ended, where it did not go well."""

    name: HubName | None = None
    phase: Phase = Phase.IDLE
    what: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    rate: float | None = None
    sentence: str = ""


class ModelLibrary(QObject):
    """listed(models) when the list has been read; failed(sentence) when something could not be done; told(sentence)
    when something was; download_changed(download)."""

    listed = Signal(object)
    failed = Signal(str)
    told = Signal(str)
    download_changed = Signal(object)

    def __init__(self, parent: QObject | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(parent)
        self.download = Download()
        self.models: tuple[KnownModel, ...] = ()
        self._clock = clock
        self._waiting: deque[tuple[str, ...]] = deque()
        self._found: list[KnownModel] = []
        self._now: tuple[str, ...] = ()
        self._seen: deque[tuple[float, int]] = deque()
        self._cancelled: HubName | None = None
        self._task = ModelsProcess(self)
        self._task.said.connect(self._on_said)
        self._task.ended.connect(self._on_ended)
        self._fetch = ModelsProcess(self)
        self._fetch.said.connect(self._on_progress)
        self._fetch.ended.connect(self._on_fetched)

    @property
    def busy(self) -> bool:
        """Whether anything but a download is under way."""
        return self._task.running or bool(self._waiting)

    @Slot()
    def refresh(self) -> None:
        """Read the list anew."""
        if ("list", "--json") not in self._waiting:
            self._ask("list", "--json")

    @Slot(str)
    def add(self, path: str) -> None:
        """Put a folder or file of this computer on the list."""
        self._ask("add", path, "--json")

    @Slot(str)
    def remove(self, path: str) -> None:
        """Take the model of this path off the list; files of downloads are deleted. The user has been asked."""
        self._ask("remove", path, "--yes", "--json")

    @Slot()
    def clear_cache(self) -> None:
        """Delete what was converted from GGUF files."""
        self._ask("clear-cache", "--yes", "--json")

    def fetch(self, name: HubName) -> None:
        """Download a model, or go on with it; one at a time."""
        if self._fetch.running:
            return
        same = name == self.download.name
        done, total = (self.download.done_bytes, self.download.total_bytes) if same else (0, 0)
        self._seen.clear()
        self._show(Download(name, Phase.RUNNING, "", done, total))
        self._fetch.start("add", name.repo, *(("--file", name.file) if name.file else ()), "--json")

    @Slot()
    def pause(self) -> None:
        """Stop the running download; what arrived stays."""
        if self._fetch.running:
            self._fetch.kill()
            self._show(replace(self.download, phase=Phase.PAUSED, rate=None))
            self.refresh()

    @Slot()
    def resume(self) -> None:
        """Go on with the download that is shown."""
        if self.download.name is not None and self.download.phase in (Phase.PAUSED, Phase.FAILED):
            self.fetch(self.download.name)

    @Slot()
    def cancel(self) -> None:
        """Give the download up and delete what arrived of it."""
        name = self.download.name
        self._fetch.kill()
        self._show(Download())
        if name is not None:
            self._cancelled = name
            self._ask("remove", name.shown, "--yes", "--json")

    def close(self) -> None:
        """End what is running; a download can be gone on with another day."""
        self._waiting.clear()
        self._task.kill()
        self._fetch.kill()

    def _ask(self, *arguments: str) -> None:
        self._waiting.append(arguments)
        self._next()

    def _next(self) -> None:
        if self._waiting and not self._task.running:
            self._now = self._waiting.popleft()
            self._found = []
            self._task.start(*self._now)

    @Slot(object)
    def _on_said(self, values: dict[str, Any]) -> None:
        if "freed_bytes" in values:
            words = self.tr("{size} MB were freed.")
            self.told.emit(words.replace("{size}", f"{int(values['freed_bytes']) / 1e6:,.0f}"))
        elif "name" in values:
            self._found.append(known_model(values))

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        command = self._now[0]
        if command == "list":
            self.models = tuple(self._found)
            if not sentence:
                self.listed.emit(self.models)
        if sentence and not (command == "remove" and self._was_cancelled()):
            self.failed.emit(sentence)
        if command in ("add", "remove"):
            self.refresh()
        self._next()

    def _was_cancelled(self) -> bool:
        """Whether a removal was that of a cancelled download, of which there may be nothing to remove."""
        cancelled, self._cancelled = self._cancelled, None
        return cancelled is not None and cancelled.shown == self._now[1]

    @Slot(object)
    def _on_progress(self, values: dict[str, Any]) -> None:
        if "what" in values:
            done, total = int(values["done_bytes"]), int(values["bytes"])
            rate = self._rate(done)
            self._show(replace(self.download, what=str(values["what"]), done_bytes=done, total_bytes=total, rate=rate))
        elif "download" in values:
            self._show(replace(self.download, total_bytes=int(values["bytes"])))

    def _rate(self, done: int) -> float | None:
        """Bytes a second over the last seconds."""
        now = self._clock()
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[0][0] > RATE_SECONDS:
            self._seen.popleft()
        began, first = self._seen[0]
        return (done - first) / (now - began) if now > began else None

    @Slot(str)
    def _on_fetched(self, sentence: str) -> None:
        phase = Phase.FAILED if sentence else Phase.DONE
        self._show(replace(self.download, phase=phase, rate=None, sentence=sentence))
        self.refresh()

    def _show(self, download: Download) -> None:
        self.download = download
        self.download_changed.emit(download)
