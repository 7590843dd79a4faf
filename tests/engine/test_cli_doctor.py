"""`specular-cli doctor`: a real reply of a small model, and what its KV cache took and gave back."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from builders import byte_tokenizer, tiny_llama
from engine.cli.main import main
from engine.engine import Engine
from engine.memory.host_pages import HostPages
from engine.records import Finished, StopReason
from engine_rig import no_end_tokens


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = no_end_tokens(tiny_llama(tmp_path_factory.mktemp("model") / "Small", hidden=128, positions=512))
    byte_tokenizer(made)
    return made


def run(folder: Path, *options: str) -> int:
    return main(["doctor", "--model", str(folder), "--device", "cpu", *options])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="host virtual memory is Linux's")
def test_a_healthy_computer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line[:12].strip() for line in lines]
    assert [name for name in names if name] == ["system", "packages", "device", "model", "reply", "KV cache"]
    text = "\n".join(lines)
    assert "torch " in text and "compiled CPU kernels" in text and "reply       48 tokens at " in text
    assert "KV cache    host virtual memory, pages of 64 KiB" in text
    assert "1 conversations, 0 evicted" in text and "map " in text and "0.0 MB held 0.0 s after" in text


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="host virtual memory is Linux's")
def test_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tokens"] == 48 and found["failure"] is None and found["held"] == 0
    assert found["memory"]["mapped"] >= found["memory"]["used"] > 0 and found["memory"]["page_bytes"] == 65536
    assert [operation["name"] for operation in found["memory"]["operations"]] == ["create", "map", "unmap", "release"]


def test_without_virtual_memory_nothing_is_expected_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--no-vattention") == 0
    text = capsys.readouterr().out
    assert "KV cache    a plain tensor (virtual memory is switched off)\n" in text and "held" not in text


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="host virtual memory is Linux's")
def test_memory_that_does_not_come_back_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostPages, "pools", True)
    monkeypatch.setattr("engine.memory.keeper.IDLE_SECONDS", 60.0)
    assert run(folder) == 1
    assert "MB held 2." in capsys.readouterr().out


def test_a_reply_that_fails_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Finished(StopReason.FAILED, "", 3, 0, 0, 0.1, 0.0, 0, "There is not enough memory to go on.")
    monkeypatch.setattr(Engine, "generate", lambda engine, request: iter([failed]))
    assert run(folder) == 1
    assert "reply       There is not enough memory to go on." in capsys.readouterr().out
