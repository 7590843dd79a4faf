"""`specular-cli bench`: refused in one sentence without a card; its table; shapes named alike in both places."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from engine.bench.kv_memory import KvReport
from engine.bench.offload import OffloadReport
from engine.bench.replay import ReplayReport
from engine.bench.shapes import SHAPES, matrix_bytes
from engine.bench.steps import StepReport
from engine.cli.arguments import SHAPE_NAMES
from engine.cli.bench import kv_table, offload_table, replay_table, table
from engine.cli.main import main

REPORT = StepReport(
    shape="llama2-7b",
    dtype="bfloat16",
    card="a card",
    layers=32,
    kv_length=512,
    weight_bytes=13_214_154_752,
    copy_bytes_per_second=4.28e12,
    step_seconds=0.004,
    bandwidth_share=0.772,
    verify={1: 1.0, 8: 1.009, 16: 1.021},
    draft={1: 0.307, 2: 0.35},
    overhead_seconds=0.00004,
    rows_equal=True,
    tiles={"qkv": "64x128w4s4a0"},
)


def test_the_command_line_names_exactly_the_shapes_there_are() -> None:
    assert set(SHAPE_NAMES) == set(SHAPES)


def test_bytes_of_a_step_are_those_of_the_published_shape() -> None:
    assert matrix_bytes(SHAPES["llama2-7b"].config, 32) == 13_214_154_752
    assert matrix_bytes(SHAPES["opt-6.7b"].config, 32) == 2 * (32 * 12 * 4096**2 + 50272 * 4096)
    assert matrix_bytes(SHAPES["smollm2-135m"].config, 30) == 268_959_744


def test_table_gives_time_bandwidth_ratios_and_overhead() -> None:
    text = table(REPORT)
    assert "4.000 ms, 250.0 tok/s" in text
    assert "77.2% of the 4.28 TB/s of a copy" in text
    assert "v(8) 1.009  v(16) 1.021" in text
    assert "c(1) 0.307  c(2) 0.350" in text
    assert "0.040 ms a cycle" in text


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_without_a_card_it_says_so_in_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["bench", "--shape", "llama2-7b", "--json", str(tmp_path / "out.json")]) == 2
    assert capsys.readouterr().err.strip() == "specular-cli: No NVIDIA card was found on this computer."
    assert not (tmp_path / "out.json").exists()


def test_a_replay_says_that_it_is_one() -> None:
    text = replay_table("llama2-7b", 32, (ReplayReport("chain", 0.912, 3301, 5.03, 0.31, 1.925, 0, 0),))
    assert text.startswith("A replay: 3301 tokens of recorded acceptance over the kernels of llama2-7b, 32 layers")
    assert "S 1.925  acceptance 0.912  5.03 tokens a cycle" in text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--alpha", "1.5"], "--alpha is 1.5, but must be from 0 to 1."),
        (["--alpha", "0.5", "--trace", "x"], "--trace and --alpha exclude each other."),
        (["--trace", "nothing.gz"], "The trace file nothing.gz cannot be read: No such file or directory."),
    ],
)
def test_what_cannot_be_replayed_is_said_in_one_sentence(
    options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--shape", "llama2-7b", *options]) == 2
    assert capsys.readouterr().err.strip() == f"specular-cli: {sentence}"


@pytest.mark.gpu
def test_on_a_card_a_replay_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--shape", "smollm2-135m", "--alpha", "0.9"]) == 0
    assert "chain, siblings, look-ups" in capsys.readouterr().out


@pytest.mark.gpu
def test_on_a_card_a_small_shape_is_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["bench", "--shape", "smollm2-135m", "--json", str(tmp_path / "out.json")]) == 0
    figures = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert figures["rows_equal"] and figures["step_seconds"] > 0
    assert "equal bits at every width" in capsys.readouterr().out


def test_a_budget_needs_something_to_replay(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--shape", "llama2-7b", "--budget-gb", "8"]) == 2
    assert capsys.readouterr().err.strip().endswith("--budget-gb measures a replay: give --trace or --alpha too.")


def test_the_table_of_a_budget_tells_both_ways_and_what_was_predicted() -> None:
    way = ReplayReport("chain", 0.904, 320, 8.81, 0.006, 4.937, 0, 0)
    report = OffloadReport(
        shape="llama2-7b",
        dtype="bfloat16",
        card="a card",
        budget=8_000_000_000,
        copy_bytes_per_second=55.4e9,
        plain_streamed=7_285_506_048,
        plain_seconds=0.1335,
        plain_share=0.985,
        predicted_plain_seconds=0.130,
        streamed=10_928_259_072,
        resident=2_400_000_000,
        draft=3_510_000_000,
        draft_streamed=1_250_000_000,
        verify_seconds=0.1993,
        predicted_speed_up=5.2,
        memory=8_788_041_216,
        predicted_memory=7_900_000_000,
        ways=(way,),
    )
    text = offload_table(report)
    assert "budget 8.00 GB; a bare pinned copy 55.4 GB/s" in text
    assert "plain streaming 133.5 ms a token (130.0 predicted), 7.29 GB a pass at 98.5% of the bare copy" in text
    assert "199.3 ms a pass, 10.93 GB streamed, 2.40 GB resident, 3.51 GB of the draft" in text
    assert "which brings in 1.25 GB a step" in text
    assert "S predicted     5.20" in text and "S 4.937  acceptance 0.904  8.81 tokens a cycle" in text


def test_the_table_of_the_kv_cache_says_what_it_takes_and_costs() -> None:
    mib = 2**20
    report = KvReport(
        shape="llama2-7b",
        dtype="bfloat16",
        card="a card",
        context=4096,
        page_bytes=2 * mib,
        reserved=34 * 2**30,
        full=2176 * mib,
        mapped=192 * mib,
        share=192 / 2176,
        wasted_pages=0.99,
        late=0,
        ratio=1.0048,
        equal=False,
        rounds=10_000,
        free_before=5 * mib,
        free_after=3 * mib,
        held=2 * mib,
        closed_seconds=1.04,
        page_seconds={"create": 16e-6, "map": 31e-6},
    )
    text = kv_table(report)
    assert "192 MiB mapped, 8.8% of a full context; at most 0.99 pages a layer unused" in text
    assert "decoding        1.0048 of the time over plain tensors, OTHER TOKENS; 0 pages created" in text
    assert "10,000 rounds   2,097,152 bytes of the card lost" in text
    assert "2 MiB held after 1.0 s" in text and "create 16 µs, map 31 µs" in text
