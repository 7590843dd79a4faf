"""Other programs in a benchmark: transformers over a tiny model, llama.cpp's binding by a stand-in, missing ones."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from builders import byte_tokenizer, tiny_llama
from engine.bench.questions.files import Question
from engine.bench.questions.peers import Answer, PeerWay, peers
from engine.bench.questions.ways import EngineWay, QuestionTooLong, WayFailed
from engine.engine import Engine
from engine.errors import BadSetting
from engine.settings import Sampling
from engine_rig import loaded_engine, no_end_tokens

QUESTION = Question("s", "1", "", ("Hi there?", "And then?"))
CONTEXT = 256


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("peers") / "tiny"
    return no_end_tokens(byte_tokenizer(tiny_llama(folder, positions=CONTEXT), eos="<pad>"))


def made(engine: Engine, model: Path, *names: str) -> tuple[list[Any], list[str]]:
    return peers(names, str(model), model, engine.dialogue, Sampling(), 12, CONTEXT)


@pytest.mark.parametrize("name", ["transformers", "transformers-lookup", "transformers-early-exit"])
def test_transformers_answers_as_the_engine_does(name: str, model: Path) -> None:
    with loaded_engine(model, context=CONTEXT) as engine:
        ((way,), missing) = made(engine, model, name)
        assert missing == []
        ours = EngineWay(engine, False, Sampling(), 12, CONTEXT).answer(QUESTION)
        theirs = way.answer(QUESTION)
        assert [turn.tokens for turn in theirs] == [12, 12] and [turn.prompt for turn in theirs] == [
            turn.prompt for turn in ours
        ]
        assert [turn.digest for turn in theirs] == [turn.digest for turn in ours], "in float32, so close a model agrees"
        assert all(turn.prefill_seconds > 0 and turn.decode_seconds > 0 for turn in theirs)
        with pytest.raises(QuestionTooLong):
            way.answer(Question("s", "2", "", ("x " * 300,)))


def test_a_name_that_is_none_is_refused(model: Path) -> None:
    with loaded_engine(model) as engine, pytest.raises(BadSetting, match="vllm is no peer; there are transformers,"):
        made(engine, model, "vllm")


def test_what_is_not_installed_is_told(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with loaded_engine(model) as engine:
        found, missing = made(engine, model, "transformers", "llama-cpp")
    assert found == [] and missing[0] == "transformers is skipped: transformers is not installed"
    assert missing[1] == "llama-cpp is skipped: llama-cpp is not installed"


class Llama:
    """What is used of llama_cpp.Llama: it counts the tokens it was given."""

    def __init__(self, path: str, **options: Any) -> None:
        assert path.endswith(".gguf") and options["n_ctx"] == CONTEXT
        self.seen: list[int] = []

    def reset(self) -> None:
        self.seen.clear()

    def eval(self, ids: list[int]) -> None:
        self.seen += ids

    def sample(self, **_: Any) -> int:
        return 100 + len(self.seen) % 100


def test_llama_cpp_reads_the_gguf_and_ends_at_the_end_token(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("llama_cpp")
    module.Llama = Llama  # type: ignore[attr-defined]
    module.__spec__ = ModuleSpec("llama_cpp", None)
    monkeypatch.setitem(sys.modules, "llama_cpp", module)
    with loaded_engine(model) as engine:
        found, missing = made(engine, model, "llama-cpp")
        assert found == [] and missing == ["llama-cpp is skipped: BadSetting: it reads GGUF files only"]
        path = tmp_path / "m.gguf"
        path.touch()
        ((way,), _) = peers(["llama-cpp"], str(path), model, engine.dialogue, Sampling(), 5, CONTEXT)
        (turn, _) = way.answer(QUESTION)
        assert turn.tokens == 5 and turn.reason == "length limit"
        assert way.reply([3, 4], 3).ids == (102, 103, 104)


def test_a_peer_that_raises_is_a_way_that_failed(model: Path) -> None:
    def broken(prompt: list[int], most: int) -> Answer:
        raise RuntimeError("out of cheese")

    with loaded_engine(model) as engine:
        way = PeerWay("peer", engine.dialogue, 5, CONTEXT, broken)
        with pytest.raises(WayFailed, match="RuntimeError: out of cheese"):
            way.answer(QUESTION)
