"""Events of replies as compressed JSON, in the shapes of `engine.recording`, and what was asked of the engine."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from engine.comparison import Comparison
from engine.errors import BadSetting
from engine.plain_data import Misfit, from_plain, is_time, to_plain
from engine.recording import event_of, plain_event, portable
from engine.records import CycleEvent, Event, Finished, ModelInfo, Opening
from engine.settings import GenerateRequest, Message, Sampling, Speculation

MOST_BYTES = 64 << 20  # of one part, unpacked: more than any reply has, less than a bomb


def pack(events: Iterable[Event]) -> bytes:
    """Some events as one part."""
    return zlib.compress(_dumped([plain_event(event) for event in events]).encode(), 6)


def unpack(parts: Iterable[bytes]) -> tuple[Event, ...]:
    """The events of all parts in order. Raises Misfit for parts that are not what `pack` made."""
    plain: list[Any] = []
    for part in parts:
        unpacking = zlib.decompressobj()
        try:
            data = unpacking.decompress(part, MOST_BYTES)
            values = json.loads(data)
        except (zlib.error, ValueError, RecursionError):
            raise Misfit("its records are damaged") from None
        if not isinstance(values, list):
            raise Misfit("its records are no list")
        plain += values
    return events_of(plain)


def events_of(values: Sequence[Any]) -> tuple[Event, ...]:
    """Events out of plain values. Raises Misfit; nothing may come after the end of a reply."""
    events: list[Event] = []
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise Misfit(f"its event {number} is no object")
        if events and isinstance(events[-1], Finished):
            raise Misfit("a reply in it goes on after its end")
        events.append(event_of(value, number))
    return tuple(events)


def repack(parts: Sequence[bytes]) -> bytes:
    """Several parts as one, which is smaller."""
    plain: list[Any] = []
    for part in parts:
        plain += json.loads(zlib.decompress(part))
    return zlib.compress(_dumped(plain).encode(), 9)


def text_of(events: Iterable[Event]) -> str:
    """The text that these events add to their reply."""
    parts: list[str] = []
    for event in events:
        if isinstance(event, Opening | CycleEvent):
            parts += event.pieces
        elif isinstance(event, Finished):
            parts.append(event.tail)
    return "".join(parts)


def plain_request(request: GenerateRequest | None) -> dict[str, Any]:
    """What was asked, save the messages, which the chat has: its system prompt, sampling, speculation, limits."""
    if request is None:
        return {}
    system = next((message.content for message in request.messages if message.role == "system"), "")
    return {
        "system": system,
        "sampling": to_plain(request.sampling),
        "speculation": to_plain(request.speculation),
        "max_new_tokens": request.max_new_tokens,
    }


def request_of(plain: dict[str, Any], messages: Sequence[Message], conversation: int) -> GenerateRequest | None:
    """The request again; None where nothing, or nothing sensible, was kept of it."""
    limit = plain.get("max_new_tokens")
    try:
        if not plain or not messages or (limit is not None and type(limit) is not int):
            return None
        return GenerateRequest(
            messages=tuple(messages),
            sampling=from_plain(Sampling, plain.get("sampling"), "sampling"),
            speculation=from_plain(Speculation, plain.get("speculation"), "speculation"),
            max_new_tokens=limit,
            conversation=conversation,
        )
    except (Misfit, BadSetting):
        return None


def model_text(model: ModelInfo | None, *, elsewhere: bool = False) -> str:
    """A model as JSON; without the folders it lies in where the text goes elsewhere."""
    return _dumped(None if model is None else to_plain(portable(model) if elsewhere else model))


def model_of(plain: Any) -> ModelInfo | None:
    """The model of `model_text`, parsed; None where it is not to be understood."""
    try:
        return None if plain is None else from_plain(ModelInfo, plain, "model")
    except Misfit:
        return None


def comparison_of(plain: Any) -> Comparison | None:
    """A comparison out of plain values; None where it is not to be understood."""
    try:
        return None if plain is None else from_plain(Comparison, plain, "comparison")
    except Misfit:
        return None


def times_of(plain: Any, count: int) -> tuple[float, ...] | None:
    """Times of so many events; None where they are none."""
    if not isinstance(plain, list) or len(plain) != count:
        return None
    good = all(isinstance(at, int | float) and not isinstance(at, bool) and is_time(at) for at in plain)
    if not good or any(later < earlier for earlier, later in itertools.pairwise(plain)):
        return None
    return tuple(float(at) for at in plain)


def _dumped(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))  # ASCII: lone surrogates in a piece do no harm
