"""Between the chats of the window and replay files: a turn as a recording, a recording as a turn. No Qt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.conversation import Reply, Turn
from engine.errors import RecordingError
from engine.recording import Recording, event_times
from engine.records import CycleEvent, Event, PrefillProgress
from engine.settings import GenerateRequest, Message

DEMO = Path(__file__).parent.parent / "assets" / "demo" / "starter.json"


def recording_of(turn: Turn) -> Recording:
    """A turn whose reply is over, ready to be written. Raises RecordingError for one that is not."""
    reply = turn.reply
    if reply is None or reply.finished is None or reply.request is None or reply.info is None:
        raise RecordingError("Only a reply that is over can be replayed or reported.")
    events = tuple(reply.events)
    return Recording(
        turn.user,
        reply.info,
        reply.request.sampling,
        reply.request.speculation,
        reply.request.max_new_tokens,
        events,
        reply.times or event_times(events),
        turn.comparison,
    )


def turn_of(recording: Recording, reply_id: int) -> Turn:
    """A recording as a turn of a chat."""
    request = GenerateRequest(
        messages=(Message("user", recording.prompt),),
        sampling=recording.sampling,
        speculation=recording.speculation,
        max_new_tokens=recording.max_new_tokens,
    )
    reply = Reply(reply_id, request, recording.model, recording.times)
    for event in recording.events:
        reply.append(event)
    return Turn(recording.prompt, reply, recording.comparison)


def cycle_ends(events: Sequence[Event], times: Sequence[float]) -> list[float]:
    """When each cycle of a reply ended: the places a replay can be stepped to."""
    return [at for event, at in zip(events, times, strict=True) if isinstance(event, CycleEvent)]


def first_token_at(events: Sequence[Event], times: Sequence[float]) -> float:
    """When the prompt had been read: where the clock of decoding starts."""
    return max(
        (at for event, at in zip(events, times, strict=True) if isinstance(event, PrefillProgress)),
        default=0.0,
    )
