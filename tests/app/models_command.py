"""A stand-in for `specular-cli models`: it notes how it was called and says what a test has laid out for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import json, pathlib, sys, time
place = pathlib.Path(sys.argv[1])
arguments = sys.argv[2:]
with (place / "calls").open("a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
answer = json.loads((place / "answers").read_text()).get(arguments[0], {})
for line in answer.get("out", []):
    print(line if isinstance(line, str) else json.dumps(line), flush=True)
if answer.get("hold"):
    time.sleep(60)
print(answer.get("error", ""), file=sys.stderr)
sys.exit(answer.get("status", 0))
"""


def row(name: str = "tiny", **changes: Any) -> dict[str, Any]:
    """A line of `models list --json`."""
    values = {"name": name, "path": f"/models/{name}", "origin": "added", "repo": None, "bytes": 1_500_000_000}
    values |= {"family": "llama", "weights": 7, "dtype": "BF16", "context": 4096, "verdict": "fits", "advice": ""}
    return values | {"notes": [], "problem": None} | changes


class ModelsCommand:
    """answers: what each command says: {"out": lines, "error": text, "status": number, "hold": whether it stays}."""

    def __init__(self, place: Path, patch: pytest.MonkeyPatch) -> None:
        self._place = place
        self.answers: dict[str, dict[str, Any]] = {}
        (place / "script.py").write_text(SCRIPT)
        self.lay_out()
        patch.setattr("app.models_process.COMMAND", (sys.executable, str(place / "script.py"), str(place)))

    def lay_out(self, **answers: dict[str, Any]) -> None:
        """What commands say from now on ("clear_cache" for clear-cache)."""
        self.answers |= {name.replace("_", "-"): answer for name, answer in answers.items()}
        (self._place / "answers").write_text(json.dumps(self.answers))

    def lists(self, *rows: dict[str, Any]) -> None:
        """What `list` says."""
        self.lay_out(list={"out": list(rows)})

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of every call so far."""
        path = self._place / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
