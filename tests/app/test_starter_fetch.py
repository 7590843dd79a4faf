"""Fetching the starter model in a process of its own, with small stand-ins for that process."""

from __future__ import annotations

import sys

from pytestqt.qtbot import QtBot

from app.starter_fetch import StarterFetch


def script(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_a_fetch_that_ends_well_says_so(qtbot: QtBot) -> None:
    fetch = StarterFetch(command=script("pass"))
    running: list[bool] = []
    fetch.running_changed.connect(running.append)
    with qtbot.waitSignal(fetch.fetched, timeout=10_000):
        fetch.start()
        fetch.start()
    assert running == [True, False] and not fetch.running


def test_a_fetch_that_fails_gives_its_last_line(qtbot: QtBot) -> None:
    fetch = StarterFetch(command=script("import sys; sys.exit('noise\\nThe index cannot be reached.')"))
    with qtbot.waitSignal(fetch.failed, timeout=10_000) as failed:
        fetch.start()
    assert failed.args == ["The index cannot be reached."]


def test_a_program_that_cannot_start_is_a_sentence(qtbot: QtBot) -> None:
    fetch = StarterFetch(command=("/no/such/program",))
    with qtbot.waitSignal(fetch.failed, timeout=10_000) as failed:
        fetch.start()
    assert failed.args[0].startswith("The starter model could not be fetched: ")
    assert not fetch.running


def test_a_fetch_can_be_given_up_silently(qtbot: QtBot) -> None:
    fetch = StarterFetch(command=script("import time; time.sleep(60)"))
    said: list[str] = []
    fetch.failed.connect(said.append)
    fetch.fetched.connect(lambda: said.append("fetched"))
    fetch.start()
    qtbot.waitUntil(lambda: fetch.running, timeout=10_000)
    fetch.give_up()
    assert not fetch.running and said == []
