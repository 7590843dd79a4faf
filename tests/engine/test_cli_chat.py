"""`specular-cli chat`: turns, commands, and Ctrl+C."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator

import pytest

from engine.cli.main import main
from engine.errors import PromptTooLong
from engine.settings import Message
from scripted_engine import ScriptedEngine

TEXT = "The capital is Paris."


def chat(engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch, *lines: str, options: tuple[str, ...] = ()) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    return main(["chat", *options], make_engine=lambda: engine)


def test_turns_are_kept(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()
    assert chat(engine, monkeypatch, "Where?", "", "And now?") == 0
    first, second = engine.requests
    assert first.messages == (Message("user", "Where?"),)
    assert second.messages == (Message("user", "Where?"), Message("assistant", TEXT), Message("user", "And now?"))
    output = capsys.readouterr()
    assert output.out == f"{TEXT}\n{TEXT}\n"
    assert "Fake 1M, cpu, ready in" in output.err
    assert output.err.count("80 % accepted") == 2
    assert engine.closed


def test_new_forgets_and_system_stays(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()
    chat(
        engine, monkeypatch, "One", "/system Be brief.", "/new", "Two", "/system", "Three", options=("--system", "Old")
    )
    asked = [[(m.role, m.content) for m in request.messages] for request in engine.requests]
    assert asked[0] == [("system", "Old"), ("user", "One")]
    assert asked[1] == [("system", "Be brief."), ("user", "Two")]
    assert asked[2] == [("user", "Two"), ("assistant", TEXT), ("user", "Three")]


def test_quit_leaves_and_unknown_commands_explain(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = ScriptedEngine()
    assert chat(engine, monkeypatch, "/dance", "/quit", "Never asked") == 0
    assert engine.requests == []
    assert capsys.readouterr().err.count("/system TEXT") == 2


def test_a_refused_turn_is_said_and_not_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = ScriptedEngine()
    engine.refusal = PromptTooLong("The prompt has 300 tokens, but the context holds 256.")
    assert chat(engine, monkeypatch, "Long") == 0
    assert "300 tokens" in capsys.readouterr().err


def test_ctrl_c_stops_a_reply_and_keeps_the_half(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = ScriptedEngine()
    interrupts = iter([True])
    engine.before_cycle = lambda index: os.kill(os.getpid(), signal.SIGINT) if next(interrupts, False) else None
    assert chat(engine, monkeypatch, "Where?", "Go on") == 0
    assert engine.requests[1].messages[1] == Message("assistant", "The capital is")
    assert "ended by: stopped" in capsys.readouterr().err


def interrupted_input(answers: Iterator[str | None]) -> object:
    def read(prompt: str = "") -> str:
        answer = next(answers)
        if answer is None:
            raise KeyboardInterrupt
        return answer

    return read


def test_ctrl_c_at_the_prompt_twice_leaves(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()
    monkeypatch.setattr("builtins.input", interrupted_input(iter([None, "Where?", None, None, "Never asked"])))
    assert main(["chat"], make_engine=lambda: engine) == 0
    assert [request.messages[-1].content for request in engine.requests] == ["Where?"]
    assert capsys.readouterr().err.count("Ctrl+C once more leaves.") == 2


def test_bad_numbers_are_refused_before_the_model_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = ScriptedEngine()
    assert chat(engine, monkeypatch, options=("--top-p", "7")) == 2
    assert engine.loads == []
    assert "top_p is 7" in capsys.readouterr().err
