"""All models that are known here: the user's own, downloads, the starter model, and those in the hub's cache."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from engine.errors import BadSetting, SpecularError
from engine.files import starter
from engine.files.gguf_convert import conversions, conversions_of
from engine.files.resolve import locate
from engine.library.describe import ModelCard, describe
from engine.library.hub_cache import cached_models
from engine.library.shelf import Entry, Origin, Shelf
from engine.library.staging import discard, downloaded, unfinished
from engine.library.this_machine import Machine


def entries(shelf: Shelf, *, hub_cache: Callable[[], tuple[Entry, ...]] = cached_models) -> tuple[Entry, ...]:
    """Every model that is known, each path once: the starter model first, downloads that are not complete last."""
    first = (Entry("starter", Origin.STARTER),) if starter.is_installed() else ()
    found: dict[str, Entry] = {}
    for entry in (*first, *shelf.entries, *downloaded(), *hub_cache(), *unfinished()):
        found.setdefault(entry.path, entry)
    return tuple(found.values())


def cards(found: tuple[Entry, ...], machine: Machine | None) -> list[ModelCard]:
    """What each of them is."""
    return [
        ModelCard(entry, nbytes=folder_bytes(Path(entry.path)), problem="The download is not complete.")
        if entry.origin is Origin.UNFINISHED
        else describe(entry, machine)
        for entry in found
    ]


def add(path: str, machine: Machine | None) -> ModelCard:
    """Put a model of this computer on the list. Raises SpecularError where it could not be loaded."""
    located = locate(path)
    card = describe(Entry(str(located.absolute()), Origin.ADDED), machine)
    if card.problem is not None:
        raise SpecularError(card.problem)
    Shelf().put(card.entry)
    return card


def find(name: str, found: tuple[Entry, ...]) -> Entry:
    """The entry of this name or path. Raises BadSetting where there is none, or several of the name."""
    absolute = str(Path(name).expanduser().absolute())
    by_path = [entry for entry in found if entry.path in (name, absolute)]
    matching = by_path or [entry for entry in found if name in (entry.name, Path(entry.path).stem)]
    if not matching:
        raise BadSetting(f"No model called {name} is on the list; see specular-cli models list.")
    if len(matching) > 1:
        paths = ", ".join(entry.path for entry in matching[:4])
        raise BadSetting(f"{len(matching)} models are called {name}; name one by its path ({paths}).")
    return matching[0]


def deleted_by(entry: Entry) -> str:
    """What removing the entry does, for the question before it: ends a sentence that begins with "This"."""
    if entry.origin in (Origin.DOWNLOADED, Origin.UNFINISHED):
        return f"deletes {folder_bytes(Path(entry.path)) / 1e6:,.0f} MB that were downloaded to {entry.path}"
    if entry.origin is Origin.ADDED:
        return "takes it off the list; its files stay where they are"
    if entry.origin is Origin.STARTER:
        return "deletes the starter model, which can be fetched again"
    return "cannot be done here: it is in the hub's own cache, which hf cache manages"


def remove(entry: Entry) -> None:
    """Take a model off the list, delete its files where they are ours, and what was converted from them.

    Raises BadSetting for a model in the hub's cache, SpecularError where a file cannot be deleted.
    """
    if entry.origin is Origin.HUB_CACHE:
        raise BadSetting(
            f"{entry.name} is in the hub's own cache, which is not ours: hf cache delete removes it there."
        )
    path = starter.starter_path() if entry.origin is Origin.STARTER else Path(entry.path)
    made = conversions_of(path) if path.suffix.lower() == ".gguf" else _conversions_inside(path)
    try:
        if entry.origin is Origin.UNFINISHED:
            discard(path)
        elif entry.origin is Origin.DOWNLOADED and path.exists():
            shutil.rmtree(path)
        elif entry.origin is Origin.STARTER:
            path.unlink(missing_ok=True)
        for folder in made:
            shutil.rmtree(folder)
    except OSError as error:
        raise SpecularError(f"{entry.name} cannot be deleted: {error.strerror or error}.") from error
    if entry.origin is Origin.ADDED:
        Shelf().take(entry.path)


def clear_conversions() -> int:
    """Delete all models that were converted from GGUF files; they are made again when wanted. Returns the bytes.

    Raises SpecularError where one cannot be deleted.
    """
    where, nbytes = conversions(), 0
    try:
        for folder in sorted(where.iterdir()) if where.is_dir() else ():
            if not folder.name.startswith("."):  # one that is being made
                nbytes += folder_bytes(folder)
                shutil.rmtree(folder)
    except OSError as error:
        raise SpecularError(f"The converted models in {where} cannot be deleted: {error.strerror or error}.") from error
    return nbytes


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder, or of a file; what goes meanwhile counts nothing."""
    if folder.is_file():
        return folder.stat().st_size
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def _conversions_inside(folder: Path) -> list[Path]:
    files = [path for path in folder.glob("*.gguf")] if folder.is_dir() else []
    return [made for file in files for made in conversions_of(file)]
