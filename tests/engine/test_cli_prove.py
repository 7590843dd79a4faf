"""`specular-cli prove`: lines, JSON, exit statuses, prompt files, over a real tiny model."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import byte_tokenizer, tiny_llama
from engine.cli.main import main
from engine.cli.prove import prompt_line, read_prompts
from engine.engine import Engine
from engine.errors import BadSetting
from engine.proof import PromptProof
from engine.prove_prompts import PROMPTS
from engine.records import ModelInfo
from engine_rig import no_end_tokens


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(no_end_tokens(byte_tokenizer(tiny_llama(tmp_path / "tiny", positions=512), eos="<pad>")))


class WrongInBlocks(Engine):
    """Exact while it decodes plainly; one unit in the last place off in every pass over several rows."""

    def load(self, model: str, **options: Any) -> ModelInfo:
        info = super().load(model, **options)
        assert self._loaded is not None
        full = self._loaded.runner.full

        def off(tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
            logits = full(tokens, position, wanted)
            if wanted > 1:
                logits[:] = np.nextafter(logits, np.float32(np.inf))
            return logits

        self._loaded.runner.full = off  # type: ignore[method-assign]
        return info


def prove(model: str, *options: str, make_engine: type[Engine] = Engine) -> int:
    words = ("prove", "--model", model, "--device", "cpu", *options)
    return main(words, make_engine=make_engine)


def test_identical_is_status_0_with_a_line_a_prompt(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove(model, "--tokens", "48") == 0
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert lines[0].startswith("tiny on ") and lines[0].endswith("compiled CPU kernels")
    assert [line.split(":")[0] for line in lines[1:13]] == [prompt.name for prompt in PROMPTS]
    assert lines[1].startswith("chat: 4 tokens identical · 2 replies, γ 1, 5")
    assert lines[13] == "Identical: 48 tokens, ids and logits, over 12 prompts."
    assert "tok/s" in lines[14] and len(lines) == 15


def test_a_difference_is_status_1_and_says_where(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove(model, "--tokens", "120", "--gamma", "2", make_engine=WrongInBlocks) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("chat: ") and lines[1].endswith("then a DIFFERENCE")
    assert lines[13].startswith("The logits differ at token ") and "of reply 1 to “chat”" in lines[13]
    assert lines[13].endswith(" apart.")
    assert lines[14].startswith("γ 2, row 1 of a pass of 3. Found equal before: ")


def test_json_is_one_object_with_the_outcome(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove(model, "--tokens", "24", "--json", "--temperature", "0.8", "--seed", "5") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["tokens"], made["prompts"], made["identical"], made["stopped"]) == (24, 12, True, False)
    assert (made["temperature"], made["seed"], made["first_difference"]) == (0.8, 5, None)
    assert [result["prompt"] for result in made["results"]] == [prompt.name for prompt in PROMPTS]
    assert prove(model, "--tokens", "120", "--json", "--gamma", "3", make_engine=WrongInBlocks) == 1
    made = json.loads(capsys.readouterr().out)
    assert made["identical"] is False and made["sentence"].startswith("The logits differ")
    first = made["first_difference"]
    assert (first["prompt"], first["turn"], first["gamma"], first["rows"]) == ("chat", 0, 3, 4)
    assert first["gap"] > 0 and first["plain_token"] == first["speculative_token"]


def test_own_prompts_are_read_line_by_line(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("What is rain?\n\n  你好！ \n", encoding="utf-8-sig")
    assert [(p.name, p.text) for p in read_prompts(str(file))] == [
        ("1: What is rain?", "What is rain?"),
        ("2: 你好！", "你好！"),
    ]
    assert prove(model, "--tokens", "20", "--prompts", str(file)) == 0
    out = capsys.readouterr().out
    assert "1: What is rain?: 10 tokens identical" in out
    assert "Identical: 20 tokens, ids and logits, over 2 prompts." in out


def test_ctrl_c_ends_with_what_was_compared(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    class Interrupted(Engine):
        def forget(self) -> None:
            super().forget()
            if not self.struck:
                self.struck = True
                os.kill(os.getpid(), signal.SIGINT)

        struck = False

    assert prove(model, "--tokens", "48", make_engine=Interrupted) == 130
    assert "Stopped; identical so far: 0 tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tokens", "0"], "--tokens is 0, but must be at least 1."),
        (["--tokens", "many"], "argument --tokens: invalid int value: 'many'"),
        (["--gamma", "16"], "gamma is 16"),
        (["--temperature", "nan"], "temperature is nan"),
        (["--prompts", "missing.txt"], "The prompts file missing.txt cannot be read: No such file or directory."),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    model: str, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = prove(model, *options)
    except SystemExit as leaving:
        status = leaving.code
    output = capsys.readouterr()
    assert status == 2 and output.out == ""
    assert words in output.err and output.err.count("\n") == 1


def test_prompt_files_without_text_are_named(tmp_path: Path) -> None:
    empty, binary = tmp_path / "empty.txt", tmp_path / "binary.txt"
    empty.write_text("\n \n", encoding="utf-8")
    binary.write_bytes(b"ab\xff\xfe")
    with pytest.raises(BadSetting, match=r"empty\.txt has no prompts"):
        read_prompts(str(empty))
    with pytest.raises(BadSetting, match=r"binary\.txt is not UTF-8 text \(byte 2\)"):
        read_prompts(str(binary))


def test_a_prompt_line_leaves_out_what_was_not_there() -> None:
    whole = PromptProof("chat", 1084, 2, 46, (1, None), 100, 79, 1.0, 1.0)
    assert prompt_line(whole) == (
        "chat: 1,084 tokens identical · 2 replies, γ 1, auto · 79 of 100 drafts accepted"
        " · 46 prompt tokens from the cache"
    )
    assert prompt_line(PromptProof("x", 1, 1, 0, (3,), 0, 0, 1.0, 1.0)) == "x: 1 tokens identical · 1 reply, γ 3"
