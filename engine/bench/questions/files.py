"""Question files: JSON lines with `question_id`, `category` and `turns`, one file a set, as MT-bench has them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import BadSetting

SETS = ("mt_bench", "humaneval", "gsm8k", "alpaca", "spec_bench")


@dataclass(frozen=True, slots=True)
class Question:
    """A conversation to hold: what the user says, turn by turn. references: expected answers, where there are any.

    test, entry_point: of a program that is asked for, as HumanEval has them: code that defines `check`, and what it
    checks.
    """

    set: str
    id: str
    category: str
    turns: tuple[str, ...]
    references: tuple[str, ...] = ()
    test: str = ""
    entry_point: str = ""

    @property
    def key(self) -> str:
        """Names it among all sets."""
        return f"{self.set}/{self.id}"


@dataclass(frozen=True, slots=True)
class Questions:
    """What was read. skipped: a sentence for each line that was left out."""

    all: tuple[Question, ...]
    skipped: tuple[str, ...] = ()


def read_questions(folder: Path, sets: Sequence[str] | None = None, limit: int | None = None) -> Questions:
    """The first `limit` questions of each set, whose files are `SET.jsonl` in the folder.

    sets None takes those of the usual names that are there. Lines that are no questions are skipped, and told by file
    and line. Raises BadSetting for a folder or a set that is not there, for sets without questions and a bad limit.
    """
    if limit is not None and limit < 1:
        raise BadSetting(f"--limit is {limit}, but must be at least 1.")
    if not folder.is_dir():
        raise BadSetting(f"There is no folder {folder}.")
    names = list(sets) if sets is not None else [name for name in SETS if (folder / f"{name}.jsonl").is_file()]
    if not names:
        raise BadSetting(f"{folder} has none of the files {', '.join(f'{name}.jsonl' for name in SETS)}.")
    found: list[Question] = []
    skipped: list[str] = []
    for name in dict.fromkeys(names):
        mine = _read_set(folder / f"{name}.jsonl", name, skipped)
        if not mine:
            raise BadSetting(f"{folder / f'{name}.jsonl'} has no questions.")
        found += mine[:limit]
    return Questions(tuple(found), tuple(skipped))


def _read_set(path: Path, name: str, skipped: list[str]) -> list[Question]:
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise BadSetting(f"The set {name} cannot be read: {error.strerror or error} ({path}).") from error
    found: list[Question] = []
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        question, fault = _parse(name, line)
        if question is None:
            skipped.append(f"{path.name}, line {number}: {fault}.")
        elif question.id in seen:
            skipped.append(f"{path.name}, line {number}: its question_id {question.id} was there before.")
        else:
            seen.add(question.id)
            found.append(question)
    return found


def _parse(name: str, line: str) -> tuple[Question | None, str]:
    """A question, or why the line is none."""
    try:
        entry: Any = json.loads(line)
    except ValueError:
        return None, "not JSON"
    if not isinstance(entry, dict):
        return None, "not an object"
    number, turns = entry.get("question_id"), entry.get("turns")
    if isinstance(number, bool) or not isinstance(number, int | str):
        return None, "no question_id"
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, str) and turn.strip() for turn in turns):
        return None, "turns must be a list of texts that are not empty"
    references = entry.get("reference") or []
    if isinstance(references, str):
        references = [references]
    texts = tuple(text for text in references if isinstance(text, str)) if isinstance(references, list) else ()
    test, entry_point = (str(entry.get(key) or "") for key in ("test", "entry_point"))
    return Question(name, str(number), str(entry.get("category") or ""), tuple(turns), texts, test, entry_point), ""
