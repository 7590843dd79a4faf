"""`specular-cli calibrate`: the table, JSON, exit statuses and Ctrl+C, over a real tiny model."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from builders import byte_tokenizer, tiny_llama
from engine.calibration import measure, trials
from engine.calibration.report import CalibrationReport, Finding, Verdict, in_words, table
from engine.cli.calibrate import report_lines
from engine.cli.main import main
from engine.engine import Engine
from engine.errors import SpecularError
from engine.recipe import Recipe
from engine_rig import no_end_tokens


@pytest.fixture(autouse=True)
def little_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer tokens and pairs of passes than on a real model."""
    monkeypatch.setattr(trials, "MOST_TOKENS", 96)
    monkeypatch.setattr(measure, "MOST_PAIRS", 8)


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(no_end_tokens(byte_tokenizer(tiny_llama(tmp_path / "tiny", positions=512), eos="<pad>")))


def calibrate(model: str, *options: str, make_engine: type[Engine] = Engine) -> int:
    words = ("calibrate", "--model", model, "--device", "cpu", "--minutes", "0.1", *options)
    return main(words, make_engine=make_engine)


def test_done_is_status_0_with_a_table_and_the_outcome(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate(model) == 0
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert lines[0].startswith("tiny on ") and lines[0].endswith("compiled CPU kernels")
    assert lines[1].split() == ["draft", "c", "α", "tokens", "a", "cycle", "S", "verdict"]
    assert lines[2].startswith("4-bit weights ") and any(line.startswith("16-bit weights ") for line in lines)
    assert any(line.startswith("plain step ") for line in lines)
    assert any(line.startswith("verify pass, in plain steps: ") for line in lines)
    assert lines[-2].startswith("chosen, over all tokens: c ")
    assert lines[-1].startswith(("The draft now has ", "No draft pays on this machine"))
    assert output.err == ""


def test_json_is_one_object_with_all_of_it(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate(model, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["stopped"] is False and made["model"] == "tiny" and made["chosen"]["weight_bits"] in (16, 8, 4, 3)
    assert {"cost", "acceptance", "tokens", "speed_up", "gamma", "verify", "few_rows", "positions"} <= set(made)
    first = made["findings"][0]
    assert first["ingredient"] == "4-bit weights" and first["verdict"] in ("on", "off") and first["cost"] > 0


class Interrupted(Engine):
    """Presses Ctrl+C when the first width of weights has been measured."""

    def calibrate(self, minutes: float = 2.0, **options: Any) -> CalibrationReport:
        show = options["progress"]

        def pressing(step: Any) -> None:
            show(step)
            if step.finding is not None:
                os.kill(os.getpid(), signal.SIGINT)

        return super().calibrate(minutes, **{**options, "progress": pressing})


def test_ctrl_c_is_status_130_and_keeps_the_old_recipe(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate(model, make_engine=Interrupted) == 130
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "Stopped: the draft is made as before." and lines[2].startswith("4-bit weights ")
    recipes = Path(os.environ["SPECULAR_DATA_DIR"]) / "data" / "recipes"
    assert not recipes.exists()


class OutOfMemory(Engine):
    def calibrate(self, minutes: float = 2.0, **options: Any) -> CalibrationReport:
        raise SpecularError("There is not enough memory to calibrate: the draft is made as before.")


def test_errors_are_one_sentence_and_status_2(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate(model, make_engine=OutOfMemory) == 2
    assert capsys.readouterr().err == (
        "specular-cli: There is not enough memory to calibrate: the draft is made as before.\n"
    )
    assert main(["calibrate", "--minutes", "0"], make_engine=Engine) == 2
    assert capsys.readouterr().err == "specular-cli: minutes is 0, but must be a number from 0.1 to 60.\n"
    with pytest.raises(SystemExit) as left:
        main(["calibrate", "--minutes", "soon"])
    assert left.value.code == 2


def test_generate_uses_what_was_found(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate(model, "--json") == 0
    chosen = json.loads(capsys.readouterr().out)["chosen"]
    words = ["generate", "--model", model, "--device", "cpu", "--prompt", "hello", "--max-new-tokens", "6", "--json"]
    assert main(words) == 0
    cycles = json.loads(capsys.readouterr().out)["cycles"]
    assert [cycle["recipe"] for cycle in cycles] == [chosen] * len(cycles) and cycles


FINDINGS = (
    Finding("4-bit weights", Verdict.ON, "", Recipe(4), 0.326, 0.904, 4, 3.5, 1.62),
    Finding("50 % of MLP neurons", Verdict.OFF, "it saves too little", Recipe(4), 0.3, 0.8, 2, 2.44, 1.5),
    Finding("KV window", Verdict.UNTRIED, "no time was left"),
    Finding("attention heads", Verdict.UNABLE, "this device has no draft with it"),
    Finding("8-bit weights", Verdict.OPEN, "", Recipe(8), 0.5, 1.0, 15, 16.0, 1.9),
)


def test_the_table_is_aligned_and_shows_what_was_not_measured_as_such() -> None:
    assert table(FINDINGS) == [
        "draft                    c      α  tokens a cycle     S  verdict",
        "4-bit weights        0.326  0.904      3.50 (γ 4)  1.62  on",
        "50 % of MLP neurons  0.300  0.800      2.44 (γ 2)  1.50  off: it saves too little",
        "KV window              n/a    n/a             n/a   n/a  not tried: no time was left",
        "attention heads        n/a    n/a             n/a   n/a  not here: this device has no draft with it",
        "8-bit weights        0.500  1.000    16.00 (γ 15)  1.90  ",
    ]


def test_a_recipe_in_words() -> None:
    assert in_words(Recipe(16)) == "the model's own weights"
    assert in_words(Recipe(4, 0.3, 0.5, 0.75, (1, 2), (3,), 8192, 512)) == (
        "4-bit weights, 2 attention and 1 MLP blocks skipped, 30 % of input channels dropped, 50 % of MLP neurons, "
        "75 % of attention heads, 8,192 output tokens, the last 512 positions attended to"
    )
    assert in_words(Recipe(8, skipped_mlp=(1,))) == "8-bit weights, 1 MLP block skipped"


def test_a_note_stands_below_the_outcome_and_nothing_measured_makes_no_table() -> None:
    report = CalibrationReport("m", "d", "k", 1.0, 0.0, (), (), 0, (), note="A note.")
    assert report_lines(report) == ["Stopped: the draft is made as before.", "A note."]
