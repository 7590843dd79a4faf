"""The real program in a home that cannot be written: it starts, says so, and talks."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "tests" / "window_runner.py"
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1


def bound_by_rights() -> None:
    """Root may write anywhere, unless it gives that up for good."""
    if os.getuid() == 0:
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="rights of folders are others there")
def test_a_start_and_a_chat_in_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o555)
    touched = subprocess.run(["touch", home / "a"], preexec_fn=bound_by_rights, capture_output=True)
    if touched.returncode == 0:
        pytest.skip("this user may write everywhere")
    paths = os.pathsep.join(str(path) for path in (ROOT, ROOT / "tests", ROOT / "tests" / "app"))
    hidden = ("SPECULAR_DATA_DIR", "HOME")
    kept = {name: value for name, value in os.environ.items() if name not in hidden and not name.startswith("XDG_")}
    done = subprocess.run(
        [sys.executable, str(RUNNER), "ask"],
        env={**kept, "HOME": str(home), "PYTHONPATH": paths, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=90,
        preexec_fn=bound_by_rights,
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["said"][0] == "Question 1" and seen["said"][1].startswith("1.0 and on")
    assert "not kept" in seen["banner"] or "will not be kept" in seen["banner"]
    assert list(home.iterdir()) == []
