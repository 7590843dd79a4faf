"""`specular-cli prove`: plain decoding against speculation, bit for bit, over many prompts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.cli.session import INTERRUPTED, EngineLike, Interrupts, StatusLine, load
from engine.errors import BadSetting
from engine.proof import PromptProof, ProofProgress, ProofReport
from engine.prove_prompts import PROMPTS, ProofPrompt
from engine.settings import Sampling, Speculation

DIFFERENT = 1
NAME_CHARACTERS = 40


def prove(engine: EngineLike, options: argparse.Namespace) -> int:
    """Load the model and compare; the exit status: 0 identical, 1 a difference, 130 stopped by Ctrl+C before the end.

    Raises SpecularError for bad options, a model that cannot be loaded, and a plain run that fails.
    """
    if options.tokens < 1:
        raise BadSetting(f"--tokens is {options.tokens}, but must be at least 1.")
    sampling = Sampling(temperature=options.temperature, seed=options.seed)
    Speculation(gamma=options.gamma)  # refuses a wrong number before the model is loaded
    prompts = PROMPTS if options.prompts is None else read_prompts(options.prompts)
    info, _ = load(engine, options)
    if not options.json:
        print(f"{info.name} on {info.device}, {info.kernels}", flush=True)
    report = _compare(engine, options, prompts, sampling)
    if options.json:
        print(json.dumps(as_json(report)))
    else:
        for line in closing_lines(report):
            print(line)
    if report.difference is not None:
        return DIFFERENT
    return INTERRUPTED if report.stopped else 0


def _compare(
    engine: EngineLike, options: argparse.Namespace, prompts: Sequence[ProofPrompt], sampling: Sampling
) -> ProofReport:
    status = StatusLine()

    def show(step: ProofProgress) -> None:
        if step.result is not None:
            status.clear()
            if not options.json:
                print(prompt_line(step.result), flush=True)
        status.show(f"{step.prompt}: {step.done} of {step.total} tokens made, half of them plainly")

    with Interrupts() as interrupts:
        try:
            return engine.prove(
                options.tokens,
                prompts=prompts,
                sampling=sampling,
                gamma=options.gamma,
                progress=show,
                cancelled=lambda: interrupts.pending,
            )
        finally:
            status.clear()


def read_prompts(file: str) -> tuple[ProofPrompt, ...]:
    """The prompts of a UTF-8 text file, one a line, called by their first words. Raises BadSetting naming the file."""
    try:
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise BadSetting(f"The prompts file {file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise BadSetting(f"The prompts file {file} is not UTF-8 text (byte {error.start}).") from error
    texts = [line.strip() for line in lines if line.strip()]
    if not texts:
        raise BadSetting(f"The prompts file {file} has no prompts: it needs one a line.")
    return tuple(ProofPrompt(f"{i}: {text[:NAME_CHARACTERS]}", text) for i, text in enumerate(texts, start=1))


def prompt_line(result: PromptProof) -> str:
    """Such as `chat: 84 tokens identical · 2 replies, γ 1, 5 · 50 of 60 drafts accepted · …`."""
    gammas = ", ".join("auto" if gamma is None else str(gamma) for gamma in result.gammas)
    parts = [f"{result.tokens:,} tokens identical", f"{result.turns} replies, γ {gammas}"]
    if result.turns == 1:
        parts[1] = f"1 reply, γ {gammas}"
    if result.drafted:
        parts.append(f"{result.accepted:,} of {result.drafted:,} drafts accepted")
    if result.reused_tokens:
        parts.append(f"{result.reused_tokens:,} prompt tokens from the cache")
    if result.difference is not None:
        parts.append("then a DIFFERENCE")
    return f"{result.prompt}: {' · '.join(parts)}"


def closing_lines(report: ProofReport) -> list[str]:
    """The outcome, where a difference is in the blocks, and the speeds."""
    lines = [report.sentence]
    different = report.difference
    if different is not None:
        gamma = "chosen by the controller" if different.gamma is None else f"{different.gamma}"
        row = "" if different.row is None else f", row {different.row + 1} of a pass of {different.rows}"
        lines.append(f"γ {gamma}{row}. Found equal before: {report.tokens:,} tokens over {report.prompts} prompts.")
    plain = sum(result.plain_seconds for result in report.results)
    other = sum(result.speculative_seconds for result in report.results)
    if report.tokens and plain and other and different is None:
        speeds = f"plain {report.tokens / plain:.1f} tok/s, with speculation {report.tokens / other:.1f} tok/s, "
        lines.append(f"{speeds}both while recording; {report.seconds:.0f} s in all")
    return lines


def as_json(report: ProofReport) -> dict[str, Any]:
    """The whole report, ready for `json.dumps`."""
    found = report.difference
    return {
        **asdict(report),
        "tokens": report.tokens,
        "prompts": report.prompts,
        "identical": found is None,
        "sentence": report.sentence,
        "first_difference": None if found is None else asdict(found),
    }
