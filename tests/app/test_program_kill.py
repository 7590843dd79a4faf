"""The real program is killed in mid-reply, told to end, and started again."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from window_killer import kill_once

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the signals are those of other systems")


@pytest.mark.slow
def test_a_kill_in_mid_reply_loses_less_than_a_second_and_the_chat_is_back(tmp_path: Path) -> None:
    for number, seconds in enumerate((0.3, 1.2), 1):
        found = kill_once(tmp_path, seconds)
        assert found["events"] > 10 and found["lost seconds"] <= 1.0
        assert "did not end as it should" in found["banner"] and "is back" in found["banner"]
        assert found["said"][0] == "Question 1" and found["said"][-1].startswith("1.0 and on")
        assert len(list((tmp_path / "data" / "logs").glob("crash-*.log"))) == number


@pytest.mark.slow
def test_a_signal_to_end_is_a_proper_end(tmp_path: Path) -> None:
    found = kill_once(tmp_path, 0.3, signal.SIGTERM)
    assert found["said"] == [] and found["lost seconds"] <= 0.1, "the half reply is kept as stopped"
    assert "did not end" not in found["banner"]
    assert not list((tmp_path / "data" / "logs").glob("crash-*.log"))
