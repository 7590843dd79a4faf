"""The file of a run: gone after a proper end, found after any other, with what the process still said."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.run_marker import KEPT, LOADING, RunMarker

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _own_fault_handler() -> Iterator[None]:
    """What pytest has its faults written to stays."""
    enabled = faulthandler.is_enabled()
    yield
    if enabled and sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)


def dying(folder: Path, last: str) -> None:
    """A process that begins a run and ends it in some way."""
    code = (
        "import sys, os, signal, faulthandler; from pathlib import Path; from app.run_marker import RunMarker\n"
        "marker = RunMarker(Path(sys.argv[1])); marker.begin(); marker.note('ready')\n" + last
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code, str(folder)], env=environment, capture_output=True, timeout=60)


def test_after_a_proper_end_nothing_is_left(tmp_path: Path) -> None:
    marker = RunMarker(tmp_path / "logs")
    assert marker.begin() is None and marker.path.is_file()
    marker.end()
    assert list((tmp_path / "logs").iterdir()) == []
    assert marker.begin() is None
    marker.end()


@pytest.mark.skipif(not hasattr(signal, "SIGSEGV"), reason="other systems die otherwise")
def test_a_crash_is_found_with_where_the_program_stood(tmp_path: Path) -> None:
    dying(tmp_path, "def inner(): faulthandler._sigsegv()\ninner()")
    marker = RunMarker(tmp_path)
    crash = marker.begin()
    assert crash is not None and crash.path.name.startswith("crash-") and crash.path.is_file()
    assert "Segmentation fault" in crash.text and "in inner" in crash.text and "] ready" in crash.text
    assert crash.loading == ""
    marker.end()
    assert marker.begin() is None, "told once"
    marker.end()


@pytest.mark.parametrize("last", ["os.kill(os.getpid(), 9)", "marker.abandon()", "os._exit(3)"])
def test_every_other_end_is_found_too(tmp_path: Path, last: str) -> None:
    dying(tmp_path, f"marker.note('{LOADING}/models/a b.gguf')\n{last}")
    marker = RunMarker(tmp_path)
    crash = marker.begin()
    marker.end()
    assert crash is not None and crash.loading == "/models/a b.gguf"
    assert ("most recent call first" in crash.text) is ("abandon" in last)


def test_a_second_program_leaves_the_marker_of_the_first_alone(tmp_path: Path) -> None:
    first, second = RunMarker(tmp_path), RunMarker(tmp_path)
    assert first.begin() is None and second.begin() is None
    second.note("mine")
    second.end()
    assert "mine" not in first.path.read_text()
    first.end()
    assert list(tmp_path.iterdir()) == []


def test_the_last_few_reports_are_kept(tmp_path: Path) -> None:
    for day in range(9):
        (tmp_path / f"crash-2026010{day}-000000.log").write_text("old")
    (tmp_path / "running.log").write_bytes(b"[x] \xff broken \x00\n")
    marker = RunMarker(tmp_path)
    crash = marker.begin()
    marker.end()
    assert crash is not None and "\ufffd broken" in crash.text
    assert len(list(tmp_path.glob("crash-*.log"))) == KEPT and crash.path.is_file()


def test_without_a_folder_the_program_runs_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    marker = RunMarker(tmp_path / "file" / "logs")
    assert marker.begin() is None
    marker.note("ready")
    marker.end()


def test_a_marker_that_cannot_be_moved_does_not_stop_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "running.log").write_text("[x] ready\n")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    marker = RunMarker(tmp_path)
    assert marker.begin() is None
    marker.end()
