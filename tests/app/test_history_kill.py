"""kill -9 in the middle of replies and of writing: the file stays whole, and no more than the last second is lost.

`benchmarks/kills.py` does the same fifty times, and with the whole program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILLS = 10


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the writers are forked")
def test_kills_lose_at_most_the_last_second_and_never_the_file(tmp_path: Path) -> None:
    script = ROOT / "tests" / "history_killer.py"
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(KILLS), "7"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == KILLS
    assert {result["integrity"] for result in results} == {"ok"}
    assert [result["told"] for result in results if result["told"]] == [], "no file was set aside"
    assert sum(result["broken promises"] for result in results) == 0
    assert sum(result["promised"] for result in results) >= KILLS
    settings = [result for result in results if result["kind"] == "settings"]
    assert len(settings) == 3 and sum(result["promised"] for result in settings) > 10
    assert all(result["left over"] <= len(settings) for result in settings)
    results = [result for result in results if result["kind"] != "settings"]
    assert all("writing" not in result["states"] for result in results), "half replies count as interrupted"
    assert any("interrupted" in result["states"] for result in results), "some were hit in mid-reply"
    assert all(result["records agree"] for result in results), "text and cycles of a reply are of one moment"
    worst = max(result["lost seconds"] for result in results)
    assert worst <= 1.0, f"{worst:.2f} s were lost"
    assert any(result["kind"] == "long" and result["events"] > 100 for result in results), "long enough to tell"
    assert not list(tmp_path.glob("*.broken*"))
