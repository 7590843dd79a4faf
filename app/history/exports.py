"""A chat as a file: Markdown to read, or JSON with every cycle, which `imports` reads again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from app.history.reader import Reader
from app.history.rows import ASSISTANT, USER, StoredChat, StoredMessage, StoredReply, one_line
from engine.errors import SpecularError
from engine.files.replacing import replacing
from engine.plain_data import to_plain
from engine.recording import plain_event, portable

FORMAT = "specular-chat"
VERSION = 1


class ChatFileError(SpecularError):
    """A chat cannot be written to a file or read from one; the text names the file and the cause."""


def export_markdown(reader: Reader, chat_id: int, path: Path) -> None:
    """What is shown of a chat, as Markdown. Raises ChatFileError and Unreadable."""
    chat = _chat(reader, chat_id)
    _write(path, iter([markdown(chat)]))


def export_json(reader: Reader, chat_id: int, path: Path) -> None:
    """All of a chat with its branches and cycles, as JSON. Raises ChatFileError and Unreadable."""
    chat = _chat(reader, chat_id)
    _write(path, json_parts(chat, reader.reply))


def _chat(reader: Reader, chat_id: int) -> StoredChat:
    chat = reader.chat(chat_id)
    if chat is None:
        raise ChatFileError("The chat is not there any more.")
    return chat


def _write(path: Path, parts: Iterator[str]) -> None:
    try:
        with replacing(path) as file:
            for part in parts:
                file.write(part.encode("utf-8", "replace"))
    except OSError as error:
        raise ChatFileError(f"{path} cannot be written: {error.strerror or error}.") from error


def markdown(chat: StoredChat) -> str:
    """The title, the system prompt, and what was said by whom; each text as it is."""
    parts = [f"# {one_line(chat.row.title, 200) or 'Chat'}", f"*{_day(chat.row.created)}*"]
    system = chat.settings.get("system_prompt")
    if isinstance(system, str) and system.strip():
        parts.append("> " + system.strip().replace("\n", "\n> "))
    for message in shown(chat):
        parts.append("## You" if message.role == USER else "## Specular")
        parts.append(closed(message.text.strip("\n")))
    return "\n\n".join(parts) + "\n"


_fence = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)


def closed(text: str) -> str:
    """A text that broke off inside a code block gets the block's end, so that what follows is not taken for code."""
    open_fence = ""
    for found in _fence.finditer(text):
        fence = found.group(1)
        if not open_fence:
            open_fence = fence
        elif fence[0] == open_fence[0] and len(fence) >= len(open_fence):
            open_fence = ""
    return f"{text}\n{open_fence}" if open_fence else text


def shown(chat: StoredChat) -> list[StoredMessage]:
    """The messages from the beginning to the leaf."""
    by_number = {message.id: message for message in chat.messages}
    path: list[StoredMessage] = []
    step = by_number.get(chat.leaf) if chat.leaf is not None else None
    while step is not None and len(path) <= len(by_number):
        path.append(step)
        step = by_number.get(step.parent) if step.parent is not None else None
    return path[::-1]


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).astimezone().strftime("%Y-%m-%d %H:%M")


def json_parts(chat: StoredChat, reply_of: Any) -> Iterator[str]:
    """The text of the JSON file, message by message: a long chat is never in memory as a whole.

    Messages are numbered from 1, so that nothing of the file depends on the history it came from.
    """
    numbers = {message.id: place for place, message in enumerate(chat.messages, 1)}
    head = {
        "format": FORMAT,
        "version": VERSION,
        "title": chat.row.title,
        "created": chat.row.created,
        "settings": chat.settings,
        "leaf": numbers.get(chat.leaf) if chat.leaf is not None else None,
    }
    yield json.dumps(head, indent=1)[:-2] + ',\n "messages": [\n'
    for place, message in enumerate(chat.messages, 1):
        plain: dict[str, Any] = {
            "id": place,
            "parent": numbers.get(message.parent) if message.parent is not None else None,
            "role": message.role,
            "state": message.state,
            "created": message.created,
            "text": message.text,
        }
        if message.role == ASSISTANT:
            plain["reply"] = _plain_reply(reply_of(message.id) or StoredReply())
        yield json.dumps(plain, separators=(",", ":")) + ("\n" if place == len(chat.messages) else ",\n")
    yield " ]\n}\n"


def _plain_reply(reply: StoredReply) -> dict[str, Any]:
    return {
        "request": reply.request,
        "model": None if reply.model is None else to_plain(portable(reply.model)),
        "comparison": None if reply.comparison is None else to_plain(reply.comparison),
        "times": None if reply.times is None else list(reply.times),
        "events": [plain_event(event) for event in reply.events],
    }


def file_name(title: str, ending: str) -> str:
    """A name for the file that every system takes."""
    kept = re.sub(r'[<>:"/\\|?*\x00-\x1f]+', " ", one_line(title, 80)).strip(" .")
    return f"{allowed(kept)}{ending}"


def allowed(kept: str) -> str:
    """Without what some systems keep for themselves, and never empty."""
    reserved = {"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))}
    return f"chat {kept}".strip() if not kept or kept.casefold() in reserved else kept
