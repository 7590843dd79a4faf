"""A chat out of a JSON file that `exports` wrote. Read strictly: a file is taken whole or refused in a sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.history import packing
from app.history.exports import FORMAT, VERSION, ChatFileError
from app.history.rows import (
    ASSISTANT,
    INTERRUPTED,
    OVER,
    USER,
    ChatRow,
    StoredChat,
    StoredMessage,
    StoredReply,
    one_line,
    storable,
)
from engine.comparison import Comparison
from engine.errors import BadSetting
from engine.plain_data import Misfit, from_plain
from engine.records import Finished, ModelInfo

MOST_BYTES = 256 << 20
MOST_MESSAGES = 200_000
HEAD = {"format", "version", "title", "created", "settings", "leaf", "messages"}
MESSAGE = {"id", "parent", "role", "state", "created", "text", "reply"}
REPLY = {"request", "model", "comparison", "times", "events"}


@dataclass(frozen=True, slots=True)
class ImportedChat:
    """A chat with new numbers, and what else there is of its replies."""

    chat: StoredChat
    replies: dict[int, StoredReply]


def import_chat(path: Path, next_id: Callable[[], int], now: float) -> ImportedChat:
    """Read a chat file. Raises ChatFileError with one sentence that names the file and what is wrong."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ChatFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    try:
        return parsed(data, next_id, now)
    except (Misfit, BadSetting) as error:
        name = one_line(path.name, 120)
        raise ChatFileError(f"{name} is no chat that can be imported: {str(error).rstrip('.')}.") from error


def parsed(data: bytes, next_id: Callable[[], int], now: float) -> ImportedChat:
    """The chat in a file's bytes. Raises Misfit or BadSetting with the end of a sentence."""
    if len(data) > MOST_BYTES:
        raise Misfit(f"it is larger than {MOST_BYTES >> 20} MiB")
    try:
        values = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Misfit("it is damaged or cut short") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise Misfit("it is another kind of file")
    version = values.get("version")
    if version != VERSION or isinstance(version, bool):
        raise Misfit(f"it was written by another version of Specular (format {str(version)[:20]}, not {VERSION})")
    _only(values, HEAD, "it")
    messages = values.get("messages")
    if not isinstance(messages, list) or len(messages) > MOST_MESSAGES:
        raise Misfit("its messages are no list that could be a chat")
    return _chat(values, messages, next_id, now)


def _chat(values: dict[str, Any], messages: list[Any], next_id: Callable[[], int], now: float) -> ImportedChat:
    settings = values.get("settings")
    if not isinstance(settings, dict):
        raise Misfit("its settings are no object")
    row = ChatRow(next_id(), one_line(_text(values, "title", "it"), 200), False, _time(values, "it"), now)
    numbers: dict[int, int] = {}
    roles: dict[int, str] = {}
    stored: list[StoredMessage] = []
    replies: dict[int, StoredReply] = {}
    for place, plain in enumerate(messages, 1):
        message = _message(plain, place, numbers, roles, next_id)
        stored.append(message)
        if message.role == ASSISTANT:
            replies[message.id] = _reply(plain.get("reply"), message, place)
    leaf = values.get("leaf")
    if leaf is not None and (type(leaf) is not int or leaf not in numbers):
        raise Misfit("its leaf is none of its messages")
    shown = numbers[leaf] if leaf is not None else (stored[-1].id if stored else None)
    return ImportedChat(StoredChat(row, settings, "", shown, tuple(stored)), replies)


def _message(
    plain: Any, place: int, numbers: dict[int, int], roles: dict[int, str], next_id: Callable[[], int]
) -> StoredMessage:
    where = f"its message {place}"
    if not isinstance(plain, dict):
        raise Misfit(f"{where} is no object")
    _only(plain, MESSAGE, where)
    number, parent, role, state = (plain.get(name) for name in ("id", "parent", "role", "state"))
    if type(number) is not int or number in numbers:
        raise Misfit(f"{where} has no number of its own")
    if parent is not None and (type(parent) is not int or parent not in numbers):
        raise Misfit(f"{where} follows none that comes before it")
    if role not in (USER, ASSISTANT) or (role == ASSISTANT and roles.get(parent or 0) != USER):
        raise Misfit(f"{where} is said by nobody who could have said it")
    text = storable(_text(plain, "text", where))
    numbers[number], roles[number] = next_id(), role
    kept = OVER if state == OVER else INTERRUPTED
    above = None if parent is None else numbers[parent]
    return StoredMessage(numbers[number], above, role, kept, _time(plain, where), text)


def _reply(plain: Any, message: StoredMessage, place: int) -> StoredReply:
    where = f"the reply in its message {place}"
    if not isinstance(plain, dict):
        raise Misfit(f"{where} is no object")
    _only(plain, REPLY, where)
    request, model, compared, events = (plain.get(name) for name in ("request", "model", "comparison", "events"))
    if not isinstance(request, dict) or not isinstance(events, list):
        raise Misfit(f"{where} has a part of another kind")
    made = packing.events_of(events)
    if made and storable(packing.text_of(made)) != message.text:
        raise Misfit(f"{where} says something else than its events")
    if made and message.state == OVER and not isinstance(made[-1], Finished):
        raise Misfit(f"{where} is cut short")
    return StoredReply(
        request=request,
        model=None if model is None else from_plain(ModelInfo, model, "model"),
        comparison=None if compared is None else from_plain(Comparison, compared, "comparison"),
        recorded=True,
        times=packing.times_of(plain.get("times"), len(made)),
        events=made,
    )


def _only(values: dict[str, Any], known: set[str], where: str) -> None:
    for name in values:
        if name not in known:
            raise Misfit(f"{where} has an unknown field {one_line(name, 40)!r}")


def _text(values: dict[str, Any], name: str, where: str) -> str:
    text = values.get(name)
    if not isinstance(text, str):
        raise Misfit(f"{where} has no {name}")
    return text


def _time(values: dict[str, Any], where: str) -> float:
    at = values.get("created")
    if not isinstance(at, int | float) or isinstance(at, bool) or not math.isfinite(at) or not 0 <= at < 1e11:
        raise Misfit(f"{where} was made at no time that makes sense")
    return float(at)


def _no_number(name: str) -> float:
    raise ValueError(name)
