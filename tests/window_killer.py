"""Kills the real program in mid-reply, and looks at what its next start finds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
START_SECONDS = 60.0


def program(folder: Path, kind: str) -> subprocess.Popen[str]:
    """A start of `window_runner.py`."""
    paths = os.pathsep.join([str(HERE.parent), str(HERE), str(HERE / "app")])
    environment = {**os.environ, "PYTHONPATH": paths, "QT_QPA_PLATFORM": "offscreen"}
    return subprocess.Popen(
        [sys.executable, str(HERE / "window_runner.py"), kind, str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_once(folder: Path, seconds: float, number: int = signal.SIGKILL) -> dict[str, Any]:
    """Start the program, end it by a signal so many seconds after its first event, start it again."""
    with program(folder, "write") as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]
        time.sleep(seconds)
        writer.send_signal(number)
        killed = time.monotonic()
        rest, _ = writer.communicate(timeout=START_SECONDS)
        lines += rest.splitlines()
    with program(folder, "look") as looker:
        found, complaints = looker.communicate(timeout=START_SECONDS)
    if looker.returncode != 0 or not found:
        raise AssertionError(f"the next start failed: {complaints}")
    seen: dict[str, Any] = json.loads(found.splitlines()[-1])
    kept = " ".join(seen["kept"])
    events = [line.split() for line in lines if line.startswith("event ") and line.count(" ") == 2]
    lost = [float(at) for _, value, at in events if f"{value} and on" not in kept]
    return {**seen, "events": len(events), "lost seconds": max((killed - at for at in lost), default=0.0)}
