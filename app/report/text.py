"""The reply's text for the page, each token in the form of its state. Ghosts are marked up as deleted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from PySide6.QtCore import QCoreApplication

from app.report.escaped import escaped
from app.widgets.token_words import split_ghosts
from engine.recording import Recording
from engine.records import CycleEvent, Opening, TokenState


def state_words() -> dict[TokenState, str]:
    """The states by the names that the window uses."""
    return {
        TokenState.ACCEPTED: QCoreApplication.translate("CountsRow", "accepted"),
        TokenState.REJECTED: QCoreApplication.translate("CountsRow", "rejected"),
        TokenState.CORRECTION: QCoreApplication.translate("CountsRow", "corrections"),
        TokenState.BONUS: QCoreApplication.translate("CountsRow", "bonus"),
        TokenState.PLAIN: QCoreApplication.translate("CountsRow", "plain"),
    }


def reply_html(recording: Recording) -> str:
    """The whole reply as inline elements; line breaks are kept by the style sheet."""
    parts: list[str] = []
    for event in recording.events:
        if isinstance(event, Opening):
            parts.append(escaped("".join(event.pieces)))
        elif isinstance(event, CycleEvent):
            parts += _cycle(event)
    return "".join(parts) + escaped(recording.finished.tail)


def _cycle(event: CycleEvent) -> Iterator[str]:
    """A run of one state is one element; a rejected guess stands before what came in its place."""
    record = event.record
    guess, _ = split_ghosts(event)
    tokens = list(zip(range(len(event.pieces)), record.emitted_states, event.pieces, strict=True))
    for (state, _), run in groupby(tokens, key=lambda token: (token[1], token[0] >= record.agreed)):
        places, _, pieces = zip(*run, strict=True)
        if guess and places[0] == record.agreed:
            yield _marked(guess.strip(), TokenState.REJECTED, record.index, "del")
        yield _marked("".join(pieces), state, record.index, "span")


def _marked(text: str, state: TokenState, cycle: int, element: str) -> str:
    """Leading spaces stand outside, as they do in the window; the gap around a guess is the style sheet's."""
    body = text.lstrip()
    title = QCoreApplication.translate("Report", "cycle {number}").replace("{number}", str(cycle + 1))
    lead = escaped(text[: len(text) - len(body)])
    if not body:
        return lead
    return f'{lead}<{element} class="{state.value}" title="{title}">{escaped(body)}</{element}>'
