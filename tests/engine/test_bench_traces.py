"""Trace files: what is written is read, and a damaged file is one sentence."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from engine.bench.traces import Trace, read_traces, synthetic, write_traces
from engine.errors import SpecularError

TRACE = Trace(
    (1, 2), (5, 6), (((5, 0.75), (7, 0.125)), ((9, 0.5), (6, 0.25))), (0.9, 0.4), {"weight_bits": 4}, "m", "s"
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    write_traces(path, [TRACE])
    write_traces(path, [TRACE, TRACE], append=True)
    assert read_traces(path) == [TRACE] * 3
    assert TRACE.acceptance == 0.5
    first = path.read_bytes()
    write_traces(path, [TRACE] * 3)
    assert read_traces(path) == [TRACE] * 3 and len(path.read_bytes()) < len(first)


def test_probabilities_have_three_digits(tmp_path: Path) -> None:
    path = tmp_path / "t.gz"
    long = Trace((1,), (5,), (((5, 1 / 3),),), (2 / 3,), {}, "m", "s")
    write_traces(path, [long])
    (read,) = read_traces(path)
    assert (read.top[0][0][1], read.full_prob) == (0.333, (0.667,))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ids": []}, "no tokens"),
        ({"ids": [5]}, "differ in length"),
        ({"top": [[], []]}, "no proposal"),
        ({"full_prob": ["x", 1]}, "could not convert"),
        ({"recipe": None}, "Line 1"),
        ({"model": ...}, "'model'"),
    ],
)
def test_a_line_that_is_no_trace_is_named(change: dict[str, object], words: str, tmp_path: Path) -> None:
    path = tmp_path / "t.gz"
    write_traces(path, [TRACE])
    values = json.loads(gzip.decompress(path.read_bytes())) | change
    kept = {key: value for key, value in values.items() if value is not ...}
    path.write_bytes(gzip.compress(json.dumps(kept).encode()))
    with pytest.raises(SpecularError, match=r"t\.gz is no trace") as caught:
        read_traces(path)
    assert words in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "t.gz"
    with pytest.raises(SpecularError, match="cannot be read: No such file"):
        read_traces(path)
    path.write_bytes(b"not compressed")
    with pytest.raises(SpecularError, match="cannot be read"):
        read_traces(path)
    write_traces(path, [TRACE] * 9)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SpecularError, match="damaged"):
        read_traces(path)
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(SpecularError, match="empty"):
        read_traces(path)
    with pytest.raises(SpecularError, match="cannot be written"):
        write_traces(tmp_path / "none" / "t.gz", [TRACE])


@pytest.mark.parametrize("alpha", [0.0, 0.6, 0.91, 1.0])
def test_a_synthetic_draft_accepts_as_asked_and_knows_how_sure_it_is(alpha: float) -> None:
    traces = synthetic(alpha, replies=12, tokens=300)
    mean = sum(trace.acceptance for trace in traces) / len(traces)
    assert mean == pytest.approx(alpha, abs=0.02)
    tops = [(ranked, token) for trace in traces for ranked, token in zip(trace.top, trace.ids, strict=True)]
    assert all(len({i for i, _ in ranked}) >= 3 and ranked[0][1] >= ranked[1][1] for ranked, _ in tops)
    if 0 < alpha < 1:
        sure = [ranked[0][0] == token for ranked, token in tops if ranked[0][1] > 0.95]
        unsure = [ranked[0][0] == token for ranked, token in tops if ranked[0][1] < 0.6]
        assert sum(sure) / len(sure) > 0.9 > 0.8 > sum(unsure) / len(unsure)
        seconds = [ranked[1][0] == token for ranked, token in tops if ranked[0][0] != token]
        assert sum(seconds) / len(seconds) == pytest.approx(0.75, abs=0.08)
    assert synthetic(alpha, 2, 50) == synthetic(alpha, 2, 50) != synthetic(alpha, 2, 50, seed=1)
