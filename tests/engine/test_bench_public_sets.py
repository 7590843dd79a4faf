"""The public sets from the hub, by a stand-in for the package that reads them: files as the benchmark wants them."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engine.bench.questions.files import read_questions
from engine.bench.questions.public_sets import PUBLIC_SETS, fetch_sets
from engine.cli.main import main
from engine.errors import BadSetting, SpecularError

ROWS: dict[str, dict[str, Any]] = {
    "HuggingFaceH4/mt_bench_prompts": {
        "prompt_id": 81,
        "category": "writing",
        "prompt": ["One?", "Two?"],
        "reference": [],
    },
    "openai/openai_humaneval": {
        "task_id": "HumanEval/0",
        "prompt": "def f():\n",
        "canonical_solution": "    return 1\n",
        "test": "def check(candidate): ...",
        "entry_point": "f",
    },
    "openai/gsm8k": {"question": "2 + 2?", "answer": "#### 4"},
    "tatsu-lab/alpaca": {"instruction": "Sort.", "input": "b a", "output": "a b"},
}


class Hub(ModuleType):
    """As much of `datasets` as is used."""

    def __init__(self) -> None:
        super().__init__("datasets")
        self.__spec__ = ModuleSpec("datasets", None)
        self.asked: list[tuple[str, str | None, str]] = []
        self.error: Exception | None = None

    def load_dataset(self, repository: str, name: str | None = None, *, split: str) -> list[dict[str, Any]]:
        self.asked.append((repository, name, split))
        if self.error is not None:
            raise self.error
        return [ROWS[repository]]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub()
    monkeypatch.setitem(sys.modules, "datasets", made)
    return made


def test_every_set_becomes_a_file_of_questions(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--fetch", str(tmp_path / "sets")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    found = {question.set: question for question in read_questions(tmp_path / "sets").all}
    assert set(found) == set(PUBLIC_SETS)
    assert found["mt_bench"].turns == ("One?", "Two?") and found["mt_bench"].id == "81"
    assert found["humaneval"].entry_point == "f" and found["humaneval"].turns[0].endswith("def f():\n")
    assert found["gsm8k"].references == ("#### 4",) and found["alpaca"].turns == ("Sort.\n\nb a",)
    assert ("openai/gsm8k", "main", "test[:80]") in hub.asked
    fetch_sets(tmp_path / "sets")
    assert len(hub.asked) == 4, "what is there stays"


def test_what_goes_wrong_is_a_sentence(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.error = ConnectionError("no route\nand more")
    with pytest.raises(
        SpecularError, match=r"mt_bench could not be fetched from HuggingFaceH4/mt_bench_prompts: no route$"
    ):
        fetch_sets(tmp_path)
    hub.error = None
    (tmp_path / "file").write_text("")
    with pytest.raises(SpecularError, match="cannot be written"):
        fetch_sets(tmp_path / "file")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadSetting, match="pip install datasets"):
        fetch_sets(tmp_path)
