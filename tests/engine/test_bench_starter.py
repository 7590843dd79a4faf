"""The small suite: two questions a set over the starter model, both ways; it fails on another text, never on time.

Its report is kept where SPECULAR_ARTEFACTS says, to be looked at after a run.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from engine.bench.questions.report import read_report
from engine.bench.questions.small import QUESTIONS
from engine.cli.main import main


def test_speculation_says_the_same_over_every_set(starter_by_name: str, tmp_path: Path) -> None:
    for question in QUESTIONS:
        entry = {"question_id": question.id, "turns": question.turns, "reference": question.references}
        with (tmp_path / f"{question.set}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
    kept = os.environ.get("SPECULAR_ARTEFACTS")
    out = Path(kept) / "bench" if kept else tmp_path / "out"
    shutil.rmtree(out, ignore_errors=True)  # of another run
    words = ["bench", "--data", str(tmp_path), "--model", starter_by_name, "--device", "cpu", "--out", str(out)]
    assert main([*words, "--max-new-tokens", "20", "--score"]) == 0
    report = read_report(out)
    assert [entry["name"] for entry in report["sets"]] == ["mt_bench", "humaneval", "gsm8k", "alpaca", "all"]
    whole = report["sets"][-1]
    assert whole["different"] == [] and whole["ways"][0]["questions"] == 8 and whole["ways"][0]["replies"] == 10
    assert whole["draft"]["acceptance"] > 0.5
