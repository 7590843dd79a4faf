"""Looks at tokens through the host: answers, faults, and that every other command comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fake_engine import FakeEngine, rivals
from pytestqt.qtbot import QtBot

from app.host import EngineHost
from app.states import HostState
from app.worker import Look
from engine.candidates import Candidates
from engine.errors import PromptTooLong
from engine.settings import GenerateRequest, Message

ASK = GenerateRequest(messages=(Message("user", "What is the capital of France?"),))

Seen = list[tuple[int, Candidates | None, str]]


@pytest.fixture
def made(qtbot: QtBot) -> Iterator[Callable[[FakeEngine], tuple[EngineHost, Seen]]]:
    hosts: list[EngineHost] = []

    def make(engine: FakeEngine) -> tuple[EngineHost, Seen]:
        host = EngineHost(lambda: engine)
        hosts.append(host)
        seen: Seen = []
        host.seen.connect(lambda look, found, sentence: seen.append((look, found, sentence)))
        host.load("starter")
        qtbot.waitUntil(lambda: host.state is HostState.READY, timeout=5000)
        return host, seen

    yield make
    for host in hosts:
        host.close()


def test_a_look_is_answered_while_the_window_stays_ready(qtbot: QtBot, made: Callable) -> None:  # type: ignore[type-arg]
    engine = FakeEngine()
    host, seen = made(engine)
    states: list[HostState] = []
    host.state_changed.connect(states.append)
    number = host.look(Look(ASK, 500, 3))
    qtbot.waitUntil(lambda: bool(seen), timeout=5000)
    assert seen == [(number, rivals(500), "")]
    assert engine.looks == [(ASK, 500, 3)]
    assert states == [] and host.state is HostState.READY
    assert not host.draining, "a look that is over costs nothing"
    assert len(engine.threads) == 1, "the engine's thread"


def test_a_message_overtakes_a_look(qtbot: QtBot, made: Callable) -> None:  # type: ignore[type-arg]
    engine = FakeEngine(hold_look=True)
    host, seen = made(engine)
    assert host.look(Look(ASK, 500)) is not None
    qtbot.waitUntil(engine.held.is_set, timeout=5000)
    assert host.send(ASK) is not None
    qtbot.waitUntil(lambda: host.state is HostState.READY, timeout=5000)
    assert seen == [] and len(engine.requests) == 1


def test_of_many_looks_only_the_last_is_made(qtbot: QtBot, made: Callable) -> None:  # type: ignore[type-arg]
    engine = FakeEngine(hold_look=True)
    host, seen = made(engine)
    host.look(Look(ASK, 500))
    qtbot.waitUntil(engine.held.is_set, timeout=5000)
    for token in range(501, 520):
        last = host.look(Look(ASK, token))
    engine.hold_look = False
    qtbot.waitUntil(lambda: bool(seen), timeout=5000)
    assert [number for number, _, _ in seen] == [last]
    assert [token for _, token, _ in engine.looks] == [500, 519]


def test_during_a_reply_there_is_no_look(qtbot: QtBot, made: Callable) -> None:  # type: ignore[type-arg]
    engine = FakeEngine(hold_reply=True)
    host, _ = made(engine)
    host.send(ASK)
    assert host.look(Look(ASK, 500)) is None
    engine.go.set()
    qtbot.waitUntil(lambda: host.state is HostState.READY, timeout=5000)
    assert engine.looks == []


def test_a_refused_look_is_told_and_takes_nothing(qtbot: QtBot, made: Callable) -> None:  # type: ignore[type-arg]
    engine = FakeEngine(look_error=PromptTooLong("The prompt has 9000 tokens."))
    host, seen = made(engine)
    failures: list[str] = []
    host.failed.connect(lambda sentence, _: failures.append(sentence))
    number = host.look(Look(ASK, 500))
    qtbot.waitUntil(lambda: bool(seen), timeout=5000)
    assert seen == [(number, None, "The prompt has 9000 tokens.")]
    assert failures == [] and host.state is HostState.READY and host.info is not None


def test_a_fault_in_a_look_is_a_sentence_too(
    qtbot: QtBot,
    made: Callable,  # type: ignore[type-arg]
    capsys: pytest.CaptureFixture[str],
) -> None:
    host, seen = made(FakeEngine(look_error=ZeroDivisionError("division by zero")))
    host.look(Look(ASK, 500))
    qtbot.waitUntil(lambda: bool(seen), timeout=5000)
    assert seen[0][2] == "Unexpected fault in the engine: division by zero."
    assert host.state is HostState.READY
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_closing_ends_a_look(qtbot: QtBot, made: Callable) -> None:  # type: ignore[type-arg]
    engine = FakeEngine(hold_look=True)
    host, seen = made(engine)
    host.look(Look(ASK, 500))
    qtbot.waitUntil(engine.held.is_set, timeout=5000)
    assert host.close()
    assert engine.closed.is_set() and seen == []
