"""How many answers of each way are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.bench.questions.files import Question
from engine.bench.questions.measured import Turn
from engine.bench.scoring.numbers import expected_number, last_number
from engine.bench.scoring.programs import passes, program_of

NUMBERS, PROGRAMS = "gsm8k", "humaneval"


@dataclass(frozen=True, slots=True)
class Score:
    """right of `total` answers of a way; set: which questions."""

    set: str
    way: str
    right: int
    total: int


def score(
    questions: Sequence[Question],
    turns: Sequence[Turn],
    *,
    run_programs: bool,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Score]:
    """Scores of the sets that have right answers. run_programs: whether what the model wrote may be run.

    An answer is scored once for all ways that gave it.
    """
    by_key = {question.key: question for question in questions}
    wanted = (NUMBERS, PROGRAMS) if run_programs else (NUMBERS,)
    mine = [turn for turn in turns if turn.set in wanted and turn.turn == 0 and turn.key in by_key]
    known: dict[tuple[str, str], bool | None] = {}
    right: dict[tuple[str, str], list[bool]] = {}
    for number, turn in enumerate(mine):
        progress(number, len(mine))
        answer = turn.key, turn.text
        if answer not in known:
            known[answer] = _is_right(by_key[turn.key], turn.text)
        found = known[answer]
        if found is not None:
            right.setdefault((turn.set, turn.way), []).append(found)
    return [Score(name, way, sum(answers), len(answers)) for (name, way), answers in right.items()]


def _is_right(question: Question, text: str) -> bool | None:
    """None where that cannot be told."""
    if question.set == NUMBERS:
        expected = expected_number(question.references[0]) if question.references else None
        return None if expected is None else last_number(text) == expected
    prompt = question.turns[0]
    if not question.test and ">>>" not in prompt:
        return None
    program = program_of(prompt, text)
    return program is not None and passes(program, prompt, question.test, question.entry_point)
