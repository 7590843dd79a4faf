"""The small suite: two questions a set over the starter model, both ways; it fails on another text, never on time.

Its report is kept where SPECULAR_ARTEFACTS says, to be looked at after a run.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from engine.bench.questions.report import read_report
from engine.cli.main import main

QUESTIONS = {
    "mt_bench": (
        ("Write a short note to a neighbour who plays music at night.", "Now make it rhyme."),
        ("Name three rivers in Europe.", "Which of them is the longest?"),
    ),
    "humaneval": (
        ('Complete the code.\n\ndef add(a, b):\n    """The sum.\n    >>> add(1, 2)\n    3\n    """\n',),
        ("Write a Python function that says whether a number is even.",),
    ),
    "gsm8k": (
        ("A box holds 12 eggs. How many eggs are in 5 boxes?",),
        ("Anna has 20 euros and spends 7. How many are left?",),
    ),
    "alpaca": (("Give three tips for staying healthy.",), ("Translate into French: the cat sleeps.",)),
}


def test_speculation_says_the_same_over_every_set(starter_by_name: str, tmp_path: Path) -> None:
    for name, conversations in QUESTIONS.items():
        lines = [json.dumps({"question_id": i, "turns": turns}) for i, turns in enumerate(conversations)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), "utf-8")
    kept = os.environ.get("SPECULAR_ARTEFACTS")
    out = Path(kept) / "bench" if kept else tmp_path / "out"
    shutil.rmtree(out, ignore_errors=True)  # of another run
    words = ["bench", "--data", str(tmp_path), "--model", starter_by_name, "--device", "cpu", "--out", str(out)]
    assert main([*words, "--max-new-tokens", "32", "--score"]) == 0
    report = read_report(out)
    assert [entry["name"] for entry in report["sets"]] == ["mt_bench", "humaneval", "gsm8k", "alpaca", "all"]
    whole = report["sets"][-1]
    assert whole["different"] == [] and whole["ways"][0]["questions"] == 8 and whole["ways"][0]["replies"] == 10
    assert whole["draft"]["acceptance"] > 0.5
