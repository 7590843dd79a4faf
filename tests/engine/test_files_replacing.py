"""Files that are written in one step: the new one whole, or the old one untouched and nothing beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.files.replacing import replace_text, replacing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "kept.json"
    target.write_bytes(b"old")
    return target


def only(path: Path) -> bool:
    """Whether nothing else lies in the file's folder."""
    return [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_new_file_takes_the_place_of_the_old_one_when_the_block_ends(path: Path) -> None:
    with replacing(path) as file:
        file.write(b"n")
        file.flush()
        assert path.read_bytes() == b"old"
        file.write(b"ew")
    assert path.read_bytes() == b"new" and only(path)


def test_a_file_that_was_not_there_is_made(tmp_path: Path) -> None:
    replace_text(tmp_path / "first", "γ\n")
    assert (tmp_path / "first").read_bytes() == "γ".encode() + os.linesep.encode() and only(tmp_path / "first")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("no"), KeyboardInterrupt()])
def test_an_error_in_the_block_leaves_the_old_file_alone(path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, replacing(path) as file:
        file.write(b"half")
        raise error
    assert raised.value is error
    assert path.read_bytes() == b"old" and only(path)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_system_that_refuses_leaves_the_old_file_alone(
    path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, refuse)
    with pytest.raises(OSError, match="No space left on device"):
        replace_text(path, "new")
    assert path.read_bytes() == b"old" and only(path)


def test_a_text_that_is_no_unicode_leaves_the_old_file_alone(path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        replace_text(path, "\ud800")
    assert path.read_bytes() == b"old" and only(path)


def test_a_folder_that_is_not_there_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_text(tmp_path / "missing" / "file", "new")


def test_importing_it_is_light() -> None:
    code = "import sys, engine.files.replacing; print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
