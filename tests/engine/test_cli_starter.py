"""`specular-cli generate` with the real engine and the real starter model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.cli.main import main

QUESTION = "What is the capital of France?"


def answer(model: str, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    arguments = ["generate", "--model", model, "--prompt", QUESTION, "--max-new-tokens", "24", "--json", *options]
    status = main(arguments)
    output = capsys.readouterr()
    assert status == 0, output.err
    made: dict[str, Any] = json.loads(output.out)
    return made


def test_the_starter_model_names_paris_and_drafting_changes_no_token(
    starter_by_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    drafted = answer(starter_by_name, capsys, "--gamma", "3")
    plain = answer(starter_by_name, capsys, "--plain")
    assert "Paris" in drafted["text"]
    assert drafted["token_ids"] == plain["token_ids"]
    assert drafted["text"] == plain["text"]
    assert any(cycle["drafted_ids"] for cycle in drafted["cycles"])
    assert 0 < drafted["acceptance"] <= 1
    assert plain["acceptance"] is None
    for made in (drafted, plain):
        assert made["token_ids"] == [token for cycle in made["cycles"] for token in cycle["emitted_ids"]]
        assert made["new_tokens"] == len(made["token_ids"])
        assert made["tokens_per_second"] > 0
