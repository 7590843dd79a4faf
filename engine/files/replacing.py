"""Files that are written in one step: a crash leaves the old file or the new one, never half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write beside `path`, which takes its place once the block has ended and all is on the disk.

    Where anything goes wrong, in the block too, the new file is deleted, the old one stays, and the error goes on;
    what the system refuses is an OSError. The folder must exist.
    """
    handle, part = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def replace_text(path: Path, text: str) -> None:
    """Make `text` the whole of a file, in UTF-8 and with the system's line ends. Raises OSError as `replacing`."""
    with replacing(path) as file:
        file.write(text.replace("\n", os.linesep).encode())
