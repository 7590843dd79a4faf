"""Shortcut, icons and file types on Linux, by the desktop's own rules: XDG base folders, entries, icons, MIME types."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from app.desktop.launch import DRAWING, SIZES, icon_image
from app.history.exports import FORMAT as CHAT_FORMAT
from engine.files.replacing import replace_text
from engine.recording import FORMAT as REPLAY_FORMAT

NAME = "specular"
MODEL_TYPE, CHAT_TYPE = "application/x-gguf", "application/x-specular-chat+json"
REPLAY_TYPE = "application/x-specular-replay+json"
MARK = "X-Specular-Shortcut=true"  # of files that are ours to take away
RESERVED = re.compile(r"[\s\"'\\><~|&;$*?#()`]")

Run = Callable[[Sequence[str]], None]


def run_quietly(command: Sequence[str]) -> None:
    """Run one of the desktop's tools if it is there; the desktop finds out by itself where it is not."""
    if shutil.which(command[0]):
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)


def install(command: Sequence[str], run: Run = run_quietly) -> list[Path]:
    """Write everything; the files. Raises OSError where a folder cannot be written."""
    text = entry(command)
    for path in (entry_path(), *desktop_copy()):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, text)
        path.chmod(0o755)
    for size, path in icon_paths():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not icon_image(size).save(str(path)):
            raise OSError(0, "the icon cannot be written", str(path))
    drawing_path().parent.mkdir(parents=True, exist_ok=True)
    replace_text(drawing_path(), DRAWING.read_text(encoding="utf-8"))
    types_path().parent.mkdir(parents=True, exist_ok=True)
    replace_text(types_path(), types())
    _tell_desktop(run)
    return [path for path in ours() if path.exists()]


def uninstall(run: Run = run_quietly) -> list[Path]:
    """Take away what `install` wrote; what was there. Raises OSError where it cannot be."""
    found = [path for path in ours() if path.exists()]
    for path in found:
        path.unlink()
    if found:
        _tell_desktop(run)
    return found


def ours() -> Iterator[Path]:
    """Every file that belongs to the shortcut; the one on the desktop only where it is one of ours."""
    yield entry_path()
    for path in desktop_copy():
        if not path.exists() or MARK in path.read_text(encoding="utf-8", errors="replace"):
            yield path
    yield from (path for _, path in icon_paths())
    yield drawing_path()
    yield types_path()


def data_home() -> Path:
    """Where the user's applications and icons are; a relative path in the environment is to be ignored."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".local" / "share"


def entry_path() -> Path:
    """The entry of the menus."""
    return data_home() / "applications" / f"{NAME}.desktop"


def desktop_copy() -> list[Path]:
    """The entry on the desktop, where the user has a folder for that."""
    named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    config = (named if named.is_absolute() else Path.home() / ".config") / "user-dirs.dirs"
    try:
        found = re.search(r'^XDG_DESKTOP_DIR="(.+)"', config.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return []
    if found is None:
        return []
    folder = Path(found.group(1).replace("$HOME", str(Path.home()), 1))
    return [folder / f"{NAME}.desktop"] if folder.is_dir() and folder != Path.home() else []


def icon_paths() -> list[tuple[int, Path]]:
    """Size and place of each icon."""
    return [(size, data_home() / f"icons/hicolor/{size}x{size}/apps/{NAME}.png") for size in SIZES]


def drawing_path() -> Path:
    """The icon for every other size."""
    return data_home() / f"icons/hicolor/scalable/apps/{NAME}.svg"


def types_path() -> Path:
    """The description of our file types."""
    return data_home() / f"mime/packages/{NAME}.xml"


def entry(command: Sequence[str]) -> str:
    """The desktop entry."""
    return f"""[Desktop Entry]
Type=Application
Version=1.5
Name=Specular
GenericName=Chat with a language model
GenericName[zh_CN]=与语言模型对话
Comment=A model that drafts and verifies itself: the same tokens, sooner
Comment[zh_CN]=自己起草、自己验证的模型：同样的词元，更快得到
Exec={" ".join(quoted(word) for word in command)} %f
Icon={NAME}
Terminal=false
StartupNotify=true
StartupWMClass={NAME}
Categories=Utility;Science;ArtificialIntelligence;
Keywords=chat;LLM;GGUF;AI;
MimeType={MODEL_TYPE};{CHAT_TYPE};{REPLAY_TYPE};
{MARK}
"""


def quoted(word: str) -> str:
    """A word of an Exec line: quoted where it has to be, per cent signs doubled."""
    word = word.replace("%", "%%")
    if not RESERVED.search(word):
        return word
    inner = re.sub(r'(["`$\\])', r"\\\1", word)
    return '"' + inner.replace("\\", "\\\\") + '"'  # the value of a key is escaped once more


def types() -> str:
    """Models by their ending; chats and replays by how they begin, for they end as other JSON files do."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info">
  <mime-type type="{MODEL_TYPE}">
    <comment>GGUF language model</comment>
    <comment xml:lang="zh_CN">GGUF 语言模型</comment>
    <magic priority="60"><match type="string" value="GGUF" offset="0"/></magic>
    <glob pattern="*.gguf"/>
  </mime-type>
  <mime-type type="{CHAT_TYPE}">
    <comment>Specular chat</comment>
    <comment xml:lang="zh_CN">Specular 对话</comment>
    <sub-class-of type="application/json"/>
    <magic priority="90"><match type="string" value="{CHAT_FORMAT}" offset="0:64"/></magic>
  </mime-type>
  <mime-type type="{REPLAY_TYPE}">
    <comment>Specular replay</comment>
    <comment xml:lang="zh_CN">Specular 回放</comment>
    <sub-class-of type="application/json"/>
    <magic priority="90"><match type="string" value="{REPLAY_FORMAT}" offset="0:64"/></magic>
  </mime-type>
</mime-info>
"""


def _tell_desktop(run: Run) -> None:
    home = data_home()
    for command in (
        ("update-mime-database", str(home / "mime")),
        ("update-desktop-database", str(home / "applications")),
        ("gtk-update-icon-cache", "-f", "-t", str(home / "icons" / "hicolor")),
    ):
        run(command)
