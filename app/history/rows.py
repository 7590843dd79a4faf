"""What is stored of chats, as plain data, and the numbers that chats and messages have."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from app.words import Words
from engine.comparison import Comparison
from engine.records import Event, ModelInfo

USER, ASSISTANT = "user", "assistant"
OVER, WRITING, INTERRUPTED = "over", "writing", "interrupted"
"""States of a message. INTERRUPTED: the program ended while it was being written."""
EPOCH = 1_700_000_000  # seconds; numbers count from here, so that they stay far below what JSON keeps exactly


@dataclass(frozen=True, slots=True)
class ChatRow:
    """A chat as the list shows it. created, updated: seconds since 1970."""

    id: int
    title: str
    pinned: bool
    created: float
    updated: float

    @property
    def order(self) -> tuple[bool, float, int]:
        """The list is sorted by it, falling."""
        return self.pinned, self.updated, self.id


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of a chat's tree. parent: the message it answers or follows, None for a beginning."""

    id: int
    parent: int | None
    role: str
    state: str
    created: float
    text: str


@dataclass(frozen=True, slots=True)
class StoredReply:
    """What else is kept of a reply.

    request: what was asked, save the messages (`packing.plain_request`). recorded: it was made elsewhere and came here
    in a file. times: of its events, where they are not computed from them. events: empty where they cannot be read.
    """

    request: dict[str, Any] = field(default_factory=dict)
    model: ModelInfo | None = None
    comparison: Comparison | None = None
    recorded: bool = False
    times: tuple[float, ...] | None = None
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredChat:
    """A whole chat without the events of its replies. leaf: the last message of what is shown of its tree.

    settings: the chat's own values of settings (`app.chat_settings`). draft: text that was not sent.
    """

    row: ChatRow
    settings: dict[str, Any]
    draft: str
    leaf: int | None
    messages: tuple[StoredMessage, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A chat that a search found. message: in which one, None where it is the title. The rest: words around it."""

    chat: ChatRow
    message: int | None = None
    before: str = ""
    match: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the history that a user should know. lasting: chats of this run are not kept."""

    words: Words
    lasting: bool = False


class Ids:
    """Numbers for new chats and messages: they grow, and none is given twice on one computer. Any thread.

    Made of the time, so that none has to be read from the file before the first message can be written.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last = 0

    def next(self) -> int:
        """The next number."""
        with self._lock:
            self._last = max(self._last + 1, int((self._clock() - EPOCH) * 1_000_000))
            return self._last

    def stay_above(self, number: int) -> None:
        """Numbers up to this one are taken, by a clock that was ahead of ours."""
        with self._lock:
            self._last = max(self._last, number)


def storable(text: str) -> str:
    """The text without what neither UTF-8 nor SQLite can hold: lone surrogates and NUL become U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


_UNSEEN: dict[int, int | None] = {
    code: None
    for code in itertools.chain(
        range(0x20), range(0x7F, 0xA0), (0x061C, 0x200E, 0x200F, 0xFEFF), range(0x202A, 0x202F), range(0x2066, 0x206A)
    )
}
_UNSEEN.update({0x09: 0x20, 0x0A: 0x20, 0x0D: 0x20, 0x2028: 0x20, 0x2029: 0x20})


def one_line(text: str, most: int) -> str:
    """At most so many characters of a text on one line, without control characters and marks that turn the direction
    of text round: what is shown among other things must not change how they look."""
    shown = storable(text[: 4 * most + 64]).translate(_UNSEEN)
    shown = " ".join(shown.split())
    return shown if len(shown) <= most else shown[: most - 1].rstrip() + "…"
