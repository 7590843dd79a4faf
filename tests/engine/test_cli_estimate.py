"""`specular-cli estimate`: a waterfall that adds up, a verdict, what would help, and one sentence for bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from builders import shard, tiny_llama, write_gguf
from engine.cli import estimate as cli
from engine.cli.main import main
from engine.offload import measure_rates
from engine.offload.fast_memory import FastMemory, combined
from engine.offload.rates import default_rates
from engine.probes.reading import Measure

SHAPE = ("--shape", "llama2-7b", "--device", "cuda")
INSIDE = (
    "other programs",
    "margin",
    "workspace",
    "KV cache",
    "embedding, norms",
    "draft copy",
    "weights resident",
    "slots",
    "free",
)


machine = cli.machine


@pytest.fixture(autouse=True)
def no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a card and with 16 GB of RAM free, whose figures do not change from run to run."""
    memory = FastMemory(Measure(24e9), Measure(16e9))
    monkeypatch.setattr(cli, "machine", lambda wanted: _machine(wanted, memory))


def _machine(wanted: str | None, memory: FastMemory) -> tuple[str, FastMemory, Any, tuple[str, ...]]:
    if wanted == "cuda":
        return "cuda", cli.unknown_memory(cli.NO_CARD), default_rates("cuda"), ("No NVIDIA card.",)
    return "cpu", memory, default_rates("cpu"), ()


def told(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> dict[str, Any]:
    """The estimate as JSON."""
    assert main(["estimate", *arguments, "--json"]) == status
    return dict(json.loads(capsys.readouterr().out))


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """The estimate as text."""
    assert main(["estimate", *arguments]) == status
    return capsys.readouterr().out


@pytest.mark.parametrize("budget", [4, 6, 8, 12, 16, 24])
def test_the_waterfall_adds_up_to_the_budget(capsys: pytest.CaptureFixture[str], budget: int) -> None:
    made = told(capsys, *SHAPE, "--budget-gb", str(budget), "--context", "2048")
    sizes = made["bytes"]
    assert sizes["other programs"] is None and made["reasons"]["other programs"] == cli.NO_CARD
    assert sum(sizes[name] or 0 for name in INSIDE) == budget * 10**9
    assert all((size or 0) >= 0 for size in sizes.values())
    weights = sizes["weights resident"] + sizes["weights streamed"] + sizes["embedding, norms"]
    assert weights == pytest.approx(13.48e9, rel=0.001)


def test_seven_billion_weights_in_eight_gigabytes(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, *SHAPE, "--budget-gb", "8", "--context", "4096")
    assert "llama2-7b, card, budget 8.00 GB, context 4,096 tokens" in text
    assert "verdict           fits streamed" in text
    assert "draft copy           3.51 GB  4 bits" in text
    assert text.count("would help") == 2
    assert "A budget of 20.15 GB: fits" in text and "A context of 2,048 tokens" in text
    assert "a default, not measured here" in text
    made = told(capsys, *SHAPE, "--budget-gb", "8", "--context", "4096")
    assert made["speculative_tokens_per_second"] > 4 * made["plain_tokens_per_second"] > 4
    assert made["recipe"]["weight_bits"] == 4 and made["acceptance"] == 0.91
    assert made["residency"].count("streamed") > 50


def test_what_fits_needs_no_help(capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, *SHAPE, "--budget-gb", "24")
    assert (made["verdict"], made["fixes"], made["slots"]) == ("fits", [], 0)
    assert made["bytes"]["weights streamed"] == 0


def test_the_budget_that_is_named_as_a_fix_works(capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, *SHAPE, "--budget-gb", "8")
    budget = next(fix["text"].split()[-2] for fix in made["fixes"] if "budget" in fix["text"])
    again = told(capsys, *SHAPE, "--budget-gb", budget)
    assert again["verdict"] == "fits"
    assert again["speculative_tokens_per_second"] > made["speculative_tokens_per_second"]


def test_nothing_that_is_slower_is_proposed(capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, *SHAPE, "--budget-gb", "16", "--context", "512")
    assert made["verdict"] == "fits streamed"
    assert made["plain_tokens_per_second"] < made["speculative_tokens_per_second"]  # "no draft" would fit, but slower
    assert [fix["text"] for fix in made["fixes"]] == ["A budget of 18.27 GB", "A context of 256 tokens"]
    assert all(fix["tokens_per_second"] > made["speculative_tokens_per_second"] for fix in made["fixes"])


def test_what_does_not_fit_says_why_and_what_would_help(capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, *SHAPE, "--budget-gb", "3", "--context", "4096", status=1)
    assert made["verdict"] == "does not fit"
    assert made["refusal"] == ("The budget is 3.00 GB, but this model with this context needs at least 3.96 GB.")
    assert made["plain_tokens_per_second"] is made["speculative_tokens_per_second"] is made["peak"] is None
    assert [fix["text"] for fix in made["fixes"]] == ["A budget of 3.96 GB", "A context of 2,048 tokens"]
    text = shown(capsys, *SHAPE, "--budget-gb", "3", "--context", "4096", status=1)
    assert "plain                n/a  the model does not fit" in text
    assert "draft copy               n/a  the model does not fit" in text


def test_other_programs_count_and_closing_them_helps(capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, "--shape", "llama2-7b", "--device", "cpu", "--budget-gb", "20", "--context", "2048")
    assert made["bytes"]["other programs"] == 4 * 10**9
    assert sum(made["bytes"][name] for name in INSIDE) == 20 * 10**9
    assert "Closing other programs" in [fix["text"] for fix in made["fixes"]]


def test_without_a_budget_all_that_is_free_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "--shape", "smollm2-135m")["budget"] == 16 * 10**9


@pytest.mark.parametrize("other", ["shards", "gguf"])
def test_shards_and_ggufs_are_told_like_a_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, other: str
) -> None:
    folder = tiny_llama(tmp_path / "model", dtype="float16" if other == "gguf" else "float32")
    whole = told(capsys, "--model", str(folder), "--budget-gb", "0.05")
    again = write_gguf(tmp_path / "m.gguf", folder) if other == "gguf" else folder
    if other == "shards":
        shard(folder, 3)
    made = told(capsys, "--model", str(again), "--budget-gb", "0.05")
    matrices = ("weights resident", "draft copy", "KV cache")
    assert [made["bytes"][name] for name in matrices] == [whole["bytes"][name] for name in matrices]
    assert made["verdict"] == whole["verdict"] == "fits"
    embedding = 290 * 64 * (2 if other == "gguf" else 4)
    assert embedding <= whole["bytes"]["embedding, norms"] < embedding + 2000


def test_a_tied_model_has_its_matrix_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tied = told(capsys, "--model", str(tiny_llama(tmp_path / "tied", tied=True)), "--budget-gb", "0.1")
    own = told(capsys, "--model", str(tiny_llama(tmp_path / "own")), "--budget-gb", "0.1")
    assert tied["bytes"]["embedding, norms"] == own["bytes"]["embedding, norms"]
    assert tied["bytes"]["weights resident"] < own["bytes"]["weights resident"]
    assert len(tied["residency"]) == len(own["residency"]) - 1


def test_a_small_budget_streams_a_small_model(capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, "--shape", "smollm2-135m", "--budget-gb", "0.25", "--context", "512")
    assert made["verdict"] == "fits streamed"
    assert made["residency"].count("streamed") > 2
    text = shown(capsys, "--shape", "smollm2-135m", "--budget-gb", "0.25", "--context", "512")
    assert "from the file, not part of the budget" in text


def test_a_device_that_always_drafts_needs_room_for_its_copy(capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, "--shape", "smollm2-135m", "--budget-gb", "0.3", "--context", "8192", status=1)
    assert made["least_budget"] > 330_000_000
    made = told(capsys, "--shape", "smollm2-135m", "--budget-gb", "0.36", "--context", "8192")
    assert made["recipe"] is not None and made["bytes"]["draft copy"] > 60_000_000
    assert made["speculative_tokens_per_second"] > made["plain_tokens_per_second"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--budget-gb", "0"), "--budget-gb is 0, but must be a number above 0 and at most 100,000."),
        (("--budget-gb", "-3"), "--budget-gb is -3, but must be a number above 0 and at most 100,000."),
        (("--budget-gb", "nan"), "--budget-gb is nan, but must be a number above 0 and at most 100,000."),
        (("--budget-gb", "1e300"), "--budget-gb is 1e+300, but must be a number above 0 and at most 100,000."),
        (("--budget-gb", "inf"), "--budget-gb is inf, but must be a number above 0 and at most 100,000."),
        (("--context", "5"), "The context is 5, but this model takes 16 to 4096 tokens."),
        (("--context", "999999"), "The context is 999999, but this model takes 16 to 4096 tokens."),
        ((), "How much memory there is cannot be told (no card was found on this computer): give --budget-gb."),
    ],
)
def test_bad_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    assert main(["estimate", *SHAPE, *arguments]) == 2
    assert capsys.readouterr().err.strip() == f"specular-cli: {sentence}"


def test_a_model_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["estimate", "--model", str(tmp_path / "none"), "--budget-gb", "8"]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--budget-gb", "much"], ["--shape", "x"], ["--shape", "llama2-7b", "--model", "y"]]
)
def test_what_cannot_be_parsed_ends_with_status_two(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["estimate", *arguments])
    assert ended.value.code == 2


def test_it_does_without_torch_on_a_machine_without_a_card() -> None:
    code = (
        "import sys; from engine.cli.main import main; "
        "status = main(['estimate', '--shape', 'llama2-7b', '--budget-gb', '8', '--device', 'cpu']); "
        "sys.exit(3 if 'torch' in sys.modules else status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "verdict" in done.stdout) == (0, True), done.stderr


def test_the_smaller_view_of_a_cards_memory_counts_and_our_own_share_does_not() -> None:
    def free(used_before: float | None, used_after: float | None, own: int, cuda_free: int) -> float | None:
        total = Measure(24e9)
        before, after = Measure(used_before, "lost"), Measure(used_after, "lost")
        return combined(total, before, after, own, cuda_free, int(24e9)).free.value

    assert free(2e9, 2.5e9, 0, int(21.5e9)) == 22e9  # both agree: the context of half a gigabyte is ours
    assert free(2e9, 2.5e9, 0, int(19.5e9)) == 20e9  # CUDA sees less
    assert free(6e9, 6.5e9, 0, int(21.5e9)) == 18e9  # the driver's library sees less
    assert free(6e9, 6e9, int(3e9), int(18e9)) == 21e9  # tensors of ours can be used again
    assert free(None, None, 0, int(19e9)) == 19e9


def test_this_computers_ram_is_told_and_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_rates, "host_bandwidth", lambda: 40e9)
    device, memory, rates, _ = machine("cpu")
    total, free = memory.total.value, memory.free.value
    assert device == "cpu" and total is not None and free is not None and 0 < free < total
    assert rates.device == measure_rates.PASS_SHARE * 40e9
    assert memory.others(int(free) + 1000).value == 1000 and memory.others(5).value == 0


def test_what_cannot_be_measured_is_a_default_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> float:
        raise MemoryError

    monkeypatch.setattr(measure_rates, "host_bandwidth", refused)
    _, _, rates, notes = machine("cpu")
    assert rates == default_rates("cpu")
    assert notes[-1] == "Nothing could be measured (MemoryError)."


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_a_card_that_is_not_there_is_planned_for_by_defaults() -> None:
    device, memory, rates, notes = machine("cuda")
    assert (device, rates) == ("cuda", default_rates("cuda"))
    assert memory.free == memory.others(10**9) == Measure(None, cli.NO_CARD)
    assert notes == ("No NVIDIA card was found on this computer.",)


@pytest.mark.gpu
def test_a_cards_memory_and_speeds_are_measured() -> None:
    device, memory, rates, _ = machine("cuda")
    total, free = memory.total.value, memory.free.value
    assert device == "cuda" and total is not None and free is not None and 0 < free <= total
    assert rates.notes() == () and rates.device > rates.link
