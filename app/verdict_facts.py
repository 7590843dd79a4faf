"""The figures behind a verdict, each with what it means or why it is not there. Plain data: no Qt."""

from __future__ import annotations

from dataclasses import dataclass

from app.declaration import QT_TRANSLATE_NOOP
from app.words import Words, factor, one, percent, two, words
from engine.statistics import ReplyStatistics

UNMEASURED = QT_TRANSLATE_NOOP("Verdict", "not measured yet in this reply")


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of the explanation: label, value (None: not measured) and what the figure is."""

    label: str
    value: Words | None
    help: str


def explain(now: ReplyStatistics) -> tuple[Fact, ...]:
    """The figures of some cycles, in the order in which S follows from them."""
    plain = 1 / now.plain_seconds if now.plain_seconds else None
    return (
        Fact(
            QT_TRANSLATE_NOOP("Verdict", "Speed"),
            _speed(now.tokens_per_second),
            QT_TRANSLATE_NOOP("Verdict", "without reading the prompt"),
        ),
        Fact(
            QT_TRANSLATE_NOOP("Verdict", "Plain decoding"),
            _speed(plain),
            QT_TRANSLATE_NOOP("Verdict", "measured on this model, not estimated"),
        ),
        Fact(
            QT_TRANSLATE_NOOP("Verdict", "Speed-up S"),
            None if now.speed_up is None else _value(factor(now.speed_up)),
            QT_TRANSLATE_NOOP("Verdict", "the first over the second"),
        ),
        Fact(
            QT_TRANSLATE_NOOP("Verdict", "Acceptance"),
            None if now.acceptance is None else _value(percent(now.acceptance)),
            QT_TRANSLATE_NOOP("Verdict", "accepted over tested drafts"),
        ),
        Fact(
            QT_TRANSLATE_NOOP("Verdict", "Draft step c"),
            None if now.draft_cost is None else _value(two(now.draft_cost)),
            QT_TRANSLATE_NOOP("Verdict", "its time in plain steps"),
        ),
        Fact(
            QT_TRANSLATE_NOOP("Verdict", "Verify pass v"),
            None if now.verify_cost is None else _value(two(now.verify_cost)),
            QT_TRANSLATE_NOOP("Verdict", "its time in plain steps"),
        ),
        Fact(
            QT_TRANSLATE_NOOP("Verdict", "Tokens per cycle"),
            None if now.tokens_per_cycle is None else _value(one(now.tokens_per_cycle)),
            QT_TRANSLATE_NOOP("Verdict", "S is these over drafts × c + v"),
        ),
        Fact(
            QT_TRANSLATE_NOOP("Verdict", "Draft · verify · wait"),
            _split(now),
            QT_TRANSLATE_NOOP("Verdict", "where the time of a cycle goes"),
        ),
    )


def _split(now: ReplyStatistics) -> Words | None:
    if now.seconds <= 0:
        return None
    parts = (now.draft_seconds, now.verify_seconds, now.wait_seconds)
    return _value(" · ".join(percent(part / now.seconds) for part in parts))


def _speed(value: float | None) -> Words | None:
    return None if value is None else words(QT_TRANSLATE_NOOP("Verdict", "{speed} tok/s"), speed=one(value))


def _value(shown: str) -> Words:
    return words("{value}", value=shown)
