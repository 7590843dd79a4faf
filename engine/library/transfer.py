"""One file from the hub, byte by byte: stopped at any moment, gone on with from the last byte, checked at the end.

Our own because the hub's library offers no pause within a file; requests go through its session and carry its login.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.errors import LoadCancelled, SpecularError
from engine.library.hub import HubError, told
from engine.library.remote import RemoteFile

STALLED_SECONDS = 30.0
TRIES = 4  # in a row that bring nothing
PAUSE = 1.0  # seconds before the second try; doubled for each further one
PART = ".part"

Cancelled = Callable[[], bool]


def fetch(
    repo: str,
    url: str,
    file: RemoteFile,
    folder: Path,
    arrived: Callable[[int], None],
    cancelled: Cancelled,
    *,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Bring the file into the folder, going on with what is there of it; nothing is done where it is whole.

    arrived: told how many bytes of the file are here. Raises LoadCancelled when `cancelled()` (what arrived stays),
    HubError where it cannot be had, SpecularError where it cannot be written or is not the file it should be.
    """
    target, part = folder / file.name, folder / (file.name + PART)
    if target.is_file() and target.stat().st_size == file.size:
        arrived(file.size)
        return
    failures = 0
    while not part.exists() or _size(part) != file.size:
        there = _size(part)
        try:
            with told(repo):
                _stream(url, part, there if there < file.size else 0, file, arrived, cancelled)
            if _size(part) != file.size:
                raise HubError(f"The hub sent only {_size(part):,} of {file.size:,} bytes of {file.name}.")
        except HubError as error:
            failures = 0 if _size(part) > there else failures + 1
            if failures >= TRIES or not _worth_another_try(error):
                raise
            wait(PAUSE * 2 ** max(0, failures - 1))
    _check(part, file)
    os.replace(part, target)


def _stream(
    url: str, part: Path, begin: int, file: RemoteFile, arrived: Callable[[int], None], stop: Cancelled
) -> None:
    """One request for what is missing, written as it comes."""
    from huggingface_hub.utils import build_hf_headers, get_session

    headers = {**build_hf_headers(library_name="specular"), "Accept-Encoding": "identity"}
    if begin:
        headers["Range"] = f"bytes={begin}-"
    if stop():
        raise LoadCancelled(f"The download of {file.name} was stopped.")
    with get_session().stream("GET", url, headers=headers, timeout=STALLED_SECONDS) as response:
        _refuse_status(response)
        begin = begin if response.status_code == 206 else 0  # a server without ranges sends all of it again
        with _opened(part, begin) as output:
            done = begin
            arrived(done)
            for piece in response.iter_raw():
                _write(output, piece, part)
                done += len(piece)
                arrived(done)
                if stop():
                    raise LoadCancelled(f"The download of {file.name} was stopped.")
            if done > file.size:
                raise SpecularError(f"{file.name} is longer than the hub said it would be.")


def _refuse_status(response: Any) -> None:
    from huggingface_hub.utils import hf_raise_for_status

    if response.status_code >= 400:
        response.read()
    hf_raise_for_status(response)


class _WriteError(SpecularError):
    """The disk refuses, which no further try would help."""


def _opened(part: Path, begin: int) -> Any:
    try:
        output = part.open("r+b" if begin else "wb", buffering=0)
        output.seek(begin)
        output.truncate()
    except OSError as error:
        raise _WriteError(f"{part} cannot be written: {error.strerror or error}.") from error
    return output


def _write(output: Any, piece: bytes, part: Path) -> None:
    try:
        output.write(piece)
    except OSError as error:
        raise _WriteError(f"{part} cannot be written: {error.strerror or error}.") from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _worth_another_try(error: HubError) -> bool:
    """The network may come back; a refusal stays one, except where the hub is overloaded."""
    cause = error.__cause__
    status = getattr(getattr(cause, "response", None), "status_code", None)
    return status is None or status in (408, 429, 500, 502, 503, 504)


def _check(part: Path, file: RemoteFile) -> None:
    """Raises SpecularError, and deletes what was downloaded, where it is not the file that the hub described."""
    if file.sha256 is not None:
        digest, expected = hashlib.sha256(), file.sha256
    elif file.blob is not None:
        digest, expected = hashlib.sha1(f"blob {file.size}\0".encode(), usedforsecurity=False), file.blob
    else:
        return
    with part.open("rb") as data:
        while piece := data.read(1 << 20):
            digest.update(piece)
    if digest.hexdigest() != expected:
        part.unlink()
        raise SpecularError(f"{file.name} arrived damaged (its checksum is wrong): download it again.")
