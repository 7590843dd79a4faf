"""The public sets as question files, from the hub: MT-bench, HumanEval with its tests, GSM8K, Alpaca.

Needs the `datasets` package, which reads what the hub keeps them in; nothing else here does.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import BadSetting, SpecularError

FIRST = 80  # questions of each set


@dataclass(frozen=True, slots=True)
class PublicSet:
    """repository, name, split: where the hub has it. entry: a question from a row and its number."""

    repository: str
    name: str | None
    split: str
    entry: Callable[[Mapping[str, Any], int], dict[str, Any]]


def _mt_bench(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        "question_id": row.get("prompt_id", number),
        "category": row.get("category", ""),
        "turns": list(row["prompt"]),
        "reference": list(row.get("reference") or ()),
    }


def _humaneval(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        "question_id": row.get("task_id", number),
        "category": "code",
        "turns": [f"Complete the code I provided.\n\n{row['prompt']}"],
        "reference": [row["canonical_solution"]],
        "test": row["test"],
        "entry_point": row["entry_point"],
    }


def _gsm8k(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {"question_id": number, "category": "math", "turns": [row["question"]], "reference": [row["answer"]]}


def _alpaca(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    text = "\n\n".join(part for part in (row["instruction"], row.get("input", "")) if part)
    return {"question_id": number, "category": "", "turns": [text], "reference": [row["output"]]}


PUBLIC_SETS = {
    "mt_bench": PublicSet("HuggingFaceH4/mt_bench_prompts", None, "train", _mt_bench),
    "humaneval": PublicSet("openai/openai_humaneval", None, "test", _humaneval),
    "gsm8k": PublicSet("openai/gsm8k", "main", "test", _gsm8k),
    "alpaca": PublicSet("tatsu-lab/alpaca", None, "train", _alpaca),
}


def fetch_sets(folder: Path, progress: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Write the first questions of every set into a folder; the files. One that is there stays.

    Raises BadSetting without the `datasets` package, SpecularError where the hub cannot be reached or a file not
    written.
    """
    if importlib.util.find_spec("datasets") is None:
        raise BadSetting("Fetching the public sets needs the datasets package: pip install datasets.")
    written = []
    for name, public in PUBLIC_SETS.items():
        path = folder / f"{name}.jsonl"
        if not path.exists():
            progress(name)
            _write(path, (json.dumps(public.entry(row, number)) for number, row in enumerate(_rows(name, public))))
        written.append(path)
    return written


def _rows(name: str, public: PublicSet) -> list[Mapping[str, Any]]:
    import datasets

    try:
        found = datasets.load_dataset(public.repository, public.name, split=f"{public.split}[:{FIRST}]")
        return [dict(row) for row in found]
    except Exception as error:  # the package raises whatever its transport does
        gist = str(error).split("\n")[0] or type(error).__name__
        raise SpecularError(f"The set {name} could not be fetched from {public.repository}: {gist}") from error


def _write(path: Path, lines: Iterable[str]) -> None:
    """All of the file or nothing."""
    text = "".join(f"{line}\n" for line in lines)
    beside = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, "utf-8")
        beside.replace(path)
    except OSError as error:
        raise SpecularError(f"{path} cannot be written: {error.strerror or error}.") from error
