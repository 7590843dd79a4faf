"""A reply with all its events and their times, as a file: what is replayed, reported and sent along with a bug.

The file is JSON of one version. A file of another version, cut short or of a wrong shape is refused as a whole, with
one sentence: a replay that shows something else than what happened would be worse than none.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.comparison import Comparison
from engine.errors import BadSetting, RecordingError
from engine.plain_data import Misfit, from_plain, is_time, to_plain
from engine.records import CycleEvent, CycleRecord, Event, Finished, ModelInfo, Opening, PrefillProgress, TokenState
from engine.settings import Sampling, Speculation
from engine.statistics import ReplyStatistics

FORMAT = "specular-replay"
VERSION = 1
MOST_BYTES = 256 << 20
KINDS: dict[str, type] = {"opening": Opening, "prefill": PrefillProgress, "cycle": CycleEvent, "finished": Finished}
KIND_NAMES = {kind: name for name, kind in KINDS.items()}
NEXT_STATES = (TokenState.CORRECTION, TokenState.BONUS, TokenState.PLAIN)


@dataclass(frozen=True, slots=True)
class Recording:
    """One finished reply. times: seconds after the request at which each of `events` came, never falling.

    prompt: the user's last message. model.path is a name without its folder. comparison: with plain decoding, if made.
    """

    prompt: str
    model: ModelInfo
    sampling: Sampling
    speculation: Speculation
    max_new_tokens: int | None
    events: tuple[Event, ...]
    times: tuple[float, ...]
    comparison: Comparison | None = None

    @property
    def finished(self) -> Finished:
        """The reply's last event."""
        last = self.events[-1]
        assert isinstance(last, Finished)  # of every recording that was made or read
        return last

    @property
    def cycles(self) -> tuple[CycleEvent, ...]:
        """The reply's cycles."""
        return tuple(event for event in self.events if isinstance(event, CycleEvent))

    @property
    def text(self) -> str:
        """What the reply says."""
        made = (event for event in self.events if isinstance(event, Opening | CycleEvent))
        return "".join(piece for event in made for piece in event.pieces) + self.finished.tail

    @property
    def statistics(self) -> ReplyStatistics:
        """The sums over its cycles."""
        sums = ReplyStatistics()
        for event in self.cycles:
            sums = sums.with_cycle(event.record)
        return sums


def event_times(events: Sequence[Event]) -> tuple[float, ...]:
    """When each event of a reply came, in seconds after the request, by the engine's own measurements.

    The prompt's progress is spread over the time of reading it by its tokens; cycles follow one another without gap.
    """
    ends = [event for event in events if isinstance(event, Finished)]
    prefill = ends[0].prefill_seconds if ends else 0.0
    now, times = 0.0, []
    for event in events:
        if isinstance(event, PrefillProgress):
            now = max(now, prefill * min(1.0, event.done / event.total if event.total else 1.0))
        elif isinstance(event, CycleEvent):
            now = max(now, prefill) + event.record.seconds
        times.append(now)
    return tuple(times)


def portable(model: ModelInfo) -> ModelInfo:
    """The model without the folders it lies in, which are nobody else's business; its notes may name them too."""
    return replace(model, notes=(), path=model.path.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1])


def to_json(recording: Recording) -> str:
    """The text of a replay file."""
    events = [
        {"at": round(at, 6), **plain_event(event)} for at, event in zip(recording.times, recording.events, strict=True)
    ]
    values = {
        "format": FORMAT,
        "version": VERSION,
        "prompt": recording.prompt,
        "model": to_plain(portable(recording.model)),
        "sampling": to_plain(recording.sampling),
        "speculation": to_plain(recording.speculation),
        "max_new_tokens": recording.max_new_tokens,
        "comparison": to_plain(recording.comparison),
    }
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    return json.dumps(values, indent=1)[:-2] + f',\n "events": [\n{lines}\n ]\n}}\n'


def plain_event(event: Event) -> dict[str, Any]:
    """An event as plain JSON values, with its kind."""
    return {"kind": KIND_NAMES[type(event)], **to_plain(event)}


def write_recording(path: Path, recording: Recording) -> None:
    """Write a replay file in one step. Raises RecordingError where that cannot be done."""
    write_whole(path, to_json(recording).encode())


def write_whole(path: Path, data: bytes) -> None:
    """Write beside the target, then rename over it, so that no half file is left. Raises RecordingError."""
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise RecordingError(f"{path} cannot be written: {error.strerror or error}.") from error


def read_recording(path: Path) -> Recording:
    """The recording in a file. Raises RecordingError with one sentence that names the file and what is wrong."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror or error}.") from error
    try:
        return parsed(data)
    except (Misfit, BadSetting) as error:
        raise RecordingError(f"{path.name} is no replay that can be shown: {str(error).rstrip('.')}.") from error


def parsed(data: bytes) -> Recording:
    """The recording in a replay file's bytes. Raises Misfit or BadSetting with the end of a sentence."""
    if len(data) > MOST_BYTES:
        raise Misfit(f"it is larger than {MOST_BYTES >> 20} MiB")
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        raise Misfit("it is damaged or cut short") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise Misfit("it is another kind of file")
    version = values.get("version")
    if version != VERSION:
        raise Misfit(f"it was written by another version of Specular (format {str(version)[:20]}, not {VERSION})")
    known = (
        "format",
        "version",
        "prompt",
        "model",
        "sampling",
        "speculation",
        "max_new_tokens",
        "comparison",
        "events",
    )
    for name in values:
        if name not in known:
            raise Misfit(f"it has an unknown field {name[:40]!r}")
    return _checked(values)


def _checked(values: dict[str, Any]) -> Recording:
    prompt, limit, comparison = values.get("prompt"), values.get("max_new_tokens"), values.get("comparison")
    if not isinstance(prompt, str):
        raise Misfit("its prompt is no text")
    if limit is not None and (type(limit) is not int or not 0 <= limit < 2**31):
        raise Misfit("its max_new_tokens is no number of tokens")
    model = from_plain(ModelInfo, values.get("model"), "model")
    sampling = from_plain(Sampling, values.get("sampling"), "sampling")
    speculation = from_plain(Speculation, values.get("speculation"), "speculation")
    compared = None if comparison is None else from_plain(Comparison, comparison, "comparison")
    times, events = _events(values.get("events"))
    return Recording(prompt, model, sampling, speculation, limit, events, times, compared)


def _events(values: Any) -> tuple[tuple[float, ...], tuple[Event, ...]]:
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise Misfit("its events are no list of objects")
    times: list[float] = []
    events: list[Event] = []
    for number, value in enumerate(values, 1):
        rest = dict(value)
        at = rest.pop("at", None)
        event = event_of(rest, number)
        if not isinstance(at, int | float) or isinstance(at, bool) or not is_time(at) or (times and at < times[-1]):
            raise Misfit(f"the time of its event {number} makes no sense")
        times.append(float(at))
        events.append(event)
    ends = [number for number, event in enumerate(events) if isinstance(event, Finished)]
    if ends != [len(events) - 1]:
        raise Misfit("it is cut short: the end of the reply is missing" if not ends else "it goes on after its end")
    return tuple(times), tuple(events)


def event_of(values: dict[str, Any], number: int) -> Event:
    """The event that `plain_event` was given, the reply's `number`-th from 1. Raises Misfit."""
    rest = dict(values)
    kind = KINDS.get(str(rest.pop("kind", None)))
    if kind is None:
        raise Misfit(f"its event {number} is of an unknown kind")
    event: Event = from_plain(kind, rest, f"event {number}")
    if isinstance(event, CycleEvent):
        _check_cycle(event, number)
    elif isinstance(event, Opening) and (number > 1 or len(event.pieces) != len(event.ids)):
        raise Misfit(f"the opening in its event {number} contradicts itself")
    return event


def _check_cycle(event: CycleEvent, number: int) -> None:
    """What every view relies on. Raises Misfit."""
    record = event.record
    good = (
        _counts_fit(record)
        and len(event.pieces) == len(record.emitted_ids)
        and len(event.ghosts) == len(record.rejected_ids)
        and _all_times(record.draft_seconds, record.verify_seconds, record.wait_seconds, record.plain_seconds or 0.0)
        and min(record.ignored, record.kv_length, record.streamed_bytes, record.looked_up, record.index) >= 0
    )
    if not good:
        raise Misfit(f"the cycle in its event {number} contradicts itself")


def _counts_fit(record: CycleRecord) -> bool:
    return (
        sum(sibling.taken for sibling in record.siblings) <= 1
        and len(record.drafted_probs) == len(record.drafted_ids)
        and 0 <= record.agreed <= len(record.full_probs) <= len(record.drafted_ids)
        and (record.next_id is None) == (record.next_state is None)
        and record.next_state in (None, *NEXT_STATES)
        and len(record.emitted_states) == len(record.emitted_ids)
    )


def _all_times(*values: float) -> bool:
    return all(is_time(value) for value in values)


def joined_ids(events: Iterable[Event]) -> list[int]:
    """The token ids of a reply so far."""
    ids: list[int] = []
    for event in events:
        if isinstance(event, Opening):
            ids += event.ids
        elif isinstance(event, CycleEvent):
            ids += event.record.emitted_ids
    return ids
