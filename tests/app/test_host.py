"""The engine host: every state, with a real engine thread and a fake engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from fake_engine import FakeEngine, Recording, paris, text_of
from pytestqt.qtbot import QtBot

from app.host import EngineHost
from app.states import HostState
from engine.errors import ModelFileError, PromptTooLong
from engine.records import Event, Finished, StopReason
from engine.settings import GenerateRequest, LoadOptions, Message

ASK = GenerateRequest(messages=(Message("user", "What is the capital of France?"),))


class Listener:
    """Everything a host said, in order."""

    def __init__(self, host: EngineHost) -> None:
        self.states: list[HostState] = []
        self.events: list[Event] = []
        self.batches: list[tuple[int, int]] = []
        self.failures: list[tuple[str, str]] = []
        self.refusals: list[tuple[int, str]] = []
        self.models: list[str | None] = []
        self.steps: list[str] = []
        host.state_changed.connect(self.states.append)
        host.events_ready.connect(self._on_events)
        host.failed.connect(lambda sentence, details: self.failures.append((sentence, details)))
        host.reply_refused.connect(lambda reply, sentence: self.refusals.append((reply, sentence)))
        host.model_loaded.connect(lambda info: self.models.append(info.path))
        host.model_gone.connect(lambda: self.models.append(None))
        host.load_progress.connect(lambda step: self.steps.append(step.what))

    def _on_events(self, reply: int, events: list[Event]) -> None:
        self.batches.append((reply, len(events)))
        self.events.extend(events)


@pytest.fixture
def hosts(qtbot: QtBot) -> Iterator[Callable[..., tuple[EngineHost, Listener]]]:
    made: list[EngineHost] = []

    def make(engine: FakeEngine, **options: object) -> tuple[EngineHost, Listener]:
        host = EngineHost(lambda: engine, **options)  # type: ignore[arg-type]
        made.append(host)
        return host, Listener(host)

    yield make
    for host in made:
        host.close()


def reach(qtbot: QtBot, host: EngineHost, state: HostState) -> None:
    qtbot.waitUntil(lambda: host.state is state, timeout=5000)


def ready(qtbot: QtBot, host: EngineHost) -> None:
    assert host.load("starter")
    reach(qtbot, host, HostState.READY)


def test_a_load_reports_progress_and_the_model(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine()
    host, heard = hosts(engine)
    assert host.state is HostState.NO_MODEL and host.info is None
    assert host.load("starter", LoadOptions(2048))
    reach(qtbot, host, HostState.READY)
    assert heard.steps == ["Starting the engine"] + ["Reading tensors"] * 5
    assert heard.models == ["starter"] and host.info is not None
    assert heard.states == [HostState.LOADING, HostState.READY]
    assert engine.loads == [("starter", 2048)]


def test_a_reply_streams_in_order_and_in_the_engine_thread(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine()
    host, heard = hosts(engine)
    ready(qtbot, host)
    reply = host.send(ASK)
    assert reply is not None and host.state is HostState.GENERATING
    reach(qtbot, host, HostState.READY)
    assert [event for event in heard.events if event in engine.recording.cycles] == engine.recording.cycles
    assert isinstance(heard.events[-1], Finished) and heard.events[-1].reason is StopReason.END_TOKEN
    assert text_of(heard.events).startswith("The capital of France is Paris")
    assert {number for number, _ in heard.batches} == {reply}
    assert engine.requests == [ASK]
    assert engine.threads and threading.get_ident() not in engine.threads


def test_events_come_in_bounded_batches(qtbot: QtBot, hosts) -> None:
    recording = Recording()
    for _ in range(200):
        recording.cycle(accepted=" a b", bonus=" c")
    host, heard = hosts(FakeEngine(recording=recording))
    ready(qtbot, host)
    host.send(ASK)
    reach(qtbot, host, HostState.READY)
    assert sum(size for _, size in heard.batches) == 202
    assert max(size for _, size in heard.batches) <= 16
    assert len(heard.batches) < 60


def test_a_second_prompt_is_refused_while_one_is_answered(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine(hold_reply=True)
    host, _ = hosts(engine)
    ready(qtbot, host)
    assert host.send(ASK) is not None
    assert engine.held.wait(5)
    assert host.send(ASK) is None and not host.load("other") and not host.unload()
    engine.go.set()
    reach(qtbot, host, HostState.READY)
    assert len(engine.requests) == 1


def test_stop_keeps_what_was_written(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine(hold_reply=True)
    host, heard = hosts(engine)
    ready(qtbot, host)
    host.send(ASK)
    assert engine.held.wait(5)
    assert host.stop() and host.state is HostState.STOPPING
    assert not host.stop()
    reach(qtbot, host, HostState.READY)
    assert text_of(heard.events) == "The capital of France is"
    assert isinstance(heard.events[-1], Finished) and heard.events[-1].reason is StopReason.STOPPED


def test_a_stop_given_before_the_reply_begins_is_not_lost(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine(hold_start=True)
    host, heard = hosts(engine)
    ready(qtbot, host)
    host.send(ASK)
    assert engine.held.wait(5)
    host.stop()
    engine.go.set()
    reach(qtbot, host, HostState.READY)
    assert isinstance(heard.events[-1], Finished) and heard.events[-1].reason is StopReason.STOPPED
    assert text_of(heard.events) == ""
    assert host.send(ASK) is not None
    reach(qtbot, host, HostState.READY)
    assert heard.events[-1].reason is StopReason.END_TOKEN


def test_a_cancelled_first_load_leaves_no_model_and_no_complaint(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine(hold_load=True)
    host, heard = hosts(engine)
    host.load("starter")
    assert engine.held.wait(5)
    assert host.cancel_load() and host.state is HostState.LOADING
    reach(qtbot, host, HostState.NO_MODEL)
    assert heard.failures == [] and host.info is None


def test_a_cancel_given_before_the_engine_exists_is_not_lost(qtbot: QtBot, hosts) -> None:
    engine, made, go = FakeEngine(), threading.Event(), threading.Event()

    def factory() -> FakeEngine:
        made.set()
        assert go.wait(5)
        return engine

    host = EngineHost(factory)
    host.load("starter")
    assert made.wait(5)
    host.cancel_load()
    go.set()
    reach(qtbot, host, HostState.NO_MODEL)
    assert engine.loads == []
    host.close()


def test_a_failed_first_load_is_failed_and_can_be_tried_again(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine(load_error=ModelFileError("model.gguf is cut short."))
    host, heard = hosts(engine)
    host.load("model.gguf")
    reach(qtbot, host, HostState.FAILED)
    assert [sentence for sentence, _ in heard.failures] == ["model.gguf is cut short."]
    engine.load_error = None
    ready(qtbot, host)


def test_a_failed_load_keeps_the_earlier_model(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine()
    host, heard = hosts(engine)
    ready(qtbot, host)
    engine.load_error = ModelFileError("other: a tensor is missing.")
    assert host.load("other")
    reach(qtbot, host, HostState.READY)
    assert host.info is not None and host.info.path == "starter"
    assert [sentence for sentence, _ in heard.failures] == ["other: a tensor is missing."]
    assert host.send(ASK) is not None
    reach(qtbot, host, HostState.READY)


def test_a_refused_prompt_names_the_reply_and_leaves_the_model_ready(qtbot: QtBot, hosts) -> None:
    host, heard = hosts(FakeEngine(refusal=PromptTooLong("The prompt has 9000 tokens, but the context holds 8192.")))
    ready(qtbot, host)
    reply = host.send(ASK)
    reach(qtbot, host, HostState.READY)
    assert heard.refusals == [(reply, "The prompt has 9000 tokens, but the context holds 8192.")]
    assert heard.events == [] and heard.failures == []


def test_an_unexpected_exception_fails_with_sentence_and_traceback(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine(reply_error=ZeroDivisionError("division by zero"))
    host, heard = hosts(engine)
    ready(qtbot, host)
    host.send(ASK)
    reach(qtbot, host, HostState.FAILED)
    [(sentence, details)] = heard.failures
    assert sentence == "Unexpected fault in the engine: division by zero."
    assert "ZeroDivisionError" in details and "Traceback" in details
    assert isinstance(heard.events[-1], Finished) and heard.events[-1].reason is StopReason.FAILED
    assert text_of(heard.events) == "The capital of France is"
    assert heard.models == ["starter", None]


def test_an_engine_that_cannot_be_made_is_a_sentence_not_a_dead_thread(qtbot: QtBot) -> None:
    def factory() -> FakeEngine:
        raise ModuleNotFoundError("No module named 'torch'")

    host = EngineHost(factory)
    heard = Listener(host)
    host.load("starter")
    reach(qtbot, host, HostState.FAILED)
    assert heard.failures[0][0] == "Unexpected fault in the engine: No module named 'torch'."
    assert host.close()


def test_unload_gives_the_model_back(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine()
    host, heard = hosts(engine)
    ready(qtbot, host)
    assert host.unload()
    reach(qtbot, host, HostState.NO_MODEL)
    assert engine.info is None and heard.models == ["starter", None]
    assert host.send(ASK) is None


@pytest.mark.parametrize("moment", ["no model", "loading", "ready", "generating", "stopping", "failed"])
def test_close_is_clean_at_every_moment(qtbot: QtBot, hosts, moment: str) -> None:
    engine = FakeEngine(hold_load=moment == "loading", hold_reply=moment in ("generating", "stopping"))
    engine.load_error = ModelFileError("bad file.") if moment == "failed" else None
    hung: list[str] = []
    host, heard = hosts(engine, on_hung=lambda: hung.append("hung"))
    if moment != "no model":
        host.load("starter")
        if moment == "loading":
            assert engine.held.wait(5)
        else:
            reach(qtbot, host, HostState.FAILED if moment == "failed" else HostState.READY)
    if moment in ("generating", "stopping"):
        host.send(ASK)
        assert engine.held.wait(5)
    if moment == "stopping":
        engine.deaf = True
        host.stop()
        engine.go.set()
    assert host.state.value == moment
    assert host.close()
    assert host.state is HostState.CLOSED and heard.states[-1] is HostState.CLOSED
    assert hung == []
    assert engine.closed.is_set() is (moment != "no model")
    assert not host.close()
    assert not host.load("starter") and host.send(ASK) is None and not host.stop() and not host.cancel_load()


def test_an_engine_that_hangs_is_reported_and_never_terminated(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine(hold_reply=True, deaf=True)
    hung: list[str] = []
    host, _ = hosts(engine, on_hung=lambda: hung.append("hung"), close_wait_ms=50)
    ready(qtbot, host)
    host.send(ASK)
    assert engine.held.wait(5)
    host.close()
    assert hung == ["hung"]
    engine.go.set()
    assert engine.closed.wait(5)
    assert host.wait_for_thread(5000)


def test_the_timer_runs_only_while_something_is_under_way(qtbot: QtBot, hosts) -> None:
    host, _ = hosts(FakeEngine(recording=paris()))
    assert not host.draining
    host.load("starter")
    assert host.draining
    reach(qtbot, host, HostState.READY)
    assert not host.draining


def test_the_engine_is_restarted_in_mid_reply(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine(hold_reply=True)
    host, heard = hosts(engine)
    ready(qtbot, host)
    host.send(ASK)
    assert engine.held.wait(5)
    line = host._line
    assert host.restart() and not host.restart() and host.state is HostState.UNLOADING
    reach(qtbot, host, HostState.NO_MODEL)
    assert engine.closed.is_set() and heard.models == ["starter", None] and host.info is None
    end = heard.events[-1]
    assert isinstance(end, Finished) and end.reason is StopReason.STOPPED, "the end that the engine gave it"
    assert sum(isinstance(event, Finished) for event in heard.events) == 1
    engine.hold_reply = False
    ready(qtbot, host)
    host.send(ASK)
    reach(qtbot, host, HostState.READY)
    assert isinstance(heard.events[-1], Finished) and heard.events[-1].reason is StopReason.END_TOKEN
    assert host._line is not line and line.wait(0), "in another thread"
    assert heard.failures == [] and not host.left_behind


@pytest.mark.parametrize("kind", ["load", "proof", "nothing"])
def test_the_engine_is_restarted_whatever_it_does(qtbot: QtBot, hosts, kind: str) -> None:
    engine = FakeEngine(hold_load=kind == "load")
    host, _ = hosts(engine)
    if kind == "load":
        assert host.load("starter") and engine.held.wait(5)
    elif kind == "proof":
        ready(qtbot, host)
        assert host.prove(64)
    assert host.restart()
    reach(qtbot, host, HostState.NO_MODEL)
    engine.hold_load = False
    ready(qtbot, host)


def test_an_engine_that_hangs_is_left_behind_and_its_reply_ends(qtbot: QtBot, hosts) -> None:
    hung, fresh = FakeEngine(hold_reply=True, deaf=True), FakeEngine()
    engines = iter((hung, fresh))
    hanging: list[bool] = []
    host, heard = hosts(None, close_wait_ms=100, on_hung=lambda: hanging.append(True))
    host._factory = host._line.worker._factory = lambda: next(engines)
    ready(qtbot, host)
    reply = host.send(ASK)
    assert hung.held.wait(5)
    qtbot.waitUntil(lambda: len(heard.events) >= 2, timeout=5000)
    assert host.restart()
    reach(qtbot, host, HostState.NO_MODEL)
    end = heard.events[-1]
    assert isinstance(end, Finished) and end.reason is StopReason.FAILED and "restarted" in str(end.message)
    assert heard.batches[-1][0] == reply and host.left_behind
    ready(qtbot, host)
    before = len(heard.events)
    hung.go.set()  # it wakes up, and ends as it was told to
    qtbot.waitUntil(lambda: not host.left_behind, timeout=5000)
    assert hung.closed.is_set() and len(heard.events) == before, "what it says now is heard by nobody"
    assert host.state is HostState.READY and hanging == []


def test_closing_while_the_engine_restarts(qtbot: QtBot, hosts) -> None:
    engine = FakeEngine(hold_reply=True)
    host, _ = hosts(engine)
    ready(qtbot, host)
    host.send(ASK)
    assert engine.held.wait(5) and host.restart() and host.close()
    qtbot.wait(50)
    assert host.state is HostState.CLOSED and engine.closed.is_set()
