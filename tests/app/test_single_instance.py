"""One window a user: a second start is told to the first, with what it was to open; files given to the window."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalServer, QLocalSocket
from pytestqt.qtbot import QtBot
from window_bench import BenchMaker

from app import main as app_main
from app.opening import Opening
from app.single_instance import SingleInstance, instance_name
from app.states import HostState

ROOT = Path(app_main.__file__).parents[1]
BEGIN = """
import os, sys
from PySide6.QtCore import QCoreApplication
from app.single_instance import SingleInstance
application = QCoreApplication([])
instance = SingleInstance(sys.argv[1])
code = 10 if instance.begin(sys.argv[2]) else 20
"""
SECOND = BEGIN + "sys.exit(code)"
CRASH = BEGIN + "os._exit(code)"


def name(folder: Path) -> str:
    return str(folder / "socket")


def second_start(place: str, path: str) -> int:
    command = [sys.executable, "-c", SECOND, place, path]
    return subprocess.run(command, cwd=ROOT, timeout=60, check=False).returncode


@pytest.fixture
def first(tmp_path: Path, qtbot: QtBot) -> SingleInstance:
    instance = SingleInstance(name(tmp_path))
    assert instance.begin("")
    yield instance
    instance.end()


def test_a_second_start_hands_over_and_leaves(first: SingleInstance, tmp_path: Path, qtbot: QtBot) -> None:
    asked: list[str] = []
    first.asked.connect(asked.append)
    codes: list[int] = []
    starting = threading.Thread(target=lambda: codes.append(second_start(name(tmp_path), "/models/模型 x.gguf")))
    starting.start()
    qtbot.waitUntil(lambda: bool(codes), timeout=60_000)
    starting.join()
    assert codes == [20] and asked == ["/models/模型 x.gguf"]


def test_the_next_start_after_the_first_has_ended_is_a_first_one(first: SingleInstance, tmp_path: Path) -> None:
    first.end()
    assert second_start(name(tmp_path), "") == 10


@pytest.mark.skipif(sys.platform == "win32", reason="pipes leave no file behind")
def test_a_socket_that_a_crash_left_is_in_nobodys_way(tmp_path: Path, qtbot: QtBot) -> None:
    assert subprocess.run([sys.executable, "-c", CRASH, name(tmp_path), ""], cwd=ROOT).returncode == 10
    assert Path(name(tmp_path)).exists(), "it is left behind"
    instance = SingleInstance(name(tmp_path))
    assert instance.begin("")
    instance.end()


def test_a_first_instance_that_hangs_does_not_keep_others_from_starting(
    tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.single_instance.WAIT_MS", 50)
    deaf = QLocalServer()
    assert deaf.listen(name(tmp_path))
    instance = SingleInstance(name(tmp_path))
    assert instance.begin("")
    instance.end()
    deaf.close()


@pytest.mark.parametrize("noise", [b"hello\n", b"{}\n", b"[1]\n", b'{"open"', b"x" * 100_000])
def test_noise_is_not_an_order(first: SingleInstance, tmp_path: Path, qtbot: QtBot, noise: bytes) -> None:
    asked: list[str] = []
    first.asked.connect(asked.append)
    socket = QLocalSocket()
    socket.connectToServer(name(tmp_path))
    assert socket.waitForConnected(2000)
    socket.write(noise)
    socket.flush()
    if noise.endswith(b"\n") or len(noise) > 1000:
        qtbot.waitUntil(lambda: socket.state() == QLocalSocket.LocalSocketState.UnconnectedState, timeout=5000)
    socket.abort()
    assert asked == []


def test_each_data_folder_has_an_instance_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECULAR_DATA_DIR", str(tmp_path / "one"))
    one = instance_name()
    monkeypatch.setenv("SPECULAR_DATA_DIR", str(tmp_path / "two"))
    assert instance_name() != one and len(instance_name()) < 100
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert Path(instance_name()).parent == tmp_path


# What is opened


def test_a_model_is_loaded_a_replay_played_a_chat_taken_in_and_the_rest_refused(
    benches: BenchMaker, tmp_path: Path
) -> None:
    bench = benches()
    opening = Opening(bench.window)
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF")
    bench.window.show_settings()
    opening.open(str(model))
    bench.reach(HostState.READY)
    assert bench.engine.loads == [(str(model), None)] and not bench.window.in_settings
    opening.open(str(ROOT / "assets/demo/starter.json"))
    assert bench.window.replays.replay is not None
    bench.window.replays.pause()
    other = tmp_path / "notes.txt"
    other.write_text("x")
    opening.open(str(other))
    assert bench.banner == f"{other} is no model, chat or replay that Specular can open."
    broken = tmp_path / "chat.json"
    broken.write_text('{"format": "specular-chat", "version": 99}')
    taken: list[Path] = []
    bench.window.shelf.take_in = taken.append  # type: ignore[method-assign]
    opening.open(str(broken))
    assert taken == [broken]


def test_a_second_start_brings_the_window_to_the_front(benches: BenchMaker) -> None:
    bench = benches()
    opening = Opening(bench.window)
    bench.window.showMinimized()
    opening.come("")
    assert not bench.window.isMinimized() and bench.window.isVisible()
