"""Holds every conversation in every way, in turns: a machine that grows slower or faster meets all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.bench.questions.files import Question
from engine.bench.questions.measured import Turn
from engine.bench.questions.ways import QuestionTooLong, Way, WayFailed

WARM_UP = Question("warm-up", "0", "", ("Say in a few words what a rainbow is.",))


class Answers(Protocol):
    """Where answers are kept: see engine.bench.questions.results."""

    def has(self, key: str) -> bool: ...
    def add(self, key: str, turns: Sequence[Turn], note: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class Progress:
    """done of total questions; way: what is at work. seconds_left: by what the questions so far took, None at first."""

    done: int
    total: int
    question: Question | None
    way: str
    seconds_left: float | None
    added: tuple[Turn, ...] = ()


def run(
    questions: Sequence[Question],
    ways: Sequence[Way],
    kept: Answers,
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[str, ...]:
    """Answer what `kept` does not have yet; returns a sentence for each way that broke down.

    A way that breaks down is left out from then on, and what it had answered is kept. Raises SpecularError where
    results cannot be written.
    """
    open_ways, faults = list(ways), []
    todo = [question for question in questions if not kept.has(question.key)]
    done = len(questions) - len(todo)
    if todo:
        faults += _warm_up(open_ways, progress, len(questions), done)
    began = time.perf_counter()
    for number, question in enumerate(todo):
        left = None if not number else (time.perf_counter() - began) / number * (len(todo) - number)
        turns: list[Turn] = []
        note = ""
        for way in _turned(open_ways, number):
            if cancelled():
                return tuple(faults)
            progress(Progress(done + number, len(questions), question, way.name, left))
            try:
                turns += way.answer(question)
            except QuestionTooLong:
                note = f"{question.key} is too long for the context, and was left out."
                turns.clear()
                break
            except WayFailed as error:
                faults.append(f"{way.name} broke down at {question.key}: {error}")
                open_ways.remove(way)
            if cancelled():
                return tuple(faults)  # its last reply was stopped
        kept.add(question.key, turns, note)
        progress(Progress(done + number + 1, len(questions), question, "", left, tuple(turns)))
    return tuple(faults)


def _turned(ways: Sequence[Way], number: int) -> list[Way]:
    """The ways in another order for each question: none is always the first."""
    start = number % len(ways) if ways else 0
    return [*ways[start:], *ways[:start]]


def _warm_up(ways: list[Way], progress: Callable[[Progress], None], total: int, done: int) -> list[str]:
    """Let every way answer once before anything counts."""
    faults = []
    for way in list(ways):
        progress(Progress(done, total, None, way.name, None))
        try:
            way.answer(WARM_UP)
        except (QuestionTooLong, WayFailed) as error:
            faults.append(f"{way.name} cannot run: {error}")
            ways.remove(way)
    return faults
