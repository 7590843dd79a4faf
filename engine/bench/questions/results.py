"""The results file of a benchmark: a line for the run, a line for each answered question. It is resumed where it ended.

A line is written when all ways have answered the question, and is on the disk before the next one begins; a line that
was cut short by a crash or a full disk is made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.bench.questions.measured import Turn
from engine.errors import BadSetting, SpecularError

VERSION = 1
FILE = "results.jsonl"
SAME = ("model", "weights", "max_new_tokens", "temperature", "seed", "device", "ways")  # must be alike to go on


@dataclass(slots=True)
class Results:
    """run: what was measured, on what. answered: turns of each question by its key. notes: sentences about questions
    that were left out."""

    run: dict[str, Any]
    answered: dict[str, tuple[Turn, ...]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All of them, in order."""
        return tuple(turn for turns in self.answered.values() for turn in turns)


class ResultsFile:
    """Appends to `FILE` in a folder, which is made."""

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        """Begin, or go on where a run with the same settings ended.

        Raises BadSetting where the folder holds the results of another run, SpecularError where it cannot be written.
        """
        self.path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.results = read_results(self.path) if self.path.exists() else Results(dict(run))
            self._compare(run)
            self._rewrite()
        except OSError as error:
            raise SpecularError(f"{self.path} cannot be written: {error.strerror or error}.") from error

    def _compare(self, run: Mapping[str, Any]) -> None:
        before = self.results.run
        different = [name for name in SAME if before.get(name) != run.get(name)]
        if different:
            raise BadSetting(
                f"{self.path.parent} holds the results of another run ({', '.join(different)}): choose another folder."
            )

    def has(self, key: str) -> bool:
        """Whether a question was answered, or left out."""
        return key in self.results.answered

    def add(self, key: str, turns: Sequence[Turn], note: str = "") -> None:
        """A question has been answered, or left out for a reason. Raises SpecularError where the disk is full."""
        self.results.answered[key] = tuple(turns)
        if note:
            self.results.notes[key] = note
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(key, turns, note))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise SpecularError(
                f"{self.path} cannot be written: {error.strerror or error}. What is there is kept: run again to go on."
            ) from error

    def _rewrite(self) -> None:
        """The file without a last line that was cut short."""
        lines = [json.dumps({"version": VERSION, "run": self.results.run}) + "\n"]
        for key, turns in self.results.answered.items():
            lines.append(_line(key, turns, self.results.notes.get(key, "")))
        beside = self.path.with_suffix(".new")
        beside.write_text("".join(lines), "utf-8")
        beside.replace(self.path)


def read_results(path: Path) -> Results:
    """The results in a file; what comes after a line that is not whole is left out. Raises BadSetting and OSError."""
    lines = path.read_text("utf-8", errors="replace").split("\n")
    try:
        head = json.loads(lines[0])
        version, run = head["version"], dict(head["run"])
    except (ValueError, TypeError, KeyError) as error:
        raise BadSetting(f"{path} is not a results file.") from error
    if version != VERSION:
        raise BadSetting(f"{path} has version {version}, but this program reads {VERSION}.")
    found = Results(run)
    for line in lines[1:]:
        try:
            entry = json.loads(line)
            turns = tuple(Turn.from_json(turn) for turn in entry["turns"])
        except (ValueError, TypeError, KeyError):
            break
        found.answered[entry["question"]] = turns
        if entry.get("note"):
            found.notes[entry["question"]] = entry["note"]
    return found


def _line(key: str, turns: Sequence[Turn], note: str) -> str:
    return json.dumps({"question": key, "note": note, "turns": [turn.as_json() for turn in turns]}) + "\n"
