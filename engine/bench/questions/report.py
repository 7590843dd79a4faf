"""The report of a benchmark as plain data, as Markdown, and two of them side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.bench.questions.results import Results
from engine.bench.questions.summary import OVERALL, SetSummary, WaySummary, own_share, summarise
from engine.bench.questions.ways import PLAIN, SPECULATIVE
from engine.bench.scoring.score import Score
from engine.errors import BadSetting, SpecularError

FORMAT, VERSION = "specular benchmark", 1
JSON, MARKDOWN = "report.json", "report.md"


def as_json(
    results: Results, faults: Sequence[str], machine: Mapping[str, Any], scores: Sequence[Score] = ()
) -> dict[str, Any]:
    """machine: what the figures depend on beside the run: bandwidth, memory, versions."""
    found = summarise(results.turns)
    return {
        "format": FORMAT,
        "version": VERSION,
        "run": results.run,
        "machine": dict(machine),
        "questions": len(results.answered) - len(results.notes),
        "left_out": list(results.notes.values()),
        "faults": list(faults),
        "own_share": own_share(results.turns),
        "bandwidth_share": _bandwidth_share(found, machine),
        "sets": [asdict(entry) for entry in found],
        "scores": [asdict(entry) for entry in scores],
    }


def read_report(path: Path) -> dict[str, Any]:
    """A report that `as_json` made; a folder stands for the one in it. Raises BadSetting naming what is wrong."""
    path = path / JSON if path.is_dir() else path
    try:
        report = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise BadSetting(f"{path} is not a benchmark's report.") from error
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise BadSetting(f"{path} is not a benchmark's report.")
    if report.get("version") != VERSION:
        raise BadSetting(f"{path} has version {report.get('version')}, but this program reads {VERSION}.")
    return report


def write_report(folder: Path, report: Mapping[str, Any]) -> None:
    """Both files. Raises SpecularError where they cannot be written."""
    try:
        (folder / JSON).write_text(json.dumps(report, indent=1), "utf-8")
        (folder / MARKDOWN).write_text(markdown(report), "utf-8")
    except OSError as error:
        raise SpecularError(f"The report cannot be written: {error.strerror or error} ({folder}).") from error


def markdown(report: Mapping[str, Any]) -> str:
    """For people: what was run, a row for each set and way, what drafting did, what was left out."""
    run, sets = report["run"], report["sets"]
    lines = [f"# {run['model']}, {run['device']}", ""]
    lines.append(conditions(report))
    lines += ["", *speed_table(sets), "", *draft_table(sets), ""]
    return "\n".join([*lines, *remarks(report)]) + "\n"


def remarks(report: Mapping[str, Any]) -> list[str]:
    """Sentences: whether texts were the same, what the figures stand for, what was left out."""
    single = [entry for entry in report["sets"] if entry["name"] != OVERALL]
    different = [key for entry in single for key in entry["different"]]
    compared = sum(_way(entry, SPECULATIVE).get("questions", 0) for entry in single)
    found = []
    if compared:
        verdict = "the same text, token for token" if not different else f"another text at {', '.join(different)}"
        found.append(f"Speculation against plain decoding over {compared} questions: {verdict}.")
    share = report.get("bandwidth_share")
    if share is not None:
        found.append(f"Plain decoding reads its weights at {share:.0%} of the bandwidth measured here.")
    found.append(f"The benchmark itself took {report['own_share']:.2%} of the time it measured.")
    for entry in report.get("scores", ()):
        found.append(f"{entry['set']}, {entry['way']}: {entry['right']} of {entry['total']} answers are right.")
    found += [f"Left out: {sentence}" for sentence in report["left_out"]]
    return found + [f"Fault: {sentence}." for sentence in report["faults"]]


def speed_table(sets: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows of a Markdown table."""
    rows = ["| set | way | questions | tokens | tok/s | median | prompt tok/s | S (95 %) | same text | J/token |"]
    rows.append("|---|---|---|---|---|---|---|---|---|---|")
    for entry in sets:
        for way in entry["ways"]:
            ratio = "" if way["speed_up"] is None else f"**{way['speed_up']:.2f}**"
            if way["interval"]:
                ratio += f" ({way['interval'][0]:.2f}–{way['interval'][1]:.2f})"
            same = "" if way["identical"] is None else f"{way['identical']} of {way['questions']}"
            energy = "" if way["energy"] is None else f"{way['energy']:.2f}"
            rows.append(
                f"| {entry['name']} | {way['way']} | {way['questions']} | {way['tokens']:,} | "
                f"{way['tokens_per_second']:.2f} | {way['median']:.2f} | {way['prefill_per_second']:.0f} | {ratio} | "
                f"{same} | {energy} |"
            )
    return rows


def draft_table(sets: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows of a Markdown table: acceptance, tokens a cycle, costs."""
    rows = ["| set | α | tokens a cycle | c | v | γ | cut by the context |", "|---|---|---|---|---|---|---|"]
    for entry in sets:
        draft = entry["draft"]
        cells = (
            _number(draft["acceptance"], 3),
            _number(draft["tokens_per_cycle"], 2),
            _number(draft["draft_cost"], 3),
            _number(draft["verify_cost"], 3),
            _number(draft["gamma"], 1),
            str(entry["cut"]),
        )
        rows.append(f"| {entry['name']} | {' | '.join(cells)} |")
    return rows


def compare(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Two reports side by side, as Markdown: speeds of each set and way that both have, and their ratio."""
    lines = [f"A: {conditions(first)}", f"B: {conditions(second)}", ""]
    lines += [
        "| set | way | A tok/s | B tok/s | B over A | A S | B S | intervals |",
        "|---|---|---|---|---|---|---|---|",
    ]
    others = {entry["name"]: entry for entry in second["sets"]}
    for entry in first["sets"]:
        for way in entry["ways"]:
            other = _way(others.get(entry["name"], {"ways": ()}), way["way"])
            if not other:
                continue
            ratio = other["tokens_per_second"] / way["tokens_per_second"] if way["tokens_per_second"] else 0.0
            lines.append(
                f"| {entry['name']} | {way['way']} | {way['tokens_per_second']:.2f} | "
                f"{other['tokens_per_second']:.2f} | {ratio:.3f} | {_number(way['speed_up'], 2)} | "
                f"{_number(other['speed_up'], 2)} | {_overlap(way['interval'], other['interval'])} |"
            )
    return "\n".join(lines) + "\n"


def _overlap(first: Sequence[float] | None, second: Sequence[float] | None) -> str:
    if not first or not second:
        return ""
    return "agree" if first[0] <= second[1] and second[0] <= first[1] else "differ"


def conditions(report: Mapping[str, Any]) -> str:
    """What was run on what, in a sentence."""
    run, machine = report["run"], report["machine"]
    how = "greedy" if not run["temperature"] else f"temperature {run['temperature']:g}, seed {run['seed']}"
    versions = ", ".join(f"{name} {version}" for name, version in machine.get("versions", {}).items())
    peak = machine.get("peak")
    memory = f"; peak memory {peak / 1e9:.2f} GB" if peak else ""
    return (
        f"{run['model']} on {run['device']}; {report['questions']} questions, at most {run['max_new_tokens']} new "
        f"tokens a turn, {how}{memory}; {machine.get('date', '')}; {versions}."
    )


def _bandwidth_share(sets: Sequence[SetSummary], machine: Mapping[str, Any]) -> float | None:
    plain: WaySummary | None = sets[-1].way(PLAIN) if sets else None
    bandwidth, read = machine.get("bandwidth"), machine.get("weights_bytes")
    if plain is None or not bandwidth or not read:
        return None
    return plain.tokens_per_second * float(read) / float(bandwidth)


def _way(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next((way for way in entry["ways"] if way["way"] == name), {})


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
