"""Text files that are given along with a message: read whole, or refused in one sentence."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from app.markdown.shown import displayed

LARGEST = 1_000_000  # bytes
MOST_NAME = 80  # characters of a name that are shown
_KNOWN_CONTROLS = frozenset("\t\n\r\f\b\x1b")


class Reason(Enum):
    """Why a file is not taken."""

    NO_FILE = 1
    UNREADABLE = 2
    LARGE = 3
    BINARY = 4
    ENCODING = 5
    EMPTY = 6


class FileRefused(Exception):
    """Says in one sentence why a file is not taken."""

    def __init__(self, reason: Reason, name: str, cause: str = "") -> None:
        words = _sentences()[reason]
        super().__init__(words.replace("{cause}", cause).replace("{name}", name))
        self.reason = reason


def _sentences() -> dict[Reason, str]:
    translate = QCoreApplication.translate
    return {
        Reason.NO_FILE: translate("TextFiles", "“{name}” is not a file."),
        Reason.UNREADABLE: translate("TextFiles", "“{name}” cannot be read: {cause}."),
        Reason.LARGE: translate("TextFiles", "“{name}” is larger than 1 MB, the most that is taken."),
        Reason.BINARY: translate("TextFiles", "“{name}” is not a text file."),
        Reason.ENCODING: translate("TextFiles", "“{name}” is not text in UTF-8."),
        Reason.EMPTY: translate("TextFiles", "“{name}” is empty."),
    }


@dataclass(frozen=True, slots=True)
class TextFile:
    """name: without its folder, fit to be shown. text: what it holds, lines ended by line feeds."""

    name: str
    text: str

    def quoted(self) -> str:
        """As it stands in a message: its name, and its text in a fence that nothing in it can close."""
        longest, run = 2, 0
        for character in self.text:
            run = run + 1 if character == "`" else 0
            longest = max(longest, run)
        fence = "`" * (longest + 1)
        kind = Path(self.name).suffix[1:]
        text = self.text if self.text.endswith("\n") else self.text + "\n"
        return f"{self.name}:\n\n{fence}{kind if kind.isalnum() else ''}\n{text}{fence}\n"

    def likely_tokens(self) -> int:
        """About how many tokens it takes, without a tokenizer."""
        ascii_letters = sum(character.isascii() for character in self.text)
        return max(1, round(ascii_letters / 4 + (len(self.text) - ascii_letters) * 0.8))


def read_text_file(path: Path) -> TextFile:
    """Read a file. Raises FileRefused for what is no text in UTF-8, is empty, too large, or cannot be read."""
    name = displayed(path.name).replace("\n", " ").replace("`", "'")[:MOST_NAME]
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # a pipe or a device might never end
            raise FileRefused(Reason.NO_FILE, name)
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise FileRefused(Reason.UNREADABLE, name, error.strerror or type(error).__name__) from error
    if len(content) > LARGEST:
        raise FileRefused(Reason.LARGE, name)
    return TextFile(name, _text_of(content, name))


def _text_of(content: bytes, name: str) -> str:
    if b"\x00" in content and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileRefused(Reason.BINARY, name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileRefused(Reason.ENCODING, name) from error
    controls = sum(c < " " and c not in _KNOWN_CONTROLS for c in text)
    if controls > len(text) / 100:
        raise FileRefused(Reason.BINARY, name)
    if not text.strip():
        raise FileRefused(Reason.EMPTY, name)
    return text.replace("\r\n", "\n").replace("\r", "\n")
