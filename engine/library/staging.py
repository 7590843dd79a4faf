"""Downloads of models: a folder of its own for each, which gets its name when all files are there and whole.

Until then it is a hidden folder with a plan of what it is to hold, so that a download is gone on with after a pause, an
error or a crash, with the commit that it began with.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from engine.errors import ModelFileError, SpecularError
from engine.files.config import read_config
from engine.files.json_file import read_json
from engine.files.paths import data_dir, ensure_folder
from engine.files.replacing import replace_text
from engine.library.hub import address
from engine.library.remote import RemoteFile, RemoteModel
from engine.library.shelf import Entry, Origin
from engine.library.transfer import PART, Cancelled, fetch
from engine.plain_data import Misfit, from_plain, to_plain
from engine.records import LoadProgress

UNFINISHED = ".part-"
PLAN = "download.json"
SPARE = 256 << 20  # bytes of the disk that a download leaves free

Progress = Callable[[LoadProgress], None]


def downloads() -> Path:
    """The folder of all downloaded models."""
    return data_dir() / "models" / "hub"


def folder_of(model: RemoteModel) -> Path:
    """Where the model lies, or will lie."""
    return downloads() / model.name.replace("/", "--")


def staging_of(model: RemoteModel) -> Path:
    """Where it lies until it is complete."""
    target = folder_of(model)
    return target.with_name(UNFINISHED + target.name)


def download(model: RemoteModel, progress: Progress, cancelled: Cancelled) -> Entry:
    """Bring the model's files here, going on with what is there; returns its entry on the list.

    Raises LoadCancelled when `cancelled()`: what arrived stays. Raises SpecularError where the disk has no room, the
    hub cannot be reached, a file is damaged, or the model is of a kind that is not supported.
    """
    target, staging = folder_of(model), staging_of(model)
    entry = Entry(str(target), Origin.DOWNLOADED, model.name)
    if not target.is_dir():
        ensure_folder(staging)
        _check_space(model, staging)
        _write_plan(model, staging)
        _fetch_all(model, staging, progress, cancelled)
        (staging / PLAN).unlink()
        try:
            os.replace(staging, target)
        except OSError as error:
            raise SpecularError(f"{target} cannot be made: {error.strerror or error}.") from error
    return entry


def resumable(repo: str, file: str | None = None) -> RemoteModel | None:
    """The plan of a download of this repository that was begun and is not complete, or None."""
    found = _read_plan(staging_of(RemoteModel(repo, "", (), file)))
    return found if found is not None and (found.repo, found.file) == (repo, file) else None


def _read_plan(staging: Path) -> RemoteModel | None:
    """What the folder is to hold; None where that is not known, or would lie outside of it."""
    try:
        plan = from_plain(RemoteModel, read_json(staging / PLAN), "plan")
    except (ModelFileError, Misfit):
        return None
    return plan if all(Path(file.name).name == file.name != PLAN for file in plan.files) else None


def downloaded() -> tuple[Entry, ...]:
    """Models whose download is complete, by name."""
    folders = sorted(downloads().iterdir()) if downloads().is_dir() else []
    return tuple(
        Entry(str(folder), Origin.DOWNLOADED, folder.name.replace("--", "/"))
        for folder in folders
        if folder.is_dir() and not folder.name.startswith(UNFINISHED)
    )


def unfinished() -> tuple[Entry, ...]:
    """Downloads that were begun and are not complete."""
    found = []
    for staging in sorted(downloads().glob(UNFINISHED + "*")) if downloads().is_dir() else ():
        if (plan := _read_plan(staging)) is not None:
            found.append(Entry(str(staging), Origin.UNFINISHED, plan.name))
    return tuple(found)


def discard(staging: Path) -> None:
    """Delete what arrived of a download. Raises OSError."""
    if staging.parent == downloads() and staging.name.startswith(UNFINISHED):
        shutil.rmtree(staging)


def _fetch_all(model: RemoteModel, staging: Path, progress: Progress, cancelled: Cancelled) -> None:
    before = 0
    for number, file in enumerate(model.files):

        def arrived(count: int, file: RemoteFile = file, number: int = number, before: int = before) -> None:
            what = f"Downloading {file.name}"
            progress(LoadProgress(what, number, len(model.files), before + count, model.nbytes))

        fetch(model.repo, address(model, file), file, staging, arrived, cancelled)
        before += file.size
        if file.name == "config.json":
            _refuse_unsupported(staging)
    progress(LoadProgress("Downloaded", len(model.files), len(model.files), model.nbytes, model.nbytes))


def _refuse_unsupported(staging: Path) -> None:
    """Before the weights come: a model of a kind that could not be loaded is given up, and nothing of it stays."""
    try:
        read_config(staging)
    except ModelFileError:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _check_space(model: RemoteModel, staging: Path) -> None:
    there = sum(_here(staging, file) for file in model.files)
    needed, free = model.nbytes - there, shutil.disk_usage(staging).free
    if needed + SPARE > free:
        if not there:
            shutil.rmtree(staging, ignore_errors=True)
        raise SpecularError(
            f"{model.name} needs {needed / 1e9:.1f} GB more in {staging.parent}, but only {free / 1e9:.1f} GB are free "
            "there."
        )


def _here(staging: Path, file: RemoteFile) -> int:
    """Bytes of the file that have arrived."""
    for path in (staging / file.name, staging / (file.name + PART)):
        if path.is_file():
            return min(path.stat().st_size, file.size)
    return 0


def _write_plan(model: RemoteModel, staging: Path) -> None:
    try:
        replace_text(staging / PLAN, json.dumps(to_plain(model), indent=2))
    except OSError as error:
        raise SpecularError(f"{staging} cannot be written: {error.strerror or error}.") from error
