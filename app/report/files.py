"""The three files of a report, written side by side: page, picture and replay."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from app.report.page import page
from app.report.picture import picture
from engine.errors import RecordingError
from engine.recording import Recording, to_json, write_whole

PAGE, PICTURE, REPLAY = ".html", ".png", ".json"


def base_of(chosen: Path) -> Path:
    """The path without the ending of any of the three files."""
    return chosen.with_suffix("") if chosen.suffix.lower() in (PAGE, PICTURE, REPLAY) else chosen


def write_report(chosen: Path, recording: Recording, *, keep_ghosts: bool, made: datetime) -> tuple[Path, ...]:
    """Write the report under the name of `chosen`; its files.

    A page of that name is replaced with all its files. Raises RecordingError where a file cannot be written, and
    before anything is written where another file would be replaced that is no part of an earlier report.
    """
    base = base_of(chosen)
    paths = tuple(base.with_name(base.name + ending) for ending in (PAGE, PICTURE, REPLAY))
    if not paths[0].exists():
        for path in paths[1:]:
            if path.exists():
                raise RecordingError(f"{path} is already there and was kept: choose another name for the report.")
    data = (
        page(recording, made).encode(),
        picture(recording, keep_ghosts=keep_ghosts),
        to_json(recording).encode(),
    )
    for path, content in zip(paths, data, strict=True):
        write_whole(path, content)
    return paths
