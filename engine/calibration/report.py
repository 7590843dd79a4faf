"""What a calibration reports: each way of drafting it measured, and the recipe it chose. Plain data, no torch."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from engine.errors import BadSetting
from engine.recipe import Recipe

LEAST_MINUTES, MOST_MINUTES = 0.1, 60.0


def check_minutes(minutes: float) -> None:
    """Raise BadSetting for a time that no calibration can take."""
    if not (math.isfinite(minutes) and LEAST_MINUTES <= minutes <= MOST_MINUTES):
        raise BadSetting(f"minutes is {minutes:g}, but must be a number from {LEAST_MINUTES:g} to {MOST_MINUTES:g}.")


class Verdict(str, Enum):
    """What became of an ingredient.

    UNABLE: the device has no draft with it. UNTRIED: there was no time or memory for it. OPEN: not decided yet.
    """

    ON = "on"
    OFF = "off"
    UNABLE = "unable"
    UNTRIED = "untried"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Finding:
    """One ingredient, at the strength that served best, and what it bought.

    ingredient: a short phrase ("4-bit weights", "6 blocks skipped"). cost: c, a draft step in plain steps.
    acceptance: alpha, the share of positions where the draft's best token is the model's own. tokens: a cycle yields,
    at the best `gamma`. speed_up: S at that gamma. All None where it was not measured. reason: why it is on or off.
    """

    ingredient: str
    verdict: Verdict
    reason: str
    recipe: Recipe | None = None
    cost: float | None = None
    acceptance: float | None = None
    gamma: int | None = None
    tokens: float | None = None
    speed_up: float | None = None


@dataclass(frozen=True, slots=True)
class CalibrationProgress:
    """A calibration has come this far: `fraction` 0 to 1, and `what` is measured now, a short phrase.

    finding: set where something has just been measured; what becomes of it is known only at the end.
    """

    what: str
    fraction: float
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """The outcome.

    seconds: it took. plain_seconds: a plain step. verify: v for passes over so many rows. few_rows: a draft pass over
    so many rows, in draft steps of one. positions: tokens over which acceptance was counted. findings: in the order
    they were measured. chosen: the recipe now in force, None where it was stopped before the end. The figures after
    it are the chosen recipe's, as in Finding. note: a sentence where the recipe could not be kept.
    """

    model: str
    device: str
    kernels: str
    seconds: float
    plain_seconds: float
    verify: tuple[tuple[int, float], ...]
    few_rows: tuple[tuple[int, float], ...]
    positions: int
    findings: tuple[Finding, ...]
    chosen: Recipe | None = None
    cost: float | None = None
    acceptance: float | None = None
    gamma: int | None = None
    tokens: float | None = None
    speed_up: float | None = None
    note: str | None = None

    @property
    def stopped(self) -> bool:
        """Whether it was stopped before a recipe was chosen."""
        return self.chosen is None

    @property
    def sentence(self) -> str:
        """The outcome for people."""
        if self.chosen is None:
            return "Stopped: the draft is made as before."
        words = in_words(self.chosen)
        if self.speed_up is None or self.speed_up <= 1:
            return f"No draft pays on this machine; the best of them has {words}, and is used only where it gains."
        return f"The draft now has {words}: {self.speed_up:.2f} times plain decoding is expected."

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, ready for `json.dumps`."""
        return {**asdict(self), "stopped": self.stopped, "sentence": self.sentence}


def in_words(recipe: Recipe) -> str:
    """The recipe as people say it: "4-bit weights, 6 blocks skipped, 8,192 output tokens"."""
    parts = ["the model's own weights" if recipe.weight_bits == 16 else f"{recipe.weight_bits}-bit weights"]
    skipped = len(recipe.skipped_attention) + len(recipe.skipped_mlp)
    if skipped:
        parts.append(blocks_in_words(recipe))
    if recipe.input_sparsity > 0:
        parts.append(f"{_percent(recipe.input_sparsity)} of input channels dropped")
    if recipe.neuron_share < 1:
        parts.append(f"{_percent(recipe.neuron_share)} of MLP neurons")
    if recipe.head_share < 1:
        parts.append(f"{_percent(recipe.head_share)} of attention heads")
    if recipe.reduced_vocabulary is not None:
        parts.append(f"{recipe.reduced_vocabulary:,} output tokens")
    if recipe.kv_window is not None:
        parts.append(f"the last {recipe.kv_window:,} positions attended to")
    return ", ".join(parts)


def blocks_in_words(recipe: Recipe) -> str:
    """Such as "1 attention and 2 MLP blocks skipped"."""
    counts = (len(recipe.skipped_attention), "attention"), (len(recipe.skipped_mlp), "MLP")
    kinds = " and ".join(f"{count} {kind}" for count, kind in counts if count)
    return f"{kinds} block{'' if sum(count for count, _ in counts) == 1 else 's'} skipped"


def table(findings: tuple[Finding, ...] | list[Finding]) -> list[str]:
    """The findings as aligned lines under a heading, for a terminal."""
    width = max([len(finding.ingredient) for finding in findings] + [len("draft")])
    lines = [f"{'draft':<{width}}      c      α  tokens a cycle     S  verdict"]
    for found in findings:
        cycle = "n/a" if found.tokens is None else f"{found.tokens:.2f} (γ {found.gamma})"
        lines.append(
            f"{found.ingredient:<{width}}  {_figure(found.cost)}  {_figure(found.acceptance)}"
            f"  {cycle:>14}  {_figure(found.speed_up, 4)}  {verdict_words(found)}"
        )
    return lines


def figures_lines(report: CalibrationReport) -> list[str]:
    """What passes cost, and what acceptance was counted over."""
    verify = [(rows, cost) for rows, cost in report.verify if rows > 1]
    lines = [f"plain step {report.plain_seconds * 1e3:.1f} ms; α over {report.positions:,} tokens"]
    for words, costs in (("verify pass, in plain steps:", verify), ("draft pass, in draft steps:", report.few_rows)):
        if costs:
            lines.append(f"{words} " + ", ".join(f"{cost:.2f} for {rows} rows" for rows, cost in costs))
    if report.cost is not None and report.acceptance is not None and report.tokens is not None:
        cycle = f"{report.tokens:.2f} tokens a cycle (γ {report.gamma})"
        lines.append(f"chosen, over all tokens: c {report.cost:.3f}, α {report.acceptance:.3f}, {cycle}")
    return lines


def verdict_words(finding: Finding) -> str:
    """Such as "on: 6 % faster" or "not here: …"."""
    words = {Verdict.ON: "on", Verdict.OFF: "off", Verdict.UNABLE: "not here", Verdict.UNTRIED: "not tried"}
    if finding.verdict is Verdict.OPEN:
        return ""
    return f"{words[finding.verdict]}: {finding.reason}" if finding.reason else words[finding.verdict]


def _figure(value: float | None, width: int = 5) -> str:
    return f"{'n/a':>{width}}" if value is None else f"{value:>{width}.2f}" if width == 4 else f"{value:>{width}.3f}"


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")
