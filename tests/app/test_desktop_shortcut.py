"""The desktop's shortcut: written by the desktop's rules into a home of the test's own, and taken away again."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from window_bench import BenchMaker

from app.desktop import launch, linux, mac, shortcut, windows
from app.main import main
from app.settings import AppSettings

COMMAND = ["/opt/a b/python3", '/home/a"d$a/100%/run.py']


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qapp: QApplication) -> Path:
    """A home folder with nothing in it."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def nothing(_: Sequence[str]) -> None:
    """In place of the desktop's tools."""


def read_entry(path: Path) -> configparser.SectionProxy:
    parser = configparser.RawConfigParser(delimiters="=", strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path, encoding="utf-8")
    return parser["Desktop Entry"]


def parsed_exec(line: str) -> list[str]:
    """An Exec line as a desktop reads it: string escapes first, then quotes, then field codes."""
    line = re.sub(r"\\(.)", r"\1", line)
    words = [
        re.sub(r"\\(.)", r"\1", quoted) if quoted else bare
        for quoted, bare in re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line)
    ]
    return [word.replace("%%", "%") for word in words]


# Linux


def test_everything_lies_where_the_desktop_looks_and_goes_again(home: Path) -> None:
    told: list[Sequence[str]] = []
    made = linux.install(COMMAND, told.append)
    data = home / ".local" / "share"
    assert sorted(made) == files_of(home)
    assert data / "applications/specular.desktop" in made and data / "mime/packages/specular.xml" in made
    assert [command[0] for command in told] == [
        "update-mime-database",
        "update-desktop-database",
        "gtk-update-icon-cache",
    ]
    for size in launch.SIZES:
        image = QImage(str(data / f"icons/hicolor/{size}x{size}/apps/specular.png"))
        assert (image.width(), image.height()) == (size, size)
        assert image.pixelColor(size // 2, size // 8).name() == "#5a55d6" and image.pixelColor(0, 0).alpha() < 255
    assert sorted(linux.uninstall(nothing)) == sorted(made)
    assert files_of(home) == [] and linux.uninstall(nothing) == []


def test_the_entry_says_how_to_start_and_what_opens_with_it(home: Path) -> None:
    linux.install(COMMAND, nothing)
    path = home / ".local/share/applications/specular.desktop"
    entry = read_entry(path)
    assert parsed_exec(entry["Exec"]) == [*COMMAND, "%f"]
    assert entry["Name"] == "Specular" and entry["Icon"] == "specular" and entry["Terminal"] == "false"
    assert entry["Comment[zh_CN]"].startswith("自己起草") and entry["StartupWMClass"] == "specular"
    assert set(entry["MimeType"].strip(";").split(";")) == {linux.MODEL_TYPE, linux.CHAT_TYPE, linux.REPLAY_TYPE}
    assert path.stat().st_mode & stat.S_IXUSR
    if shutil.which("desktop-file-validate"):
        subprocess.run(["desktop-file-validate", str(path)], check=True)


def test_the_folders_that_the_user_has_chosen_are_used(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    desk = home / "Schreibtisch"
    desk.mkdir()
    (home / ".config").mkdir()
    (home / ".config/user-dirs.dirs").write_text('# comment\nXDG_DESKTOP_DIR="$HOME/Schreibtisch"\n')
    made = linux.install(COMMAND, nothing)
    assert desk / "specular.desktop" in made and tmp_path / "data/applications/specular.desktop" in made
    (desk / "specular.desktop").write_text("[Desktop Entry]\nName=Another\n")
    linux.uninstall(nothing)
    assert files_of(desk) == [desk / "specular.desktop"], "a file that is not ours stays"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert linux.data_home() == home / ".local/share"


@pytest.mark.skipif(shutil.which("update-mime-database") is None, reason="needs the desktop's tools")
def test_chats_and_replays_are_known_by_how_they_begin(home: Path, tmp_path: Path) -> None:
    linux.install(COMMAND)
    root = ET.parse(linux.types_path()).getroot()
    assert [found.get("type") for found in root] == [linux.MODEL_TYPE, linux.CHAT_TYPE, linux.REPLAY_TYPE]
    samples = {
        "m.gguf": (b"GGUF\x03\0\0\0", linux.MODEL_TYPE),
        "c.json": (b'{"format": "specular-chat", "version": 1}', linux.CHAT_TYPE),
        "r.json": (b'{"format": "specular-replay", "version": 1}', linux.REPLAY_TYPE),
    }
    cache = (linux.data_home() / "mime/magic").read_bytes()
    globs = (linux.data_home() / "mime/globs2").read_text()
    assert f"{linux.MODEL_TYPE}:*.gguf" in globs
    for data, kind in samples.values():
        assert kind.encode() in cache
        assert any(mark in data for mark in (b"GGUF", b"specular-chat", b"specular-replay"))
    demo = launch.ROOT / "assets/demo/starter.json"
    assert b"specular-replay" in demo.read_bytes()[:64]


def test_a_home_that_cannot_be_written_is_said_in_a_sentence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".local").write_text("in the way")
    done, sentence = shortcut.install_shortcut("linux")
    assert not done and sentence.startswith("The shortcut could not be made: Not a directory (")


def test_the_command_line_makes_it_and_takes_it_away(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortcut.sys, "platform", "linux")
    monkeypatch.setattr(linux, "run_quietly", nothing)
    assert main(["--install-shortcut"]) == 0
    assert "Specular is in the menu of your applications: " in capsys.readouterr().out
    assert (home / ".local/share/applications/specular.desktop").is_file()
    assert main(["--uninstall-shortcut"]) == 0
    assert "The shortcut is gone" in capsys.readouterr().out
    assert main(["--uninstall-shortcut"]) == 0
    assert capsys.readouterr().out == "There was no shortcut.\n"


def test_the_command_starts_by_the_script_that_keeps_the_environment() -> None:
    program, script = launch.command()
    assert Path(program).is_file() and Path(script) == launch.ROOT / "run.py"
    result = subprocess.run([program, script, "--help"], capture_output=True, text=True, check=True)
    assert "set up" in result.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("Xvfb") is None or sys.platform != "linux", reason="needs a virtual screen")
def test_the_installed_entry_opens_the_real_window(home: Path, tmp_path: Path) -> None:
    # The environment of the tests stands in for the one that run.py would make.
    linux.install([sys.executable, "-m", "app.main"], nothing)
    words = parsed_exec(read_entry(linux.entry_path())["Exec"])
    picture = tmp_path / "window.png"
    display = f":{90 + os.getpid() % 100}"
    screen = subprocess.Popen(["Xvfb", display, "-screen", "0", "1600x1000x24"], stderr=subprocess.DEVNULL)
    environment = os.environ | {"DISPLAY": display, "QT_QPA_PLATFORM": "xcb", "PYTHONPATH": str(launch.ROOT)}
    try:
        command = [*words[:-1], "--demo", "--smoke", str(picture)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    finally:
        screen.terminate()
        screen.wait()
    if "could not connect to display" in result.stderr or ("xcb" in result.stderr and result.returncode < 0):
        pytest.skip("the system's libraries for X11 are not complete")
    assert result.returncode == 0, result.stderr
    assert QImage(str(picture)).width() >= 1000


# macOS


def test_a_mac_gets_a_command_file(home: Path) -> None:
    (path,) = mac.install(COMMAND)
    assert path == home / "Applications/Specular.command" and path.stat().st_mode & stat.S_IXUSR
    lines = path.read_text().splitlines()
    assert lines[0] == "#!/bin/sh" and lines[1].endswith(' "$@"')
    if os.name == "posix":
        echo = path.read_text().replace("exec ", "printf '%s\\n' ")
        said = subprocess.run(["sh", "-c", echo, "sh", "x y"], capture_output=True, text=True, check=True)
        assert said.stdout.splitlines() == [*COMMAND, "x y"]
    assert mac.uninstall() == [path] and mac.uninstall() == []


# Windows


class Registry:
    """The few calls of winreg that are made, over a dictionary."""

    HKEY_CURRENT_USER, REG_SZ = "HKCU", 1

    def __init__(self) -> None:
        self.keys: dict[str, dict[str, str]] = {}

    class Handle(dict[str, str]):
        def __enter__(self) -> Registry.Handle:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    def CreateKey(self, root: str, key: str) -> Any:
        assert root == "HKCU", "of the present user only"
        return self.keys.setdefault(key, Registry.Handle())

    def SetValueEx(self, handle: dict[str, str], name: str, _: int, kind: int, value: str) -> None:
        assert kind == self.REG_SZ
        handle[name] = value

    def DeleteKey(self, _: str, key: str) -> None:
        if key not in self.keys:
            raise FileNotFoundError
        assert not any(other.startswith(key + "\\") for other in self.keys), "keys with keys inside stay"
        del self.keys[key]

    def DeleteValue(self, handle: dict[str, str], name: str) -> None:
        if name not in handle:
            raise FileNotFoundError
        del handle[name]


def test_windows_gets_links_and_a_type_without_taking_one_over(home: Path) -> None:
    scripts: list[tuple[str, Mapping[str, str]]] = []

    def run(script: str, values: Mapping[str, str]) -> str:
        scripts.append((script, values))
        return "C:\\Start Menu\\Specular.lnk\r\nC:\\Desktop\\Specular.lnk\r\n"

    registry = Registry()
    made = windows.install([r"C:\a b\pythonw.exe", r"C:\a b\run.py"], run, registry)
    script, values = scripts[0]
    assert values["SPECULAR_TARGET"] == r"C:\a b\pythonw.exe" and values["SPECULAR_ARGUMENTS"] == r'"C:\a b\run.py"'
    assert "a b" not in script, "no path is a part of the script"
    assert len(made) == 3 and QImage(str(made[2])).width() == 256
    opened = registry.keys[r"Software\Classes\Specular.Model\shell\open\command"][""]
    assert opened == r'"C:\a b\pythonw.exe" "C:\a b\run.py" %1'.replace("%1", "%1")
    assert registry.keys[r"Software\Classes\.gguf\OpenWithProgids"] == {"Specular.Model": ""}
    assert r"Software\Classes\.gguf" not in registry.keys, "the program that the user has chosen stays"
    gone = windows.uninstall(run, registry)
    assert len(gone) == 3 and not made[2].exists()
    assert {key: value for key, value in registry.keys.items() if value} == {}
    windows.uninstall(lambda *_: "", registry)


def test_a_shell_that_fails_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Any:
        return subprocess.CompletedProcess([], 1, "", "Access is denied.\nAt line:1\n")

    monkeypatch.setattr(windows.subprocess, "run", refuse)
    with pytest.raises(OSError, match="Access is denied"):
        windows.run_script("", {})
    done, sentence = shortcut.install_shortcut("win32")
    assert not done and "Access is denied. (Specular.lnk)" in sentence


# The first run's question


def test_it_is_asked_once_and_done_by_the_banners_button(
    home: Path, benches: BenchMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortcut.sys, "platform", "linux")
    monkeypatch.setattr(linux, "run_quietly", nothing)
    bench = benches()
    bench.window.more_commands.shortcut.ask_once()
    bench.ready()
    assert bench.banner.startswith("Shall Specular be in the menu")
    assert bench.settings.current.shortcut_asked and files_of(home) == []
    bench.window.notices._on_action()
    bench.qtbot.waitUntil(lambda: bench.banner.startswith("Specular is in the menu"), timeout=10_000)
    assert (home / ".local/share/applications/specular.desktop").is_file()
    second = benches(settings=AppSettings(shortcut_asked=True))
    second.window.more_commands.shortcut.ask_once()
    second.ready()
    assert second.banner == ""


def test_it_is_not_asked_while_something_else_is_told(home: Path, benches: BenchMaker) -> None:
    bench = benches(notes=("A setting was put right.",))
    bench.window.more_commands.shortcut.ask_once()
    bench.ready()
    assert bench.banner == "A setting was put right." and not bench.settings.current.shortcut_asked
