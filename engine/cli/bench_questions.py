"""`specular-cli bench --model M --data DIR`: sets of questions, every way of decoding in turns, one report."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.bench.questions.files import Questions, read_questions
from engine.bench.questions.page import write_page
from engine.bench.questions.report import as_json, compare, markdown, read_report, write_report
from engine.bench.questions.results import ResultsFile
from engine.bench.questions.run import Progress, run
from engine.bench.questions.ways import PLAIN, SPECULATIVE, EngineWay, Way
from engine.bench.scoring.score import Score, score
from engine.cli.session import INTERRUPTED, Interrupts, StatusLine, load
from engine.errors import BadSetting
from engine.records import ModelInfo
from engine.settings import Sampling

DIFFERENT = 1
PACKAGES = ("torch", "numba", "triton", "transformers", "llama-cpp-python")


def bench_questions(options: argparse.Namespace) -> int:
    """Run and report; the exit status: 0, 1 where speculation changed a text, 130 stopped by Ctrl+C before the end.

    Raises BadSetting for options and files that make no sense, SpecularError where results cannot be written.
    """
    if options.max_new_tokens < 1:
        raise BadSetting(f"--max-new-tokens is {options.max_new_tokens}, but must be at least 1.")
    sampling = Sampling(temperature=options.temperature, seed=options.seed)
    sets = None if options.sets is None else [name.strip() for name in options.sets.split(",") if name.strip()]
    questions = read_questions(Path(options.data), sets, options.limit)
    for sentence in questions.skipped:
        print(f"Skipped: {sentence}", file=sys.stderr)
    if questions.skipped:
        print(f"{len(questions.skipped)} lines were skipped.", file=sys.stderr)
    if options.run_code and not options.score:
        raise BadSetting("--run-code belongs to --score.")
    if options.run_code and not _may_run_code(options):
        raise BadSetting("No program is run: leave --run-code out.")
    from engine.engine import Engine

    engine = Engine()
    try:
        return _measure(engine, options, questions, sampling)
    finally:
        engine.close()


def _measure(engine: Any, options: argparse.Namespace, questions: Questions, sampling: Sampling) -> int:
    info, _ = load(engine, options)
    if not engine.takes_text:
        raise BadSetting(f"{info.name} has no tokenizer: questions are texts.")
    out = Path(options.out)
    with Interrupts() as interrupts:

        def pending() -> bool:
            return interrupts.pending

        ways = _ways(engine, info, options, sampling, pending)
        others, missing = _peers(engine, info, options, sampling)
        ways += others
        for sentence in missing:
            print(f"{sentence}.", file=sys.stderr)
        file = ResultsFile(out, _run(info, options, [way.name for way in ways]))
        line = StatusLine()
        faults = (*missing, *run(questions.all, ways, file, lambda step: line.show(_words(step)), pending))
        line.clear()
        stopped = interrupts.pending
    for way in ways:
        way.close()
    report = as_json(file.results, faults, _machine(engine, info), _scores(options, questions, file))
    write_report(out, report)
    write_page(out, report)
    print(markdown(report), end="")
    if stopped:
        left = len(questions.all) - len(file.results.answered)
        print(f"Stopped with {left} questions to go; the same command goes on from there.", file=sys.stderr)
        return INTERRUPTED
    return DIFFERENT if any(entry["different"] for entry in report["sets"]) else 0


def _ways(
    engine: Any, info: ModelInfo, options: argparse.Namespace, sampling: Sampling, cancelled: Callable[[], bool]
) -> list[Way]:
    from engine.probes.energy import energy_meter

    meter = energy_meter(info.card)
    return [
        EngineWay(engine, speculates, sampling, options.max_new_tokens, info.context, cancelled, meter)
        for speculates in (False, True)
    ]


def _scores(options: argparse.Namespace, questions: Questions, file: ResultsFile) -> list[Score]:
    if not options.score:
        return []
    line = StatusLine()
    found = score(
        questions.all,
        file.results.turns,
        run_programs=options.run_code,
        progress=lambda done, total: line.show(f"Scoring {done} of {total}"),
    )
    line.clear()
    return found


def _may_run_code(options: argparse.Namespace) -> bool:
    """Ask whether programs that the model writes may be run here."""
    if options.yes:
        return True
    print(
        "Scoring humaneval runs programs that the model writes, with limits on time and memory, but with your rights "
        "to files and network. Run them? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _peers(
    engine: Any, info: ModelInfo, options: argparse.Namespace, sampling: Sampling
) -> tuple[list[Way], list[str]]:
    names = [name.strip() for name in (options.peers or "").split(",") if name.strip()]
    if not names:
        return [], []
    from engine.bench.questions.peers import peers

    most, context = options.max_new_tokens, info.context
    return peers(names, options.model, Path(info.path), engine.dialogue, sampling, most, context)


def _run(info: ModelInfo, options: argparse.Namespace, ways: list[str]) -> dict[str, Any]:
    """What the results are of; a run goes on only where this is alike."""
    assert ways[:2] == [PLAIN, SPECULATIVE]
    return {
        "model": info.name,
        "weights": f"{info.weights_bytes} bytes, {info.weights_dtype}",
        "device": info.device,
        "kernels": info.kernels,
        "recipe": str(info.recipe),
        "max_new_tokens": options.max_new_tokens,
        "temperature": options.temperature,
        "seed": options.seed,
        "ways": ways,
    }


def _machine(engine: Any, info: ModelInfo) -> dict[str, Any]:
    from engine.offload.measure_rates import card_bandwidth, host_bandwidth

    versions = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.date.today().isoformat(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": versions,
        "weights_bytes": info.weights_bytes,
        "bandwidth": host_bandwidth() if info.card is None else card_bandwidth(),
        "peak": engine.peak().value,
    }


def _words(step: Progress) -> str:
    left = "" if step.seconds_left is None else f", about {_time(step.seconds_left)} left"
    what = "warming up" if step.question is None else step.question.key
    return f"{step.done} of {step.total}{left}: {what} {step.way}"


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes >= 2 else f"{seconds:.0f} s"


def bench_compare(options: argparse.Namespace) -> int:
    """Print two reports side by side. Raises BadSetting where one cannot be read."""
    first, second = (read_report(Path(path)) for path in options.compare)
    print(compare(first, second), end="")
    return 0


def bench_fetch(options: argparse.Namespace) -> int:
    """Write the public sets and print their files. Raises SpecularError where that cannot be done."""
    from engine.bench.questions.public_sets import fetch_sets

    line = StatusLine()
    for path in fetch_sets(Path(options.fetch), lambda name: line.show(f"Fetching {name}")):
        line.clear()
        print(path)
    return 0
