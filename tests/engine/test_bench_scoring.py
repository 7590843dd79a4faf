"""Right answers: numbers as GSM8K writes them, programs by their tests, run with limits."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import pytest

from engine.bench.questions.files import Question
from engine.bench.questions.measured import Turn
from engine.bench.scoring.numbers import expected_number, last_number
from engine.bench.scoring.programs import passes, program_of
from engine.bench.scoring.score import Score, score

PROMPT = '''Complete the code I provided.

from typing import List

def double(values: List[int]) -> List[int]:
    """Each value twice.
    >>> double([1, 2])
    [2, 4]
    """
'''
GOOD = "Here:\n```python\ndef double(values: List[int]) -> List[int]:\n    return [2 * v for v in values]\n```\nDone."


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("It is 99.", "99"),
        ("So $1,234.50 in all", "1234.50"),
        ("-7 degrees", "-7"),
        ("3 apples and 4 pears: 7", "7"),
        ("no number", None),
        ("", None),
        ("5.0", "5"),
    ],
)
def test_the_last_number_counts(text: str, number: str | None) -> None:
    assert last_number(text) == (None if number is None else Decimal(number))


def test_the_expected_number_stands_behind_the_mark() -> None:
    assert expected_number("7+11= <<7+11=18>>18\n#### 1,090") == Decimal(1090)
    assert expected_number("no mark 3") is None


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        "    return [2 * v for v in values]\n",
        "```\n    return [2 * v for v in values]\n```",
        "def double(values):\n    return [v + v for v in values]",
    ],
)
def test_a_right_program_passes_its_examples(reply: str) -> None:
    program = program_of(PROMPT, reply)
    assert program is not None and passes(program, PROMPT)


@pytest.mark.parametrize(
    "reply",
    [
        "    return values\n",
        "    while True: pass\n",
        "    return [0] * (1 << 40)\n",
        "    import os; os._exit(3)\n",
        "    raise SystemExit(0)\n",
        "    open('x', 'w').write('y' * (1 << 24)); return [2 * v for v in values]\n",
    ],
)
def test_a_wrong_or_wild_program_does_not(reply: str) -> None:
    program = program_of(PROMPT, reply)
    assert program is not None
    began = time.monotonic()
    assert not passes(program, PROMPT)
    assert time.monotonic() - began < 20


def test_what_is_no_program_is_none() -> None:
    assert program_of(PROMPT, "I cannot do that: it is (hard.") is None
    assert program_of("Say hello.", "hello") is None


def test_tests_of_the_data_set_come_before_examples() -> None:
    test = "def check(candidate):\n    assert candidate([5]) == [10]\n"
    program = program_of(PROMPT, GOOD)
    assert program is not None
    assert passes(program, PROMPT, test, "double")
    assert not passes(program, PROMPT, test.replace("10", "11"), "double")
    early = program_of(PROMPT, "    raise SystemExit(0)\n")
    assert early is not None and not passes(early, PROMPT, test, "double"), "it ended before its tests did"


def turn(name: str, question: str, way: str, text: str) -> Turn:
    values: dict[str, Any] = {"prompt": 1, "reused": 0, "tokens": 1, "prefill_seconds": 0.0, "decode_seconds": 1.0}
    return Turn(name, question, "", 0, way, digest="", reason="", text=text, **values)


def test_each_way_is_scored() -> None:
    questions = [
        Question("gsm8k", "1", "", ("?",), ("#### 5",)),
        Question("gsm8k", "2", "", ("?",), ("no mark",)),
        Question("humaneval", "1", "", (PROMPT,)),
        Question("humaneval", "2", "", ("def f(): '''no example'''",)),
        Question("alpaca", "1", "", ("?",)),
    ]
    turns = [turn("gsm8k", "1", "plain", "is 5"), turn("gsm8k", "1", "speculative", "is 6")]
    turns += [turn("gsm8k", "2", "plain", "is 5"), turn("humaneval", "1", "plain", GOOD)]
    turns += [turn("humaneval", "2", "plain", GOOD), turn("alpaca", "1", "plain", "5")]
    numbers = [Score("gsm8k", "plain", 1, 1), Score("gsm8k", "speculative", 0, 1)]
    assert score(questions, turns, run_programs=False) == numbers
    assert score(questions, turns, run_programs=True) == [*numbers, Score("humaneval", "plain", 1, 1)]
