"""`specular-cli generate`: the text, the JSON, the exit status, and one sentence for bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.bench.traces import read_traces
from engine.cli.main import main
from engine.errors import PromptTooLong
from engine.settings import Message
from scripted_engine import INFO, PARIS, PLAIN, ScriptedEngine

TEXT = "The capital is Paris."


def generate(engine: ScriptedEngine, *options: str) -> int:
    return main(["generate", "--prompt", "Where?", *options], make_engine=lambda: engine)


def test_text_goes_to_stdout_and_figures_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()
    assert generate(engine) == 0
    output = capsys.readouterr()
    assert output.out == TEXT + "\n"
    assert output.err == "30.0 tok/s · 80 % accepted · 3.0 tokens per cycle · 1.5× plain\n"
    assert engine.closed


def test_defaults_ask_for_the_starter_model_greedily(capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()
    generate(engine)
    assert engine.loads == [("starter", None, None)]
    (request,) = engine.requests
    assert request.messages == (Message("user", "Where?"),)
    assert request.sampling.greedy
    assert request.speculation.enabled
    assert request.max_new_tokens is None


def test_a_budget_that_is_none_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()
    assert generate(engine, "--budget-gb", "0") == 2 and engine.loads == []
    assert "The memory budget in GB is 0.0, but must be a number from 0.001 to 100000." in capsys.readouterr().err


def test_every_option_reaches_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()
    words = (
        "--model m --context 128 --device cpu --budget-gb 1.5 --no-offload"
        " --system Short. --max-new-tokens 7 --stop END --stop . --temperature 0.5"
        " --top-k 9 --top-p 0.8 --min-p 0.1 --repetition-penalty 1.2 --seed 3 --plain --gamma 4"
    )
    assert generate(engine, *words.split()) == 0
    assert engine.loads == [("m", 128, "cpu")] and engine.budgets == [(1_500_000_000, False)]
    (request,) = engine.requests
    assert request.messages == (Message("system", "Short."), Message("user", "Where?"))
    assert (request.max_new_tokens, request.stop_strings) == (7, ("END", "."))
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.5, 9, 0.8)
    assert (sampling.min_p, sampling.repetition_penalty, sampling.seed) == (0.1, 1.2, 3)
    assert (request.speculation.enabled, request.speculation.gamma) == (False, 4)
    assert capsys.readouterr().err.endswith("· seed 42\n")


def test_raw_prompt_skips_the_template(capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()
    generate(engine, "--raw")
    (request,) = engine.requests
    assert (request.prompt, request.messages) == ("Where?", ())


def test_json_holds_text_ids_cycles_and_figures(capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine(tail=" Yes.")
    assert generate(engine, "--json") == 0
    output = capsys.readouterr()
    made = json.loads(output.out)
    assert made["text"] == TEXT + " Yes."
    assert made["token_ids"] == [0, 1, 2, 10, 11, 12]
    assert [c["accepted"] for c in made["cycles"]] == [2, 2]
    assert made["cycles"][0]["next_state"] == "correction"
    assert made["cycles"][0]["recipe"]["weight_bits"] == PARIS[0].record.recipe.weight_bits
    assert made["acceptance"] == pytest.approx(0.8)
    assert made["tokens_per_second"] == pytest.approx(30)
    assert made["speed_up"] == pytest.approx(1.5)
    assert (made["stop_reason"], made["seed"], made["prompt_tokens"], made["model"]) == ("end token", 42, 5, INFO.name)
    assert output.err == ""


def test_a_trace_of_the_same_reply_is_added_to_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()
    path = tmp_path / "made.gz"
    for _ in range(2):
        assert generate(engine, "--record-trace", str(path), "--temperature", "0.8") == 0
    assert read_traces(path) == [engine.trace] * 2
    asked, traced = engine.requests[0], engine.traced[0]
    assert (traced.messages, traced.sampling.temperature) == (asked.messages, 0.8)
    assert (traced.sampling.seed, traced.max_new_tokens) == (42, 6), "the seed that was drawn, as long as the reply"
    capsys.readouterr()
    assert generate(engine, "--record-trace", str(tmp_path / "none" / "made.gz")) == 2
    assert capsys.readouterr().err.endswith("cannot be written: No such file or directory.\n")
    assert generate(ScriptedEngine(()), "--max-new-tokens", "0", "--record-trace", str(tmp_path / "empty.gz")) == 0
    assert not (tmp_path / "empty.gz").exists()


def test_plain_reply_has_no_acceptance(capsys: pytest.CaptureFixture[str]) -> None:
    generate(ScriptedEngine(PLAIN))
    assert capsys.readouterr().err == "10.0 tok/s · plain decoding\n"
    generate(ScriptedEngine(PLAIN), "--json")
    assert json.loads(capsys.readouterr().out)["acceptance"] is None


def test_empty_reply_is_still_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate(ScriptedEngine(()), "--max-new-tokens", "0") == 0
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "no tokens\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "/no/such/missing"], "/no/such/missing does not exist"),
        (["--temperature", "nan"], "temperature is nan"),
        (["--temperature", "warm"], "argument --temperature: invalid float value: 'warm'"),
        (["--top-p", "1.5"], "top_p is 1.5"),
        (["--gamma", "99"], "gamma is 99"),
        (["--max-new-tokens", "-1"], "max_new_tokens is -1"),
        (["--device", "abacus"], "invalid choice: 'abacus'"),
        (["--surprise"], "unrecognized arguments: --surprise"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = generate(ScriptedEngine(), *options)
    except SystemExit as leaving:
        status = leaving.code
    output = capsys.readouterr()
    assert status == 2
    assert words in output.err
    assert output.err.count("\n") == 1
    assert output.err.startswith("specular-cli")
    assert output.out == ""


def test_a_refused_request_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()
    engine.refusal = PromptTooLong("The prompt has 300 tokens, but the context holds 256.")
    assert generate(engine) == 2
    assert capsys.readouterr().err == "specular-cli: The prompt has 300 tokens, but the context holds 256.\n"
    assert engine.closed


def test_a_failed_reply_keeps_its_text_and_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()
    engine.failure = "There is not enough memory for the next token."
    assert generate(engine) == 1
    output = capsys.readouterr()
    assert output.out == TEXT + "\n"
    assert output.err.endswith("There is not enough memory for the next token.\n")


def test_ctrl_c_stops_the_reply_and_keeps_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()
    engine.before_cycle = lambda index: os.kill(os.getpid(), signal.SIGINT) if index == 0 else None
    assert generate(engine) == 130
    output = capsys.readouterr()
    assert output.out == "The capital is\n"
    assert "ended by: stopped" in output.err


def test_a_second_ctrl_c_ends_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine()

    def twice(index: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    engine.before_cycle = twice
    assert generate(engine) == 130
    assert capsys.readouterr().err.endswith("Stopped.\n")
    assert engine.closed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_help_does_not_wait_for_torch() -> None:
    code = (
        "import sys\nfrom engine.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit as leaving: assert leaving.code == 0\n"
        "assert not {'torch', 'numpy', 'numba', 'PySide6'} & set(sys.modules), 'heavy imports'"
    )
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "generate" in run.stdout
