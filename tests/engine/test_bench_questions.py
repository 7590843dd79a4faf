"""Benchmarks over questions: files, turns, what breaks down, what is resumed, the sums, and the whole command."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import byte_tokenizer, tiny_llama
from engine.bench.questions.files import Question, read_questions
from engine.bench.questions.measured import Turn, digest_of
from engine.bench.questions.page import bars, page, write_page
from engine.bench.questions.report import as_json, compare, markdown, read_report, write_report
from engine.bench.questions.results import FILE, ResultsFile, read_results
from engine.bench.questions.run import Progress, run
from engine.bench.questions.small import BenchProgress, small_benchmark
from engine.bench.questions.summary import own_share, speed_up, summarise
from engine.bench.questions.ways import EngineWay, QuestionTooLong, WayFailed
from engine.cli.main import main
from engine.engine import Engine
from engine.errors import BadSetting, NoModel, SpecularError
from engine.settings import Sampling
from engine_rig import loaded_engine, no_end_tokens

QUESTIONS = tuple(Question("alpaca", str(number), "", (f"Question {number}?",)) for number in range(4))


def write_set(folder: Path, name: str, *entries: object) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def entry(number: int, *turns: str, **more: Any) -> dict[str, Any]:
    return {"question_id": number, "category": "math", "turns": list(turns) or ["Why?"], **more}


class TestFiles:
    def test_questions_are_read_in_order(self, tmp_path: Path) -> None:
        write_set(tmp_path, "gsm8k", entry(7, "One?", "Two?", reference=["#### 3"]), entry(8))
        write_set(tmp_path, "alpaca", entry(0, reference="text"))
        found = read_questions(tmp_path)
        assert [question.key for question in found.all] == ["gsm8k/7", "gsm8k/8", "alpaca/0"]
        assert found.all[0] == Question("gsm8k", "7", "math", ("One?", "Two?"), ("#### 3",))
        assert found.all[2].references == ("text",) and found.skipped == ()
        assert [q.key for q in read_questions(tmp_path, ["alpaca", "gsm8k"], 1).all] == ["alpaca/0", "gsm8k/7"]

    def test_lines_that_are_none_are_named_and_skipped(self, tmp_path: Path) -> None:
        bad = [
            "{",
            "[1]",
            {"turns": ["x"]},
            entry(1) | {"turns": []},
            entry(1) | {"turns": ["x", 3]},
            entry(2),
            entry(2),
        ]
        bad += [entry(True), entry(4) | {"turns": [" "]}, "", entry(9)]
        found = read_questions(write_set(tmp_path, "gsm8k", *bad))
        assert [question.id for question in found.all] == ["2", "9"]
        assert found.skipped[0] == "gsm8k.jsonl, line 1: not JSON."
        assert found.skipped[5] == "gsm8k.jsonl, line 7: its question_id 2 was there before."
        assert [sentence.split(":")[0].rsplit(" ", 1)[1] for sentence in found.skipped] == list("1234578") + ["9"]

    def test_what_cannot_be_read_is_told(self, tmp_path: Path) -> None:
        for arguments, words in (
            ((tmp_path / "none",), "There is no folder"),
            ((tmp_path,), "has none of the files mt_bench.jsonl"),
            ((tmp_path, ["nothing"]), "The set nothing cannot be read: No such file"),
            ((write_set(tmp_path / "empty", "alpaca", ""),), "has no questions"),
            ((tmp_path, None, 0), "--limit is 0"),
        ):
            with pytest.raises(BadSetting, match=words):
                read_questions(*arguments)  # type: ignore[arg-type]

    def test_bytes_that_are_no_text_lose_only_themselves(self, tmp_path: Path) -> None:
        (tmp_path / "alpaca.jsonl").write_bytes(b'{"question_id": 1, "turns": ["a\xff"]}\n\xff\xfe\n')
        found = read_questions(tmp_path)
        assert found.all[0].turns == ("a\ufffd",) and found.skipped == ("alpaca.jsonl, line 2: not JSON.",)


def turn(way: str, question: str = "0", seconds: float = 1.0, tokens: int = 10, **other: Any) -> Turn:
    values: dict[str, Any] = {"digest": "d", "reason": "length limit", "set": "alpaca", "category": "", "turn": 0}
    values |= {"prompt": 5, "reused": 0, "prefill_seconds": 0.5}
    return Turn(**values | {"question": question, "way": way, "tokens": tokens, "decode_seconds": seconds} | other)


@dataclass
class Scripted:
    """A way that answers by script: what it raises at a question's id, else a turn."""

    name: str
    script: dict[str, Exception] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def answer(self, question: Question) -> list[Turn]:
        self.asked.append(question.id if question.set != "warm-up" else "warm-up")
        if question.id in self.script and question.set != "warm-up":
            raise self.script[question.id]
        return [replace(turn(self.name, question.id), set=question.set)]

    def close(self) -> None:
        """Nothing is kept."""


RUN = {"model": "m", "weights": "w", "device": "d", "max_new_tokens": 8, "temperature": 0.0, "seed": 0, "ways": ["a"]}


class TestRunning:
    def test_all_take_turns_after_a_warm_up(self, tmp_path: Path) -> None:
        first, second, order = Scripted("a"), Scripted("b"), []
        steps: list[Progress] = []
        run(QUESTIONS, (first, second), ResultsFile(tmp_path, RUN), steps.append)
        order = [(step.question.id, step.way) for step in steps if step.question is not None and step.way]
        assert order == [("0", "a"), ("0", "b"), ("1", "b"), ("1", "a"), ("2", "a"), ("2", "b"), ("3", "b"), ("3", "a")]
        assert first.asked[0] == second.asked[0] == "warm-up"
        assert steps[-1].done == steps[-1].total == 4 and steps[-2].seconds_left is not None

    def test_a_run_goes_on_where_it_ended(self, tmp_path: Path) -> None:
        way = Scripted("a", {"2": WayFailed("gone")})
        stop = iter([False, False, True])
        run(QUESTIONS, (way,), ResultsFile(tmp_path, RUN), cancelled=lambda: next(stop))
        assert way.asked == ["warm-up", "0"], "it was stopped before the second"
        path = tmp_path / FILE
        path.write_text(path.read_text("utf-8") + '{"question": "alpaca/1", "tur', "utf-8")
        again = Scripted("a")
        file = ResultsFile(tmp_path, RUN)
        assert list(file.results.answered) == ["alpaca/0"]
        run(QUESTIONS, (again,), file)
        assert again.asked == ["warm-up", "1", "2", "3"]
        done = Scripted("a")
        run(QUESTIONS, (done,), ResultsFile(tmp_path, RUN))
        assert done.asked == [] and len(read_results(path).turns) == 4

    def test_another_run_does_not_go_on_there(self, tmp_path: Path) -> None:
        ResultsFile(tmp_path, RUN)
        with pytest.raises(BadSetting, match=r"holds the results of another run \(max_new_tokens\)"):
            ResultsFile(tmp_path, RUN | {"max_new_tokens": 9})
        (tmp_path / FILE).write_text('{"version": 99, "run": {}}\n')
        with pytest.raises(BadSetting, match="has version 99"):
            ResultsFile(tmp_path, RUN)
        (tmp_path / FILE).write_text("what?")
        with pytest.raises(BadSetting, match="is not a results file"):
            ResultsFile(tmp_path, RUN)

    def test_a_way_that_breaks_down_loses_nothing_of_the_others(self, tmp_path: Path) -> None:
        good, bad = Scripted("plain"), Scripted("peer", {"1": WayFailed("it crashed")})
        file = ResultsFile(tmp_path, RUN)
        faults = run(QUESTIONS, (good, bad), file)
        assert faults == ("peer broke down at alpaca/1: it crashed",)
        assert [turn.way for turn in file.results.answered["alpaca/0"]] == ["plain", "peer"]
        assert [turn.way for turn in file.results.answered["alpaca/3"]] == ["plain"]

    def test_a_question_that_is_too_long_is_left_out_for_all(self, tmp_path: Path) -> None:
        ways = Scripted("plain"), Scripted("other", {"2": QuestionTooLong()})
        file = ResultsFile(tmp_path, RUN)
        run(QUESTIONS, ways, file)
        assert file.results.answered["alpaca/2"] == ()
        assert list(read_results(tmp_path / FILE).notes.values()) == [
            "alpaca/2 is too long for the context, and was left out."
        ]

    def test_a_full_disk_is_told_and_keeps_what_is_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = ResultsFile(tmp_path, RUN)
        file.add("alpaca/0", [turn("plain")])

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(SpecularError, match=r"No space left on device\. What is there is kept"):
            file.add("alpaca/1", [turn("plain")])
        monkeypatch.undo()
        assert "alpaca/0" in read_results(tmp_path / FILE).answered
        with pytest.raises(SpecularError, match="cannot be written"):
            ResultsFile(tmp_path / FILE / "below", RUN)


class TestSums:
    def test_speeds_and_the_ratio(self) -> None:
        turns = [turn("plain", "0", 2.0), turn("speculative", "0", 1.0), turn("plain", "1", 4.0, 10)]
        turns += [turn("speculative", "1", 1.0, 10, digest="other")]
        (found,) = summarise(turns)
        plain, other = found.ways
        assert (plain.tokens_per_second, plain.median, plain.speed_up) == (20 / 6, (5 + 2.5) / 2, None)
        assert (other.tokens_per_second, other.speed_up, other.identical) == (10.0, pytest.approx(3.0), 1)
        assert other.interval is not None and other.interval[0] == 2.0 and other.interval[1] == 4.0
        assert found.different == ("alpaca/1",) and plain.prefill_per_second == 10.0

    def test_a_speed_up_counts_seconds_a_token(self) -> None:
        pairs = [([turn("plain", tokens=10, seconds=2.0)], [turn("speculative", tokens=20, seconds=2.0)])]
        assert speed_up(pairs) == (2.0, (2.0, 2.0))
        assert speed_up([([turn("plain", tokens=0)], [turn("x")])]) == (None, None)

    def test_intervals_hold_what_they_are_of(self) -> None:
        chance = np.random.default_rng(1)
        hits = 0
        for _ in range(40):
            pairs = [
                ([turn("plain", seconds=float(2 + chance.normal() * 0.3))], [turn("x", seconds=1.0)]) for _ in range(30)
            ]
            _, interval = speed_up(pairs)
            assert interval is not None
            hits += interval[0] <= 2.0 <= interval[1]
        assert 33 <= hits <= 40, "of 95 % intervals"

    def test_what_drafting_did(self) -> None:
        mine = {"cycles": 4, "drafting_cycles": 3, "drafted": 12, "tested": 10, "accepted": 9}
        mine |= {"draft_seconds": 1.2, "verify_seconds": 3.3, "plain_seconds": 3.0}
        (found,) = summarise([turn("plain"), turn("speculative", tokens=13, **mine)])
        draft = found.draft
        assert (draft.acceptance, draft.tokens_per_cycle, draft.gamma) == (0.9, 3.25, 4.0)
        assert draft.draft_cost == pytest.approx(0.1) and draft.verify_cost == pytest.approx(1.1)

    def test_all_sets_are_summed_up(self) -> None:
        turns = [turn("plain"), replace(turn("plain", "5"), set="gsm8k", own_seconds=0.03)]
        assert [entry.name for entry in summarise(turns)] == ["alpaca", "gsm8k", "all"]
        assert own_share(turns) == pytest.approx(0.01)


def made_report(tmp_path: Path, seconds: float = 1.0) -> dict[str, Any]:
    file = ResultsFile(tmp_path, RUN | {"kernels": "", "recipe": ""})
    for number in range(3):
        file.add(f"alpaca/{number}", [turn("plain", str(number), 2.0), turn("speculative", str(number), seconds)])
    file.add("alpaca/9", (), "alpaca/9 is too long for the context, and was left out.")
    machine = {"date": "2026-12-01", "versions": {"torch": "2"}, "weights_bytes": 10**9, "bandwidth": 10**10}
    return as_json(file.results, ["llama-cpp is skipped: llama-cpp is not installed"], machine)


class TestReport:
    def test_it_says_all_and_comes_back(self, tmp_path: Path) -> None:
        report = made_report(tmp_path)
        write_report(tmp_path, report)
        assert read_report(tmp_path) == json.loads(json.dumps(report))
        text = markdown(report)
        assert "| alpaca | speculative | 3 | 30 | 10.00 | 10.00 | 10 | **2.00** (2.00–2.00) | 3 of 3 |  |" in text
        assert "over 3 questions: the same text, token for token." in text
        assert "at 50% of the bandwidth" in text and "m on d; 3 questions, at most 8 new tokens a turn, greedy" in text
        assert "Left out: alpaca/9 is too long" in text and "Fault: llama-cpp is skipped" in text

    def test_two_are_compared(self, tmp_path: Path) -> None:
        first, second = made_report(tmp_path / "a"), made_report(tmp_path / "b", 0.5)
        text = compare(first, second)
        assert "| alpaca | speculative | 10.00 | 20.00 | 2.000 | 2.00 | 4.00 | differ |" in text
        assert "| alpaca | plain | 5.00 | 5.00 | 1.000 |  |  |  |" in text
        assert "| 2.00 | 2.00 | agree |" in compare(first, first)

    def test_what_is_no_report_is_refused(self, tmp_path: Path) -> None:
        for text, words in (
            ("{", "is not a benchmark's"),
            ("[]", "is not a benchmark's"),
            ("{}", "is not a benchmark's"),
        ):
            (tmp_path / "x.json").write_text(text)
            with pytest.raises(BadSetting, match=words):
                read_report(tmp_path / "x.json")
        with pytest.raises(BadSetting, match="cannot be read"):
            read_report(tmp_path / "none.json")
        report = made_report(tmp_path) | {"version": 7}
        (tmp_path / "x.json").write_text(json.dumps(report))
        with pytest.raises(BadSetting, match="has version 7"):
            read_report(tmp_path / "x.json")

    def test_the_page_needs_nothing_else_and_runs_nothing(self, tmp_path: Path) -> None:
        report = made_report(tmp_path)
        report["run"]["model"] = "<script>alert(1)</script>"
        text = page(report)
        assert "<script" not in text and "http" not in text and "&lt;script&gt;" in text
        assert text.count("<rect") == len(bars(report["sets"])) == 1
        write_page(tmp_path, report)
        assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG") and (tmp_path / "report.html").exists()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench") / "tiny"
    return no_end_tokens(byte_tokenizer(tiny_llama(folder, positions=256), eos="<pad>"))


def test_conversations_go_on_with_what_was_answered(model: Path) -> None:
    with loaded_engine(model, context=256) as engine:
        way = EngineWay(engine, True, Sampling(), 12, 256)
        first, second = way.answer(Question("s", "1", "", ("Hi there?", "And?")))
        assert (first.tokens, second.tokens, first.reused) == (12, 12, 0)
        assert second.prompt > first.prompt + 12 and second.reused > first.prompt
        again = way.answer(Question("s", "1", "", ("Hi there?", "And?")))
        assert [t.digest for t in again] == [first.digest, second.digest] and again[0].reused == 0
        with pytest.raises(QuestionTooLong):
            way.answer(Question("s", "2", "", ("x " * 300,)))
        assert first.cycles > 0 and first.reason == "length limit" and 0 <= first.own_seconds < first.decode_seconds


def bench(model: Path, data: Path, out: Path, *more: str) -> int:
    words = ["bench", "--data", str(data), "--model", str(model), "--device", "cpu", "--out", str(out)]
    return main([*words, "--max-new-tokens", "10", *more])


def test_the_command_measures_reports_and_compares(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_set(tmp_path / "data", "alpaca", entry(1, "One?", "Two?"), entry(2), "{")
    write_set(data, "gsm8k", entry(1), entry(2, "long " * 200))
    assert bench(model, data, tmp_path / "out") == 0
    said = capsys.readouterr()
    assert "Skipped: alpaca.jsonl, line 3: not JSON." in said.err and "1 lines were skipped." in said.err
    assert "over 3 questions: the same text, token for token." in said.out
    assert "Left out: gsm8k/2 is too long for the context" in said.out
    report = read_report(tmp_path / "out")
    assert [found["name"] for found in report["sets"]] == ["gsm8k", "alpaca", "all"]
    assert report["sets"][1]["ways"][0]["replies"] == 3 and report["own_share"] < 0.2
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "results.jsonl", "report.json", "report.md", "report.html", "report.png",
    }  # fmt: skip
    assert bench(model, data, tmp_path / "out", "--seed", "4") == 2
    assert "holds the results of another run (seed)" in capsys.readouterr().err
    assert main(["bench", "--compare", str(tmp_path / "out"), str(tmp_path / "out")]) == 0
    assert "| alpaca | speculative |" in capsys.readouterr().out


class Unsteady(Engine):
    """Says something else whenever it has forgotten what was said."""

    shift = 0

    def forget(self, conversation: int | None = None) -> None:
        super().forget(conversation)
        self.shift += 1

    def load(self, model: str, **options: Any) -> Any:
        info = super().load(model, **options)
        assert self._loaded is not None
        full = self._loaded.runner.full

        def off(tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
            return np.roll(full(tokens, position, wanted), self.shift, axis=-1)

        self._loaded.runner.full = off  # type: ignore[method-assign]
        return info


def test_another_text_is_status_1_and_named(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("engine.engine.Engine", Unsteady)
    data = write_set(tmp_path / "data", "alpaca", entry(5))
    assert bench(model, data, tmp_path / "out", "--max-new-tokens", "40") == 1
    assert "another text at alpaca/5." in capsys.readouterr().out


def test_ctrl_c_keeps_what_is_finished(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_set(tmp_path / "data", "alpaca", entry(1), entry(2), entry(3))
    answer, count = EngineWay.answer, []

    def interrupted(self: EngineWay, question: Question) -> list[Turn]:
        count.append(question)
        if len(count) == 5:  # the second question, after two warm-ups and the first
            os.kill(os.getpid(), signal.SIGINT)
        return answer(self, question)

    monkeypatch.setattr(EngineWay, "answer", interrupted)
    assert bench(model, data, tmp_path / "out") == 130
    assert "Stopped with 2 questions to go" in capsys.readouterr().err
    monkeypatch.undo()
    assert bench(model, data, tmp_path / "out") == 0
    assert len(read_results(tmp_path / "out" / FILE).answered) == 3


def test_bad_options_are_a_sentence(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_set(tmp_path / "data", "alpaca", entry(1))
    for more, words in (
        (("--max-new-tokens", "0"), "--max-new-tokens is 0"),
        (("--temperature", "-1"), "temperature is -1"),
        (("--sets", "nothing"), "The set nothing cannot be read"),
        (("--peers", "vllm"), "vllm is no peer"),
    ):
        assert bench(model, data, tmp_path / "out", *more) == 2
        assert words in capsys.readouterr().err


def test_digests_tell_ids_apart() -> None:
    assert digest_of((1, 23)) != digest_of((12, 3)) and digest_of(()) == digest_of(())


def test_programs_are_run_only_after_a_yes(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_set(tmp_path / "data", "gsm8k", entry(1, "2 + 2?", reference="#### 4"))
    assert bench(model, data, tmp_path / "out", "--run-code") == 2
    assert "--run-code belongs to --score." in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert bench(model, data, tmp_path / "out", "--score", "--run-code") == 2
    said = capsys.readouterr().err
    assert "runs programs that the model writes" in said and "No program is run" in said
    assert bench(model, data, tmp_path / "out", "--score", "--run-code", "--yes") == 0
    assert "gsm8k, plain: 0 of 1 answers are right." in capsys.readouterr().out


def test_the_small_benchmark_keeps_nothing_and_tells_all(model: Path) -> None:
    steps: list[BenchProgress] = []
    with loaded_engine(model, context=256) as engine:
        report = engine.benchmark(progress=steps.append)
        assert report.whole is not None and report.whole.different == () and not report.stopped
        assert [entry.name for entry in report.sets] == ["mt_bench", "humaneval", "gsm8k", "alpaca", "all"]
        assert (steps[-1].done, steps[-1].total, steps[-1].sets) == (8, 8, report.sets)
        memory = engine.memory()
        assert memory is not None and memory.conversations == 0
        begun: list[BenchProgress] = []
        stopped = small_benchmark(engine, progress=begun.append, cancelled=lambda: len(begun) > 5)
        assert stopped.stopped and len(stopped.sets) == 1
    with pytest.raises(NoModel):
        small_benchmark(Engine())
